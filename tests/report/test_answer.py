"""What is said of who is fastest: numbers that are not believed stand in the table alone."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

import pytest

from kerasbench.analysis.summary import Summary, summarize
from kerasbench.host.noise import of_slices
from kerasbench.modes.registry import mode_report
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Samples, Slice
from kerasbench.report import answer, charts, warnings
from kerasbench.report.words import as_long, timed_in, times, verb
from kerasbench.results.run import Trial
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH
from tests.report.table import brief, drawn, plain

RATIO = re.compile(r"\d×")
BUSY = of_slices(Samples.of([Slice(50, 100 * made.MS, others_ns=100 * made.MS, disturbed=True)] * 4))


def interrupted(trial: Trial, *programs: str) -> Trial:
    """The same trial beside these programs."""
    around = dataclasses.replace(made.surroundings(), programs=list(programs))
    return dataclasses.replace(made.disturbed(trial), surroundings=around, noise=BUSY)


def of_row(name: str, first: int) -> list[Trial]:
    return made.in_blocks({JAX: 1.0, TORCH: 203.0}, made.steps, first=first, name=name)


ALONE = [interrupted(trial, "chrome", "node") for trial in of_row("dense", 0)]
WHY = "undecided, because other programs (chrome and node) used the CPU"


def headlines(summary: Summary) -> list[str]:
    """All that is said of who is fastest, but for the table."""
    chart, kinds = charts.ratios(summary, answer.title(summary)), answer.kinds(summary)
    index = [words for _, _, cells in mode_report("run").briefs(summary) for words in cells]
    marks = warnings.cautions(summary)[0]
    bars = [repr(chart)] if chart else []
    return [answer.title(summary), *answer.sentences(summary), *index, *map(plain, marks), drawn(kinds), *bars]


def test_what_other_programs_interrupted_is_said_with_their_names_and_without_a_ratio() -> None:
    summary = summarize(made.record(*ALONE, rounds=3))
    assert answer.title(summary) == f"dense: {WHY}"
    assert answer.sentences(summary) == [f"dense: {WHY}."]
    assert not any(RATIO.search(text) for text in headlines(summary))
    assert charts.ratios(summary, "") is None
    shown = brief(summary)
    assert re.search(r"\d+× \(.*\), undecided ⚠¹", shown) and re.search(r"\d ms ⚠¹", shown)
    assert shown.count("Close other programs") == 1
    assert "⚠¹ **Other programs (chrome and node) used the CPU**: undecided: dense." in shown
    assert "Next: for numbers to rely on, once other programs are closed, `kerasbench --suite published`" in shown


def test_of_several_workloads_the_others_keep_their_numbers() -> None:
    trials = [*ALONE, *of_row("conv", 3), *of_row("deep", 6)]
    summary = summarize(made.record(*trials, rounds=3))
    assert answer.title(summary) == f"JAX trains conv and deep fastest; dense is {WHY}"
    chart = made.known(charts.ratios(summary, ""))
    assert "conv" in repr(chart) and "dense" not in repr(chart)
    every = summarize(made.record(*ALONE, *map(interrupted, of_row("conv", 3)), rounds=3))
    assert answer.title(every) == f"2 workloads, all {WHY}"


def test_a_step_of_a_script_s_own_loop_is_not_called_one_of_training() -> None:
    loop = summarize(made.described(made.record(*of_row("dense", 0), rounds=3), loops=True))
    assert timed_in(loop.plain.rows) == "step of a loop" and verb(loop.plain.rows) == "runs"
    both = [*loop.plain.rows, *summarize(made.record(*of_row("conv", 3), rounds=3)).plain.rows]
    assert timed_in(both) == "training step or step of a loop" and verb(both) == "runs"


def test_a_configuration_that_differs_from_itself_has_no_ratio_in_a_headline() -> None:
    again = {JAX: 1.0, TORCH: 203.0, TORCH.with_options(control=True): 300.0}
    summary = summarize(made.record(*made.in_blocks(again, made.steps), rounds=3))
    why = "undecided, because the same configuration measured twice differs from itself"
    assert answer.title(summary) == f"dense: {why}"
    assert not any(RATIO.search(text) for text in headlines(summary)) and charts.ratios(summary, "") is None


def title_of(winners: Mapping[str, Sequence[Column]]) -> str:
    """The title of as many workloads of each kind as have a winner."""
    trials, kinds = list[Trial](), dict[str, str]()
    for kind, columns in winners.items():
        for number, winner in enumerate(columns):
            name = f"{kind}_{number}"
            kinds[name] = kind
            rival = TENSORFLOW if winner == JAX else JAX
            trials += made.in_blocks({winner: 1.0, rival: 3.0}, made.steps, first=3 * len(kinds), name=name)
    record = made.record(*trials, rounds=3)
    scenarios = [made.changed(facts, description={"kind": kinds[facts.description.name]}) for facts in record.scenarios]
    return answer.title(summarize(dataclasses.replace(record, scenarios=scenarios)))


@pytest.mark.parametrize(
    ("winners", "said"),
    [
        (
            {"dense": [JAX] * 5, "cnn": [TENSORFLOW]},
            "JAX trains dense networks (5 of 5) fastest; TensorFlow image CNNs (1 of 1)",
        ),
        ({"dense": [JAX] * 5 + [TENSORFLOW]}, "JAX trains 5 of 6 dense networks fastest, TensorFlow trains 1"),
        (
            {"dense": [JAX] * 2, "recurrent": [JAX, TENSORFLOW], "cnn": [TENSORFLOW], "layer": [JAX, TENSORFLOW]},
            "JAX trains dense networks (2 of 2) fastest; TensorFlow image CNNs (1 of 1); "
            "none leads on recurrent networks and single layers",
        ),
        (
            {kind: [JAX, TENSORFLOW] for kind in ("dense", "cnn", "layer")},
            "JAX trains 3 of 6 workloads fastest, TensorFlow trains 3",
        ),
    ],
)
def test_a_title_of_many_workloads_is_by_kind_of_model(winners: Mapping[str, Sequence[Column]], said: str) -> None:
    assert title_of(winners) == said


@pytest.mark.parametrize(
    ("ratio", "high", "said"),
    [
        (2.0, 2.1, ""),
        (0.13, 0.15, ", about 8 times as fast"),
        (0.66, 0.68, ", about 1.5 times as fast"),
        (0.95, 0.96, ""),
        (0.66, 1.2, ""),  # which may be either
    ],
)
def test_below_one_a_ratio_is_said_the_other_way_round_too(ratio: float, high: float, said: str) -> None:
    estimate = made.estimate(ratio, high, trials=10)
    assert as_long(estimate) == f"{times(estimate)} as long{said}"
    assert as_long(estimate, "the base") == f"{times(estimate)} as long as the base{said}"
