from collections.abc import Sequence

import pytest

from kerasbench.analysis.movement import LEAST_SHARE, judge_movement, standstills
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Measurement, Movement
from kerasbench.protocol.messages import Code
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH

MOVED, LATER = made.movement().first, made.movement().later


def cases(
    torch: Movement | None, *others: Movement | None, dtype: str = "float32"
) -> dict[Column, tuple[str, Measurement]]:
    columns = (TORCH, JAX, TENSORFLOW)
    resolved = {"compute_dtypes": [dtype]}
    return {
        column: ("cpu", made.changed(made.measurement(), movement=movement, resolved=resolved))
        for column, movement in zip(columns, (torch, *others), strict=False)
    }


@pytest.mark.parametrize(
    ("first", "stands_still"),
    [
        (MOVED, False),
        ([9e-4, 4e-3, 5e-4, 1e-3], False),  # other backends round otherwise
        ([0, 0, 1e-3, 1e-3], True),  # a layer is cut off
        ([1e-5, 2e-3, 1e-3, 1e-3], True),  # moved by nothing but the decay of its weights
        ([0, 0, 0, 0], True),  # nothing is trained
    ],
)
@pytest.mark.parametrize("others", [1, 2])
def test_what_leaves_weights_as_they_are_has_no_number(first: Sequence[float], stands_still: bool, others: int) -> None:
    failures = judge_movement(cases(made.movement(first), *[made.movement()] * others))
    assert list(failures) == ([TORCH] if stands_still else [])
    assert {failure.code for failure in failures.values()} <= {Code.PARITY}


def test_the_cause_names_a_weight_and_where_it_moves() -> None:
    (failure,) = judge_movement(cases(made.movement([0, 0, 1e-3, 1e-3]), made.movement())).values()
    assert failure.cause == (
        "dense/kernel and 1 more of 4 trainable matrices stood still in its first steps, and moved on JAX "
        "(67 % of what is trained there)"
    )


def test_two_that_do_not_train_a_layer_do_not_outvote_the_one_that_does() -> None:
    still = made.movement([0, 0, 1e-3, 1e-3])
    assert list(judge_movement(cases(still, still, made.movement()))) == [TORCH, JAX]


def test_weights_that_stop_later_are_seen_where_as_many_steps_were_made() -> None:
    stopped = [0, 0, *LATER[2:]]
    assert list(judge_movement(cases(made.movement(later=stopped), made.movement()))) == [TORCH]
    slow = [0.05 * LATER[0], *LATER[1:]]  # a loss as small as rounding errors: each column goes its own way
    assert judge_movement(cases(made.movement(later=slow), made.movement())) == {}
    few = made.movement(later=stopped, steps=400, updates=400)
    assert judge_movement(cases(few, made.movement())) == {}  # they may not have met the rows that move it


def test_what_rounding_alone_moves_may_stand_still() -> None:
    noise = made.movement([1e-3, 1e-9, 1e-3, 1e-3], [1e-2, 1e-8, 1e-2, 1e-2])
    silent = made.movement([1e-3, 0, 1e-3, 1e-3], [1e-2, 0, 1e-2, 1e-2])
    pair = cases(silent, noise)
    assert (judge_movement(pair), standstills(pair)) == ({}, {})


def test_few_numbers_that_stand_still_are_marked_alone() -> None:
    pair = cases(made.movement([1e-3, 2e-3, 1e-3, 0]), made.movement())
    assert judge_movement(pair) == {}
    (still,) = standstills(pair).values()
    assert (still.weights, still.beside) == (("dense_1/bias",), "JAX") and still.share < LEAST_SHARE


@pytest.mark.parametrize(("updates", "fails"), [(1_000, False), (950, False), (500, True), (0, True), (None, False)])
def test_steps_without_an_update_are_no_steps(updates: int | None, fails: bool) -> None:
    failures = judge_movement(cases(made.movement(updates=updates), made.movement(steps=3_000, updates=3_000)))
    assert list(failures) == ([TORCH] if fails else [])


def test_an_optimizer_that_counts_otherwise_everywhere_is_no_fault() -> None:
    assert judge_movement(cases(made.movement(updates=500), made.movement(steps=3_000, updates=1_500))) == {}
    assert judge_movement(cases(made.movement(updates=0), made.movement(updates=0))) == {}


def test_what_cannot_be_compared_is_not() -> None:
    still, other = made.movement([0, 0, 1e-3, 1e-3]), made.movement(sizes=(999, 10, 500, 5))
    assert judge_movement(cases(still, other)) == {}  # another model
    assert judge_movement(cases(still)) == judge_movement(cases(still, None)) == {}
    assert judge_movement(cases(still, made.movement(), dtype="float16")) == {}  # gradients may overflow at first
