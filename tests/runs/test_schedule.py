import dataclasses
import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from kerasbench.analysis.cases import STEADY
from kerasbench.analysis.ratios import RowRatios
from kerasbench.protocol.measurement import Samples
from kerasbench.protocol.messages import Phase
from kerasbench.protocol.requests import TrialPlan
from kerasbench.protocol.stages import BATCH, EPOCH, PARTS, PREDICTIONS
from kerasbench.results.run import QUICK, SWEEP, Effort, RunConfig, Trial, exactly
from kerasbench.runs import schedule
from kerasbench.runs.rows import RowProgress
from kerasbench.runs.schedule import NextBlock, best_cycles
from tests import made
from tests.scripted import THREE


def test_an_order_keeps_scenarios_together_and_is_drawn_anew_for_each_round_and_seed() -> None:
    cases = [made.case(name, case.backend) for name in ("a", "b", "c", "d") for case in THREE]
    ordered = schedule.order_cases(cases, seed=1, round_index=1)
    assert Counter(case.key for case in ordered) == Counter(case.key for case in cases)
    scenarios = [case.selected.entry.name for case in ordered]
    assert all(len(set(scenarios[start : start + 3])) == 1 for start in range(0, 12, 3))
    drawn = [tuple(case.key for case in schedule.order_cases(cases, *drawn)) for drawn in ((1, 1), (1, 2), (2, 1))]
    assert len(set(drawn)) == 3
    assert schedule.order_cases(cases, 1, 1) == ordered


PROTOCOL = TrialPlan()
S = 10**9
MEDIAN = math.sqrt(math.pi / 2)  # its standard error over that of a mean


@pytest.mark.parametrize("start_s", [1.0, 30.0, 120.0])
@pytest.mark.parametrize("apart", [0.02, 0.1])
def test_no_other_number_of_cycles_makes_more_of_the_time(start_s: float, apart: float) -> None:
    within = 0.2
    best = best_cycles(start_s, 0.5, within**2, apart**2)

    def cost(cycles: float) -> float:
        """Return the time that so many cycles in a block take until the variance is 1."""
        return (start_s + 0.5 * cycles) * (apart**2 + within**2 / cycles)

    assert all(cost(best) <= cost(best * factor) for factor in (0.5, 0.9, 1.1, 2.0))


def blocks(
    number: int, apart: float = 0.1, within: float = 0.2, epoch_ms: float = 10.0, start_s: float = 30.0
) -> list[Trial]:
    """Trials of two columns that take turns of a quarter of a second; their ratio scatters by so much."""
    rng, trials = random.Random(3), list[Trial]()
    phases = [Phase("train", 0, 10 * S), Phase("epoch", 10 * S, 12 * S), Phase("predict", 12 * S, 15 * S)]
    for block in range(1, number + 1):
        for backend, level in (("jax", 1.0), ("torch", 2 * math.exp(rng.gauss(0, apart)))):
            steps = [level * math.exp(rng.gauss(0, within / math.sqrt(2))) for _ in range(40)]
            epochs = [level * epoch_ms * math.exp(rng.gauss(0, within / math.sqrt(2))) for _ in range(8)]
            sliced = made.changed(made.sliced(steps, epochs), training={"warmup": Samples.of(())})
            wall_ns = int((start_s + 2 * 15) * S)
            trials.append(made.in_block(block, sliced, backend=backend, phases=phases, wall_ns=wall_ns))
    return trials


def cycles(trials: Sequence[Trial], metric: str = STEADY) -> dict[str, int]:
    return schedule.cycles_of(PROTOCOL, RowRatios(RowProgress([], trials=[*trials]).columns), metric)


def test_a_block_has_the_cycles_that_its_scatter_and_its_start_ask_for_the_second_those_of_others() -> None:
    usual = cycles(blocks(12))
    assert usual["train"] == pytest.approx(MEDIAN * math.sqrt(30 / 0.5) * 0.2 / 0.1, rel=0.35)
    assert cycles(blocks(12, start_s=120.0))["train"] == pytest.approx(2 * usual["train"], abs=1)
    assert cycles(blocks(12, apart=0.2))["train"] < usual["train"] < cycles(blocks(12, apart=0.05))["train"]
    assert cycles(blocks(12, within=0.02))["train"] == PROTOCOL.min_cycles
    assert usual["predict_one"] == usual["predict_batch"] == usual["predict_all"] == PROTOCOL.min_cycles
    assert cycles(blocks(1))["train"] == pytest.approx(MEDIAN * math.sqrt(30 / 0.5) * 0.2 / 0.07, rel=0.35)


@pytest.mark.parametrize(
    ("config", "backends", "at_most"),
    [
        (RunConfig(), ("jax", "torch"), {"train": schedule.FIRST_CYCLES}),
        (RunConfig(effort=exactly(1)), ("jax", "torch"), {}),
        (RunConfig(effort=QUICK), ("jax", "torch"), {"train": schedule.QUICK_CYCLES}),
        (RunConfig(effort=Effort(plan=SWEEP)), ("jax", "torch"), {}),
        (RunConfig(), ("torch", "torch"), {}),
    ],
)
def test_how_long_a_first_block_is(config: RunConfig, backends: Sequence[str], at_most: dict[str, int]) -> None:
    assert schedule.first_block(config.effort, [made.case(backend=backend) for backend in backends]) == NextBlock(
        at_most
    )


def test_the_ratio_that_scatters_most_decides_and_of_one_column_the_time() -> None:
    loud, quiet = (blocks(6, apart=apart) for apart in (0.3, 0.03))
    third = [dataclasses.replace(trial, backend="tensorflow") for trial in quiet if trial.backend == "torch"]
    assert cycles([*loud, *third])["train"] <= cycles(loud)["train"] < cycles(quiet)["train"]
    assert "train" not in cycles([trial for trial in quiet if trial.backend == "jax"])


def test_short_epochs_have_cycles_of_their_own_where_they_matter() -> None:
    few, many = (cycles(blocks(12, epoch_ms=ms), "train_step_ms")["epoch"] for ms in (2.0, 500.0))
    assert few == PROTOCOL.min_cycles < many


def test_predictions_stand_for_a_model_that_is_not_trained() -> None:
    trials = [
        made.in_block(block, made.predicting([2.0, 2.5, 2.2] * 6), backend=backend, phases=[Phase("predict", 0, S)])
        for block in (1, 2)
        for backend in ("jax", "torch")
    ]
    assert list(cycles(trials, "predict_batch_p50_ms")) == ["predict_batch"]


def next_block(
    trials: list[Trial], plan: TrialPlan = PROTOCOL, paired: bool = False, known: bool = False, least: int = 3
) -> NextBlock:
    case = dataclasses.replace(made.case(), plan=plan, paired=paired)
    ratios = RowRatios(RowProgress([], trials=trials).columns)
    return schedule.next_block(case, least, ratios, trials, lambda metric: known)


def test_short_epochs_that_matter_to_a_ratio_or_that_others_disturbed_are_in_every_block() -> None:
    assert [EPOCH in next_block(blocks(3, epoch_ms=ms)).left_out for ms in (2.0, 60.0)] == [True, False]
    assert EPOCH not in next_block([made.disturbed(trial) for trial in blocks(3, epoch_ms=2.0)]).left_out
    alone = next_block([trial for trial in blocks(3) if trial.backend == "jax"])
    assert alone.left_out == {*PREDICTIONS}
    second = [next_block(blocks(1, epoch_ms=2.0), paired=paired) for paired in (False, True)]
    assert [of_case.left_out for of_case in second] == [{EPOCH}, set()]


@pytest.mark.parametrize(
    ("done", "least", "left_out"),
    [
        (2, 3, {EPOCH}),
        (5, 3, {EPOCH, *PREDICTIONS}),  # what no row waits for, three rounds have told
        (5, 12, set()),  # twelve were asked for
        (6, 12, {EPOCH, *PREDICTIONS}),
    ],
)
def test_what_a_row_does_not_wait_for_ends_after_three_rounds_or_is_in_every_third_that_is_asked_for(
    done: int, least: int, left_out: set[str]
) -> None:
    assert next_block(blocks(done, epoch_ms=2.0), least=least).left_out == left_out


@pytest.mark.parametrize("plan", [SWEEP, TrialPlan(stages=(*TrialPlan().stages, PARTS))])
def test_nothing_is_left_out_where_all_is_asked_for(plan: TrialPlan) -> None:
    assert next_block(blocks(3), plan).left_out == set()


def test_the_predictions_of_versions_are_measured_until_they_are_known() -> None:
    predicts = [BATCH not in next_block(blocks(3), paired=True, known=known).left_out for known in (False, True)]
    assert predicts == [True, False]
    assert BATCH in next_block(blocks(3)).left_out


def test_a_row_that_did_not_fit_into_memory_together_leaves_nothing_out() -> None:
    apart = [made.changed(trial, block=2 * trial.block + (trial.backend == "jax")) for trial in blocks(4)]
    assert next_block(apart) == NextBlock()
