import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

import pytest

from kerasbench.plan.stages import shares_of, stages_of
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import TURNS_FOR_ONE, TrialPlan
from kerasbench.protocol.stages import AGENDAS, CALLS, GENERATIONS
from kerasbench.results.run import QUICK, SWEEP
from kerasbench.runs import turns
from tests import made


@pytest.mark.parametrize("columns", range(1, 9))
def test_in_whole_squares_every_column_follows_every_other_and_has_every_place_equally_often(columns: int) -> None:
    length = len(turns.williams(range(columns)))
    orders = list(islice(turns.draw_orders("7/1")(columns), 2 * length))
    assert all(sorted(order) == list(range(columns)) for order in orders)
    neighbours = Counter(pair for order in orders for pair in pairwise(order))
    places = Counter((place, column) for order in orders for place, column in enumerate(order))
    assert len(neighbours) == columns * (columns - 1)
    assert len(set(neighbours.values())) <= 1 and len(set(places.values())) == 1


def test_orders_are_the_same_for_the_same_seed_and_others_for_another_and_for_the_next_stage() -> None:
    def first(seed: str) -> list[list[Sequence[int]]]:
        draw = turns.draw_orders(seed)
        return [list(islice(draw(4), 8)) for _ in range(2)]

    assert first("7/1") == first("7/1")
    assert first("7/1")[0] != first("7/1")[1]
    assert first("7/1")[0] != first("7/2")[0]


def test_a_quota_recovers_between_turns() -> None:
    assert [turns.rest_s(cores, 2) for cores in (None, 0.5, 2.0)] == [0.0, turns.QUOTA_PERIOD_S, 0.0]


PROTOCOL = TrialPlan()
SHARES = shares_of(PROTOCOL, made.workload())
LOUD, SLOW = [100, 150, 300, 120], [9_000, 12_000, 8_000]


def slices(times_ms: Sequence[float], cycles: int, disturbed: Sequence[int] = ()) -> list[Slice]:
    """A column's slices: these times over and over, of which others disturbed those of some cycles."""
    times_ns = [int(ms * made.MS) for ms in islice(itertools.cycle(times_ms), cycles)]
    return [Slice(1, ns, cycle, disturbed=cycle in disturbed) for cycle, ns in enumerate(times_ns)]


def enough(stage: str, *columns: list[Slice], most: int | None = None) -> bool:
    return turns.enough(PROTOCOL, SHARES, stage, columns, most)


def test_a_quick_look_at_steps_of_many_seconds_has_one_or_two_of_each() -> None:
    def ends(step_s: float, cycles: int) -> bool:
        columns = [slices([1000 * step_s], cycles), slices([500 * step_s], cycles)]
        return turns.enough(QUICK.plan, SHARES, "train", columns)

    assert [step_s for step_s in (5, 10, 20) if ends(step_s, 1)] == [20]
    assert [step_s for step_s in (5, 10, 20) if ends(step_s, 2)] == [10, 20]
    assert not ends(20, 0)


def test_a_stage_stops_when_its_loudest_pair_is_quiet_whatever_all_have_alike() -> None:
    for cycles in (PROTOCOL.min_cycles - 1, PROTOCOL.min_cycles):
        pair = slices([100, 100.2], cycles), slices([50, 50.1], cycles)
        assert enough("train", *pair) is (cycles == PROTOCOL.min_cycles)
    drift = [100, 130, 90, 200, 120, 160]
    assert enough("train", slices(drift, 6), slices([2 * ms for ms in drift], 6))
    assert not enough("train", slices(drift, 6))
    assert not enough("train", slices(drift, 6), slices([200], 6))
    quiet = slices([100], 10)
    assert enough("train", quiet, quiet)
    assert not enough("train", quiet, quiet, slices([100, 150], 10))


def test_a_loud_stage_ends_when_a_column_has_had_its_share_of_the_time() -> None:
    long_ns = SHARES["train"] * PROTOCOL.slices_max_ns
    for count in range(6, 80):
        column = slices(LOUD, count)
        spent_ns = sum(slice_.ns for slice_ in column)
        assert enough("train", column, slices([100], count)) is (spent_ns >= long_ns)


def test_a_loud_stage_ends_at_the_cycles_that_a_block_is_worth() -> None:
    pair = slices(LOUD, 20), slices([100], 20)
    assert [enough("train", *pair, most=most) for most in (3, 20, 21)] == [True, True, False]
    assert not enough("train", *(column[:5] for column in pair), most=3)
    assert not enough("train", slices(LOUD, 20, [1, 2]), slices([100], 20), most=20)


@pytest.mark.parametrize(
    ("stage", "times_ms", "cycles"),
    [
        ("epoch", SLOW, turns.LEAST_CYCLES),
        ("predict_all", SLOW, turns.LEAST_CYCLES),
        ("train", SLOW, PROTOCOL.min_cycles),
        ("epoch", [100, 100], PROTOCOL.min_cycles),
        ("parts", [9_000], PROTOCOL.min_cycles),
        ("parts", [300], math.ceil(turns.PARTS_SHARE * PROTOCOL.slices_max_ns / (300 * made.MS))),
    ],
)
def test_how_many_cycles_slow_units_have(stage: str, times_ms: list[float], cycles: int) -> None:
    assert [enough(stage, slices(times_ms, count)) for count in (cycles - 1, cycles)] == [False, True]


CALLED = TrialPlan().of_kind("calls")
TRAINED = tuple(AGENDAS["steady"].shares)
BATCHED, ONE_BY_ONE = ("predict_one", "predict_batch", "predict_all"), ("predict_one", "predict_all")
UNTRAINED = {"predicts_only": True}


@pytest.mark.parametrize(
    ("plan", "different", "stages", "first_share"),
    [
        (PROTOCOL, {}, TRAINED, 0.5),
        (PROTOCOL, {"batch": 1}, ("train", "epoch", *ONE_BY_ONE), 0.6),  # what there is not is left to the steps
        (PROTOCOL, {"steps": 1}, ("train", *BATCHED), 0.7),
        (PROTOCOL, {"loops": True}, ("train",), 1.0),
        (PROTOCOL, {"new_tokens": 32}, TRAINED, 0.5),
        (TrialPlan().of_kind("published"), {}, TRAINED, 0.5),
        (SWEEP, {}, ("train",), 1.0),
        (TrialPlan().of_kind("sweep_predictions"), UNTRAINED, ("predict_batch",), 1.0),
        (TrialPlan().of_kind("sweep_predictions"), UNTRAINED | {"predict_batch": 1}, ("predict_one",), 1.0),
        (PROTOCOL, UNTRAINED, BATCHED, 0.3),
        (PROTOCOL, UNTRAINED | {"batch": 1}, ONE_BY_ONE, 0.5),
        (PROTOCOL, UNTRAINED | {"predict_batch": 1}, ONE_BY_ONE, 0.5),
        (PROTOCOL, UNTRAINED | {"batch": 1, "predict_batch": 32}, BATCHED, 0.3),
        (CALLED, {}, (*BATCHED, *CALLS), 1 / 9),
        (CALLED, {"batch": 1}, (*ONE_BY_ONE, *CALLS[::2]), 1 / 5),
        (CALLED, {"new_tokens": 32}, (*BATCHED, *CALLS, *GENERATIONS[:-1]), 1 / 11),
        (CALLED, {"new_tokens": 32, "own_generate": True}, (*BATCHED, *CALLS, GENERATIONS[-1]), 1 / 10),
    ],
)
def test_shares(plan: TrialPlan, different: dict[str, Any], stages: tuple[str, ...], first_share: float) -> None:
    shares = shares_of(plan, dataclasses.replace(made.workload(), **different))
    assert tuple(shares) == stages
    assert shares[stages[0]] == pytest.approx(first_share)
    assert sum(shares.values()) == pytest.approx(1)


def test_a_soak_gives_its_control_a_turn_now_and_then_and_goes_on_for_its_time() -> None:
    orders = turns.long_orders([True, False])
    assert list(next(orders(2))) == [0, *[1] * TURNS_FOR_ONE]
    for controls in ([True, False], [False, True]):
        assert list(next(turns.long_orders(controls)(1))) == [0]  # the other has failed, whichever that was
    plan = TrialPlan(fixed_time=True, slices_max_ns=1_000)
    column = [Slice(1, 100, cycle) for cycle in range(9)]
    assert not turns.enough(plan, SHARES, "train", [column, column[:1]])
    assert turns.enough(plan, SHARES, "train", [[*column, Slice(1, 100, 9)], column[:1]])
    assert turns.enough(plan, SHARES, "predict_one", [column[:1], column[:1]])


@pytest.mark.parametrize(("batch", "stage"), [(32, "predict_batch"), (1, "predict_one")])
def test_a_soak_of_predictions_goes_on_with_the_largest_batch_that_there_is(batch: int, stage: str) -> None:
    workload = dataclasses.replace(made.workload(), batch=batch)
    plan = dataclasses.replace(TrialPlan().of_kind("calls"), fixed_time=True)
    plan = dataclasses.replace(plan, stages=stages_of(plan, workload))
    shares = shares_of(plan, workload)
    assert [running for running in shares if not turns.enough(plan, shares, running, [[Slice(1, 100)]])] == [stage]


@pytest.mark.parametrize(("disturbed", "cycles"), [([], 6), ([2], 7), ([0, 2, 4], 9), ([0, 2, 4, *range(6, 100)], 12)])
def test_cycles_that_others_disturbed_are_measured_again_up_to_as_many_more(disturbed: list[int], cycles: int) -> None:
    quiet, hit = slices([100], 100), slices([50], 100, disturbed)
    assert next(count for count in range(1, 100) if enough("train", quiet[:count], hit[:count])) == cycles


def test_none_is_measured_again_where_that_takes_minutes_or_does_not_leave_enough() -> None:
    hit = [enough("train", slices([100], 6), slices([50], 6, range(count))) for count in (3, 4, 6)]
    assert hit == [False, True, True]
    slow = [enough("train", slices([4_000], count, (2, 4, 6)), slices([4_000], count)) for count in (5, 8)]
    assert slow == [False, True]
