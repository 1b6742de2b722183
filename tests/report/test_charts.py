"""Which charts there are, as data: bars and dots of ratios, the parts of an epoch, and the curves of a sweep."""

import dataclasses
import random

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.protocol.columns import Column, Options
from kerasbench.report import charts
from kerasbench.report.sections import TORN, BarChart, DotChart, round_numbers
from tests import made
from tests.records import BREAKDOWN, CROSSING, of_backends, soaked, swept


def bars(**step_ms: float) -> BarChart:
    chart = charts.ratios(of_backends(3, 2, **step_ms), "a title")
    assert isinstance(chart, BarChart)
    return chart


def test_few_workloads_have_a_bar_for_each_configuration_from_zero() -> None:
    chart = bars(jax=1.0, torch=4.0)
    assert [group.label for group in chart.groups] == ["model0", "model1"]
    jax, torch = chart.groups[0].bars
    assert (jax.name, jax.text, jax.size, jax.strong, jax.low) == ("JAX", "1.02 ms", 1.0, True, None)
    assert torch.text.startswith("3.9× (") and 3.9 < torch.size < 4.0
    assert made.known(torch.low) < torch.size < made.known(torch.high)
    assert charts.ratios(of_backends(jax=1.0), "") is None


def test_a_long_bar_is_torn_and_the_caption_says_so() -> None:
    near, far = bars(jax=1.0, torch=4.0), bars(jax=1.0, torch=90.0)
    assert near.groups[0].end < TORN == far.groups[0].end
    assert ("torn" in near.caption, "torn" in far.caption) == (False, True)


def test_many_workloads_have_a_line_each_by_kind_of_model() -> None:
    found = of_backends(workloads=5, jax=1.0, torch=4.0)
    kinds = ["transformer", "dense", "cnn", "dense", "other"]
    for scenario, kind in zip(found.record.scenarios, kinds, strict=True):
        object.__setattr__(scenario.description, "kind", kind)
    chart = charts.ratios(Findings.of(found.record), "a title")
    assert isinstance(chart, DotChart)
    lines = {kind: [line.label for line in lines] for kind, lines in chart.kinds}
    assert lines == {
        "image CNNs": ["model2"],
        "dense networks": ["model1", "model3"],
        "transformers": ["model0"],
        "other models": ["model4"],
    }
    (_, (line,)), *_ = chart.kinds
    fastest, other = line.dots
    assert (fastest.value, fastest.low) == (1.0, None)
    assert made.known(other.low) < other.value < made.known(other.high) < chart.end
    assert other.tip.startswith("model2, PyTorch: 3.9× (") and other.tip.endswith("3 rounds")
    assert len({dot.look.shape for dot in line.dots}) == 2


def test_an_epoch_is_a_bar_of_its_parts_with_their_shares_where_there_is_room() -> None:
    other = dataclasses.replace(BREAKDOWN, column=Column("jax", "cpu"), epoch_ms=made.amount(500.0))
    (group,) = made.known(charts.epoch_chart([BREAKDOWN, other], "")).groups
    assert [(bar.name, bar.text) for bar in group.bars] == [("PyTorch", "2.00 s"), ("JAX", "500 ms")]
    pieces = group.bars[0].pieces
    assert [piece.size for piece in pieces] == [1000, 200, 300, 500]
    assert [piece.label for piece in pieces] == ["50 %", "", "15 %", "25 %"]
    unseen = dataclasses.replace(BREAKDOWN, feeding_ms=made.amount(-1.0), overhead_ms=made.amount(-50.0))
    (alone,) = made.known(charts.epoch_chart([unseen], "")).groups[0].bars
    assert [piece.name for piece in alone.pieces] == ["computation", "Python and framework"]
    assert charts.epoch_chart([], "") is None


@pytest.mark.parametrize(("rounds", "known"), [(1, False), (3, True)])
def test_a_sweep_has_a_line_for_each_configuration_and_its_crossover(rounds: int, known: bool) -> None:
    chart = made.known(charts.curves(Findings.of(swept(rounds, **CROSSING)), ""))
    (panel,) = chart.panels
    assert [(line.name, len(line.points)) for line in panel.lines] == [("JAX", 4), ("PyTorch", 4)]
    assert {step.low is not None for line in panel.lines for _, step in line.points} == {known}
    (crossover,) = panel.crossovers
    assert (crossover.interval is not None, "–" in crossover.text, "95 %" in chart.caption) == (known,) * 3
    low, high = panel.bounds
    assert all(low < (step.low or step.value) for line in panel.lines for _, step in line.points)
    assert high / low >= 10


def test_a_soak_has_panels_of_its_workload_in_which_each_line_differs() -> None:
    (one,) = Findings.of(soaked(0, 64 << 10, random.Random(1))).soaks
    chart = made.known(charts.soaked([one, dataclasses.replace(one, column=Column("torch", "gpu"))], ""))
    assert [panel.label for panel in chart.panels] == ["dense", "dense"]
    for panel in chart.panels:
        cpu, gpu = panel.lines
        assert cpu.look.colour == gpu.look.colour and cpu.look.opacity > gpu.look.opacity
    assert charts.soaked([], "") is None


def test_a_backend_has_its_look_whatever_stands_beside_it() -> None:
    together = charts.looks([Column(backend, "cpu") for backend in ("torch", "jax", "tensorflow")])
    for column, look in together.items():
        assert charts.looks([column])[column] == look
    assert len({look.colour for look in together.values()}) == len({look.shape for look in together.values()}) == 3
    others = charts.looks([Column("jax", "cpu"), *(Column(f"other{index}", "cpu") for index in range(4))])
    assert len({look.colour for look in others.values()}) == 5


def test_configurations_of_one_backend_are_paler_one_after_the_other() -> None:
    jits = [Column("jax", "cpu", Options(jit=jit)) for jit in (True, False)]
    opacities = [look.opacity for look in charts.looks([Column("jax", "cpu"), Column("jax", "gpu"), *jits]).values()]
    assert opacities == sorted(opacities, reverse=True) and min(opacities) >= 0.25


@pytest.mark.parametrize(
    ("end", "ticks"), [(7.0, [1, 2, 5]), (60, [1, 2, 5, 10, 20, 50]), (30_000, [1, 10, 100, 1_000, 10_000])]
)
def test_ticks_are_round_and_few(end: float, ticks: list[float]) -> None:
    assert round_numbers(1, end) == pytest.approx(ticks)
