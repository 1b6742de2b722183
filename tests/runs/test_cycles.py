import dataclasses
import itertools
from collections.abc import Sequence

import pytest

from kerasbench.protocol.measurement import STAGES, Slice
from kerasbench.protocol.requests import Protocol
from kerasbench.results.record import SWEEP
from kerasbench.runs import schedule
from tests import made

PROTOCOL = Protocol()
SHARES = schedule.shares(PROTOCOL, made.workload())


def slices(times_ms: Sequence[float], cycles: int, count: int = 1) -> list[Slice]:
    """A column's slices: these times over and over."""
    return [Slice(count, int(ms * made.MS)) for ms in itertools.islice(itertools.cycle(times_ms), cycles)]


def enough(stage: str, *columns: list[Slice], protocol: Protocol = PROTOCOL) -> bool:
    return schedule.enough(protocol, SHARES, stage, columns)


def test_a_quiet_pair_stops_as_soon_as_it_may() -> None:
    pair = [100, 100.2], [50, 50.1]
    assert not enough("train", *(slices(times, PROTOCOL.min_cycles - 1) for times in pair))
    assert enough("train", *(slices(times, PROTOCOL.min_cycles) for times in pair))


def test_what_both_columns_have_alike_is_no_noise() -> None:
    drift = [100, 130, 90, 200, 120, 160]
    assert enough("train", slices(drift, 6), slices([2 * ms for ms in drift], 6))
    assert not enough("train", slices(drift, 6))
    assert not enough("train", slices(drift, 6), slices([200], 6))


def test_one_loud_pair_of_three_keeps_all_going() -> None:
    quiet, loud = slices([100], 10), slices([100, 150], 10)
    assert enough("train", quiet, quiet)
    assert not enough("train", quiet, quiet, loud)


def test_a_loud_stage_ends_when_a_column_has_had_its_share_of_the_time() -> None:
    loud = [100, 150, 300, 120]
    long_ns = SHARES["train"] * PROTOCOL.slices_max_ns
    for count in range(6, 80):
        column = slices(loud, count)
        spent_ns = sum(slice_.ns for slice_ in column)
        assert enough("train", column, slices([100], count)) is (spent_ns >= long_ns)


def test_slow_slices_have_the_fewest_cycles_all_the_same() -> None:
    slow = [9_000, 12_000, 8_000]
    assert not enough("train", slices(slow, 5))
    assert enough("train", slices(slow, 6))


def test_parts_have_a_time_of_their_own_however_even_their_slices_are() -> None:
    there = int(schedule.PARTS_SHARE * PROTOCOL.slices_max_ns / (300 * made.MS))
    assert [enough("parts", slices([300], count)) for count in (there - 1, there)] == [False, True]
    assert [enough("parts", slices([9_000], count)) for count in (5, 6)] == [False, True]


@pytest.mark.parametrize(
    ("protocol", "steps", "batch", "left_to_train", "stages"),
    [
        (PROTOCOL, 100, 32, 0.5, STAGES[:-1]),
        (PROTOCOL, 100, 1, 0.6, ("train", "epoch", "predict_one", "predict_all")),
        (PROTOCOL, 1, 32, 0.7, ("train", "predict_one", "predict_batch", "predict_all")),
        (Protocol(kind="published"), 100, 32, 0.5, STAGES[:-1]),
        (SWEEP, 100, 32, 1.0, ("train",)),
    ],
)
def test_a_stage_that_there_is_not_leaves_its_share_to_the_steps(
    protocol: Protocol, steps: int, batch: int, left_to_train: float, stages: tuple[str, ...]
) -> None:
    workload = dataclasses.replace(made.workload(steps=steps), batch=batch)
    found = schedule.shares(protocol, workload)
    assert tuple(found) == stages
    assert found["train"] == pytest.approx(left_to_train)
    assert sum(found.values()) == pytest.approx(1)


BATCHED, ONE_BY_ONE = ["predict_one", "predict_batch", "predict_all"], ["predict_one", "predict_all"]


@pytest.mark.parametrize(
    ("batch", "predicted", "stages"),
    [(32, None, BATCHED), (1, None, ONE_BY_ONE), (32, 1, ONE_BY_ONE), (1, 32, BATCHED)],
)
def test_a_model_that_is_not_trained_has_its_whole_time_for_predictions(
    batch: int, predicted: int | None, stages: list[str]
) -> None:
    workload = dataclasses.replace(made.workload(), predicts_only=True, batch=batch, predict_batch=predicted)
    found = schedule.shares(PROTOCOL, workload)
    assert list(found) == stages
    assert sum(found.values()) == pytest.approx(1)


def disturbed(column: list[Slice], *places: int) -> list[Slice]:
    """The slices with their cycles, of which others disturbed those at these places."""
    return [dataclasses.replace(slice_, cycle=cycle, disturbed=cycle in places) for cycle, slice_ in enumerate(column)]


def test_a_cycle_that_others_disturbed_is_measured_again() -> None:
    quiet, hit = slices([100], 6), disturbed(slices([50], 6), 2)
    assert enough("train", disturbed(quiet), disturbed(slices([50], 6)))
    assert not enough("train", disturbed(quiet), hit)
    assert enough("train", disturbed(slices([100], 7)), disturbed(slices([50], 7), 2))


def test_that_at_most_doubles_the_cycles() -> None:
    def ends_after(places: Sequence[int]) -> int:
        return next(
            count
            for count in itertools.count(1)
            if enough("train", disturbed(slices([100], count)), disturbed(slices([50], count), *places))
        )

    assert ends_after([]) == 6
    assert ends_after([0, 2, 4]) == 9
    assert ends_after([0, 2, 4, *range(6, 100)]) == 12


def test_where_twice_as_many_would_not_leave_enough_none_is_measured_again() -> None:
    assert enough("train", disturbed(slices([100], 6)), disturbed(slices([50], 6), *range(6)))
    assert enough("train", disturbed(slices([100], 6)), disturbed(slices([50], 6), *range(4)))
    assert not enough("train", disturbed(slices([100], 6)), disturbed(slices([50], 6), *range(3)))
