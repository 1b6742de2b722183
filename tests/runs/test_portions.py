"""What a row's next block is worth: cycles by the scatter within and between blocks, and what it leaves out."""

import dataclasses
import math
import random
from collections.abc import Sequence

import pytest

from kerasbench.analysis.cases import STEADY
from kerasbench.analysis.ratios import ratio_of
from kerasbench.protocol.measurement import Latency, Measurement, Samples
from kerasbench.protocol.messages import Phase
from kerasbench.protocol.requests import Protocol
from kerasbench.results.run import SWEEP, Effort, RaceConfig, RunConfig, Trial, exactly
from kerasbench.runs import schedule
from kerasbench.runs.rows import OpenRow
from kerasbench.runs.schedule import Portion, best_cycles
from tests import made

PROTOCOL = Protocol()
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


def test_blocks_that_differ_no_more_than_their_slices_say_have_as_many_cycles_as_there_is_time_for() -> None:
    assert best_cycles(30.0, 0.5, 0.04, 0.0) == math.inf


def blocks(
    number: int, apart: float = 0.1, within: float = 0.2, epoch_ms: float = 10.0, start_s: float = 30.0
) -> list[Trial]:
    """Trials of two columns that take turns of a quarter of a second; their ratio scatters by so much."""
    rng, trials = random.Random(3), list[Trial]()
    for block in range(1, number + 1):
        for backend, level in (("jax", 1.0), ("torch", 2 * math.exp(rng.gauss(0, apart)))):
            steps = [level * math.exp(rng.gauss(0, within / math.sqrt(2))) for _ in range(40)]
            epochs = [level * epoch_ms * math.exp(rng.gauss(0, within / math.sqrt(2))) for _ in range(8)]
            trials.append(trial(block, made.sliced(steps, epochs), start_s, backend))
    return trials


def trial(block: int, found: Measurement, start_s: float, backend: str) -> Trial:
    training = dataclasses.replace(made.trained(found), warmup=Samples.of(()))
    turns = [Phase("train", 0, 10 * S), Phase("epoch", 10 * S, 12 * S), Phase("predict", 12 * S, 15 * S)]
    record = made.in_block(block, dataclasses.replace(found, training=training), backend=backend)
    return dataclasses.replace(record, phases=turns, wall_ns=int((start_s + 2 * 15) * S))


def cycles(trials: list[Trial], metric: str = STEADY) -> dict[str, int]:
    return schedule.cycles_of(PROTOCOL, OpenRow([], trials=trials).compared, metric, None)


def test_a_block_has_the_cycles_that_its_scatter_and_its_start_ask_for_the_second_those_of_others() -> None:
    found = cycles(blocks(12))
    assert found["train"] == pytest.approx(MEDIAN * math.sqrt(30 / 0.5) * 0.2 / 0.1, rel=0.35)
    assert cycles(blocks(12, start_s=120.0))["train"] == pytest.approx(2 * found["train"], abs=1)
    assert cycles(blocks(12, apart=0.2))["train"] < found["train"] < cycles(blocks(12, apart=0.05))["train"]
    assert cycles(blocks(12, within=0.02))["train"] == PROTOCOL.min_cycles
    assert found["predict_one"] == found["predict_batch"] == found["predict_all"] == PROTOCOL.min_cycles
    assert cycles(blocks(1))["train"] == pytest.approx(MEDIAN * math.sqrt(30 / 0.5) * 0.2 / 0.07, rel=0.35)


@pytest.mark.parametrize(
    ("effort", "backends", "bounded"),
    [
        (Effort(), ("jax", "torch"), True),
        (exactly(1), ("jax", "torch"), False),
        (Effort(protocol=SWEEP), ("jax", "torch"), False),
        (Effort(), ("torch", "torch"), False),
    ],
)
def test_a_first_block_is_as_long_as_those_of_others_if_further_ones_follow(
    effort: Effort, backends: Sequence[str], bounded: bool
) -> None:
    found = schedule.first_portion(RunConfig(effort=effort), [made.case(backend=backend) for backend in backends])
    assert found == Portion({"train": schedule.FIRST_CYCLES} if bounded else {})


def test_the_first_look_of_a_race_is_short() -> None:
    config = RunConfig(race=RaceConfig(), effort=exactly(1))
    assert schedule.first_portion(config, [made.case()]) == Portion({"train": schedule.RACE_CYCLES})


def test_the_ratio_that_scatters_most_decides_and_of_one_column_the_time() -> None:
    loud = blocks(12, apart=0.3)
    quiet = [dataclasses.replace(one, backend="tensorflow") for one in blocks(12, apart=0.03) if one.backend == "torch"]
    assert cycles([*loud, *quiet])["train"] <= cycles(loud)["train"] < cycles(blocks(12, apart=0.03))["train"]
    assert "train" not in cycles([one for one in blocks(4) if one.backend == "jax"])


def test_short_epochs_have_cycles_of_their_own_where_they_matter() -> None:
    few, many = (cycles(blocks(12, epoch_ms=ms), "train_step_ms")["epoch"] for ms in (2.0, 500.0))
    assert few == PROTOCOL.min_cycles < many


def test_predictions_stand_for_a_model_that_is_not_trained() -> None:
    rng = random.Random(5)

    def drawn(block: int, backend: str, level: float) -> Trial:
        found = made.predicting([level * math.exp(rng.gauss(0, 0.2)) for _ in range(20)])
        return dataclasses.replace(
            made.in_block(block, found, backend=backend), phases=[Phase("predict", 0, 10 * S)], wall_ns=50 * S
        )

    trials = [drawn(block, backend, 1.0) for block in range(1, 5) for backend in ("jax", "torch")]
    assert list(cycles(trials, "predict_batch_p50_ms")) == ["predict_batch"]


def test_turns_of_every_way_to_predict_are_no_start() -> None:
    found = made.predicting([2.0] * 6)
    found = dataclasses.replace(found, prediction=[*found.prediction, Latency(1, [S], found.slices, "call")])
    phases = [Phase("predict", 0, 10 * S), Phase("calls", 10 * S, 24 * S), Phase("generate", 24 * S, 30 * S)]
    one = dataclasses.replace(made.in_block(1, found), phases=phases, wall_ns=50 * S)
    assert schedule._start_s([(one, found)]) == pytest.approx(20)
    assert schedule._turn_s(one, "predict_batch") == pytest.approx(24 / (2 + 6 + 6))


def portion(trials: list[Trial], protocol: Protocol = PROTOCOL, paired: bool = False) -> Portion:
    case = dataclasses.replace(made.case(), protocol=protocol, paired=paired)
    return schedule.next_portion(case, OpenRow([], trials=trials).compared, trials, ratio_of, None)


def test_short_epochs_that_matter_to_a_ratio_are_in_every_block() -> None:
    assert [portion(blocks(3, epoch_ms=ms)).epochs for ms in (2.0, 60.0)] == [False, True]
    alone = [one for one in blocks(3) if one.backend == "jax"]
    assert (portion(alone).epochs, portion(alone).predicts) == (True, False)


def test_short_epochs_that_others_disturbed_are_measured_again() -> None:
    def disturbed(one: Trial) -> Trial:
        found = made.known(one.measurement)
        epochs = made.trained(found).epochs
        marked = dataclasses.replace(epochs, disturbed=[True] * len(epochs))
        return dataclasses.replace(one, measurement=made.changed(found, training={"epochs": marked}))

    assert portion([disturbed(one) for one in blocks(3)]).epochs


@pytest.mark.parametrize("protocol", [SWEEP, Protocol(parts=True)])
def test_nothing_is_left_out_where_all_is_asked_for(protocol: Protocol) -> None:
    found = portion(blocks(3), protocol)
    assert (found.epochs, found.predicts) == (True, True)


def test_the_predictions_of_versions_are_measured_until_they_are_precise() -> None:
    def with_predictions(one: Trial, backend: str, ms: float) -> Trial:
        predicted = made.predicting([ms] * 6)
        assert one.measurement is not None
        found = dataclasses.replace(one.measurement, prediction=predicted.prediction)
        return dataclasses.replace(one, measurement=found)

    even = [with_predictions(one, one.backend, 2.0) for one in blocks(3)]
    uneven = [with_predictions(one, one.backend, one.block if one.backend == "jax" else 2.0) for one in blocks(3)]
    assert [portion(trials, paired=True).predicts for trials in (even, uneven)] == [False, True]
    assert [portion(trials).predicts for trials in (even, uneven)] == [False, False]


def test_a_row_that_did_not_fit_into_memory_together_leaves_nothing_out() -> None:
    apart = [dataclasses.replace(one, block=2 * one.block + (one.backend == "jax")) for one in blocks(4)]
    assert portion(apart) == Portion()
