"""Which charts there are, as data: bars of ratios, the parts of an epoch, and the curves of a sweep."""

import dataclasses
import random

import pytest

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.findings import Findings, findings
from kerasbench.protocol.columns import Column, Options
from kerasbench.report import charts
from kerasbench.report.sections import MOST_TICKS, Bar, BarChart, BarGroup, Piece
from tests import made
from tests.analysis.test_soak import soaked
from tests.report.test_explanation import BREAKDOWN
from tests.report.test_sweep import CROSSING, swept


def run(rounds: int = 3, **step_ms: float) -> Findings:
    """Two scenarios of which each backend takes that long a step."""
    trials = [
        made.trial(index, name, backend, found=made.measurement(step + index / 100, overhead_ms=0))
        for index in range(1, rounds + 1)
        for name in ("dense", "conv")
        for backend, step in step_ms.items()
    ]
    return findings(made.record(*trials, rounds=rounds))


def ratios(found: Findings) -> BarChart:
    return made.known(charts.ratios(found))


def parts(*breakdowns: StepBreakdown) -> BarChart:
    return made.known(charts.epoch_chart(breakdowns or [BREAKDOWN]))


def test_each_column_of_a_row_is_a_bar_with_its_ratio() -> None:
    chart = ratios(run(jax=1.0, torch=4.0))
    assert [group.label for group in chart.groups] == ["dense", "conv"]
    jax, torch = chart.groups[0].bars
    assert (jax.name, jax.text, jax.size, jax.strong, jax.low) == ("JAX", "fastest, 1.02 ms", 1.0, True, None)
    assert torch.text.startswith("3.9× (") and 3.9 < torch.size < 4.0
    assert made.known(torch.low) < torch.size < made.known(torch.high)
    assert charts.ratios(run(jax=1.0)) is None


def test_the_scale_is_logarithmic_only_where_it_has_to_be_and_says_so() -> None:
    near, far = ratios(run(jax=1.0, torch=4.0)), ratios(run(jax=1.0, torch=90.0))
    assert (near.logarithmic, far.logarithmic) == (False, True)
    assert ("Logarithmic" in near.caption, "Logarithmic" in far.caption) == (False, True)


def test_who_is_not_proven_to_be_fastest_is_not_called_so() -> None:
    trials = [*made.in_rounds(1.0, 1.4, 0.8, backend="jax"), *made.in_rounds(1.4, 0.8, 1.0)]
    texts = [bar.text for bar in ratios(findings(made.record(*trials, rounds=3))).groups[0].bars]
    assert len(texts) == 2 and all(text.startswith("≈ ") for text in texts)
    once = ratios(run(1, jax=1.0, torch=4.0)).groups[0].bars
    assert [bar.text for bar in once] == ["looks fastest, 1.01 ms", "4.0×"]


def test_an_interval_much_wider_than_the_bars_is_cut_off() -> None:
    trials = [*made.in_rounds(1.0, 1.01, 1.0, backend="jax"), *made.in_rounds(2.0, 30.0, 1.5)]
    (group,) = ratios(findings(made.record(*trials, rounds=3))).groups
    longest = max(bar.size for bar in group.bars)
    assert group.end < 2 * longest < max(bar.high or 0 for bar in group.bars)


def test_a_column_that_failed_has_its_code_in_place_of_a_bar() -> None:
    trials = [made.trial(backend=backend) for backend in ("jax", "torch")]
    failed = made.trial(backend="tensorflow", failure=made.FAILURE)
    (group,) = ratios(findings(made.record(*trials, failed))).groups
    assert ("TensorFlow", "crash", 0) in [(bar.name, bar.text, len(bar.pieces)) for bar in group.bars]


def test_an_epoch_is_a_bar_of_its_parts_with_their_shares_where_there_is_room() -> None:
    other = dataclasses.replace(BREAKDOWN, column=Column("jax", "cpu"), epoch_ms=made.amount(500.0))
    (group,) = parts(BREAKDOWN, other).groups
    assert [(bar.name, bar.text) for bar in group.bars] == [("torch", "2.00 s"), ("JAX", "500 ms")]
    pieces = group.bars[0].pieces
    sizes = {piece.name: piece.size for piece in pieces}
    assert sizes == {"computation": 1000, "Python and framework": 200, "feeding": 300, "once an epoch": 500}
    assert [piece.label for piece in pieces] == ["50 %", "", "15 %", "25 %"]
    assert group.end == pytest.approx(2000)


def test_a_part_that_was_not_seen_has_no_piece() -> None:
    unseen = dataclasses.replace(BREAKDOWN, feeding_ms=made.amount(-1.0), overhead_ms=made.amount(-50.0))
    names = [piece.name for piece in parts(unseen).groups[0].bars[0].pieces]
    assert names == ["computation", "Python and framework"]
    assert charts.epoch_chart([]) is None


@pytest.mark.parametrize(("rounds", "known"), [(1, False), (3, True)])
def test_a_sweep_has_a_line_for_each_column_and_its_crossover_with_intervals_where_they_are_known(
    rounds: int, known: bool
) -> None:
    chart = made.known(charts.curves(findings(swept(rounds, **CROSSING))))
    (panel,) = chart.panels
    assert [(line.name, len(line.points)) for line in panel.lines] == [("JAX", 4), ("torch", 4)]
    assert {step.low is not None for line in panel.lines for _, step in line.points} == {known}
    (crossover,) = panel.crossovers
    assert (crossover.interval is not None, "–" in crossover.text, "95 %" in chart.caption) == (known,) * 3
    low, high = panel.bounds
    assert all(low < (step.low or step.value) for line in panel.lines for _, step in line.points)
    assert high / low >= 10


def test_a_series_that_failed_has_no_panel() -> None:
    failed = [made.trial(1, failure=made.FAILURE, options=Options(batch=batch)) for batch in (1, 2)]
    assert charts.curves(findings(made.record(*failed))) is None


def test_a_soak_has_panels_of_its_scenario_in_which_each_line_differs() -> None:
    (one,) = findings(soaked(0, 64 << 10, random.Random(1))).soaks
    chart = made.known(charts.soaked([one, dataclasses.replace(one, column=Column("torch", "gpu"))]))
    assert [(panel.label, panel.what) for panel in chart.panels] == [
        ("dense", "memory"), ("dense", "time over the control's")
    ]  # fmt: skip
    for panel in chart.panels:
        cpu, gpu = panel.lines
        assert cpu.colour == gpu.colour and cpu.opacity > gpu.opacity
    assert charts.soaked([]) is None


def test_a_backend_has_its_colour_whatever_stands_beside_it() -> None:
    together = charts.looks([Column(backend, "cpu") for backend in ("torch", "jax", "tensorflow")])
    for column, look in together.items():
        assert charts.looks([column])[column] == look
    assert [look.colour for look in together.values()] == ["#009E73", "#0072B2", "#D55E00"]
    others = charts.looks([Column("jax", "cpu"), *(Column(f"other{index}", "cpu") for index in range(6))])
    assert len(set(others.values())) == 7


def test_columns_of_one_backend_are_paler_one_after_the_other() -> None:
    jits = [Column("jax", "cpu", Options(jit=jit)) for jit in (True, False)]
    found = charts.looks([Column("jax", "cpu"), Column("jax", "gpu"), *jits])
    assert {look.colour for look in found.values()} == {"#0072B2"}
    opacities = [look.opacity for look in found.values()]
    assert opacities == sorted(opacities, reverse=True) and min(opacities) >= 0.25


BAR = Bar("JAX", "2×", [Piece("JAX", 2.0, "#0072B2")], "jax", 1.5, 3.0)


def chart_up_to(end: float, *, logarithmic: bool = False) -> BarChart:
    return BarChart("Time.", [BarGroup("dense", [BAR], end)], reference=1.0, logarithmic=logarithmic)


def test_a_linear_scale_begins_at_zero_and_a_logarithmic_one_gives_1_a_bar_that_can_be_seen() -> None:
    linear, logarithmic = chart_up_to(10.0), chart_up_to(100.0, logarithmic=True)
    shares = [linear.share(size, linear.groups[0]) for size in (-1.0, 0.0, 1.0, 10.0, 99.0)]
    assert shares == pytest.approx([0, 0, 0.1, 1, 1])
    shares = [logarithmic.share(size, logarithmic.groups[0]) for size in (0.0, 0.5, 1.0, 10.0, 100.0)]
    assert shares == pytest.approx([0, 0, 0.04, 0.52, 1])


@pytest.mark.parametrize(
    ("end", "logarithmic", "ticks"),
    [
        (5.2, False, [0, 1, 2, 3, 4, 5]),
        (1.3, False, [0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2]),
        (60, True, [1, 2, 5, 10, 20, 50]),
        (30_000, True, [1, 10, 100, 1_000, 10_000]),
    ],
)
def test_ticks_are_round_and_few(end: float, logarithmic: bool, ticks: list[float]) -> None:
    assert chart_up_to(end, logarithmic=logarithmic).ticks == pytest.approx(ticks)
    assert len(ticks) <= MOST_TICKS
    assert BarChart("Parts.", [BarGroup("dense", [BAR], 3.0)]).ticks == []  # groups with ends of their own


def test_an_interval_is_spoken_of_where_there_is_one() -> None:
    assert chart_up_to(10.0).caption_with("Line") == "Time. Line: the 95 % interval."
    assert BarChart("Time.", [BarGroup("dense", [Bar("JAX", "fastest")], 1.0)]).caption_with("Line") == "Time."
