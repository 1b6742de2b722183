"""Whether the cases of a row train the same weights: no loss shows it where a learning rate, or a loss, is small."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kerasbench.analysis.names import names
from kerasbench.analysis.parity import Cases, compared
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Movement
from kerasbench.protocol.messages import Code, Failure
from kerasbench.text import percent

# A weight stands still that moves by less than this part of what it moves on another backend. In float32 on a CPU a
# dense network's weights move by the same distance to four digits in the first steps, which are the same everywhere.
STILL = 0.1
# Of later steps columns have different numbers, and where a loss is as small as rounding errors, each goes its own way.
STILL_LATER = 1e-3
# What moves by less than this part of a model's median weight is moved by rounding alone.
QUIET = 1e-2
LEAST_SHARE = 0.01  # of the numbers that training moves; where fewer stand still, a column is only marked
LEAST_STEPS = 0.5  # of another's: in fewer, it may not have met the rows that move a weight
LEAST_UPDATES = 0.9  # of another's for each step

HALF = "float16"  # whose gradients may overflow: such a step is left out, and counts
CUT = "look for a layer that is skipped, or cuts the gradient off, on this backend alone"
SKIPPED = "look for code that skips steps on this backend alone, such as a train_function or train_step of its own"


class Standstill(NamedTuple):
    """Which weights one column leaves where they are, though another moves them."""

    weights: tuple[str, ...]
    total: int  # how many weights are trainable
    share: float  # of the numbers that training moves on the other
    beside: str  # what the other is called
    when: str

    @property
    def cause(self) -> str:
        first, *others = self.weights
        more = f" and {len(others)} more" if others else ""
        which = f"{first}{more} of {self.total} trainable matrices"
        return f"{which} stood still {self.when}, and moved on {self.beside}"


def judge_movement(cases: Cases) -> dict[Column, Failure]:
    """Return the cases that do less of the work than another: steps without an update, or weights that stand still."""
    failures = {}
    for column, (movement, others) in _comparisons(cases).items():
        if cause := _skipped_steps(movement, others):
            failures[column] = Failure(Code.PARITY, cause, SKIPPED, "parity")
        elif (standstill := _standstill(movement, others)) and standstill.share >= LEAST_SHARE:
            cause = f"{standstill.cause} ({percent(standstill.share)} of what is trained there)"
            failures[column] = Failure(Code.PARITY, cause, CUT, "parity")
    return failures


def standstills(cases: Cases) -> dict[Column, Standstill]:
    """Return the cases in which so few numbers stand still that they are marked alone."""
    by_column = {column: _standstill(*pair) for column, pair in _comparisons(cases).items()}
    return {column: still for column, still in by_column.items() if still is not None and still.share < LEAST_SHARE}


def _comparisons(cases: Cases) -> dict[Column, tuple[Movement, Mapping[str, Movement]]]:
    """Return for each column how its weights moved, and those of the columns it is held against, by their names."""
    movements = {
        column: measurement.movement
        for column, (_, measurement) in cases.items()
        if measurement.movement is not None and HALF not in measurement.resolved.compute_dtypes
    }
    pairs = {column: (movement, others) for column, (movement, others, _) in compared(cases, movements).items()}
    called = names(cases)
    same_model = {
        column: {
            called[rival]: other for rival, other in others.items() if other.sizes == movement.sizes and rival != column
        }
        for column, (movement, others) in pairs.items()
    }
    return {column: (pairs[column][0], others) for column, others in same_model.items()}


def _skipped_steps(movement: Movement, others: Mapping[str, Movement]) -> str:
    for rival, other in others.items():
        if movement.updates is None or not other.updates or not movement.steps or not other.steps:
            continue
        if movement.updates / movement.steps < LEAST_UPDATES * other.updates / other.steps:
            counted = f"{movement.updates:,} updates of the weights in {movement.steps:,} steps"
            return f"its optimizer made {counted}, that of {rival} {other.updates:,} in {other.steps:,}"
    return ""


def _standstill(movement: Movement, others: Mapping[str, Movement]) -> Standstill | None:
    """Return what stands still beside the column that moves the most of it; None: nothing does."""
    candidates = []
    for rival, other in others.items():
        candidates.append(_beside(movement, movement.first, other.first, rival, "in its first steps", STILL))
        if movement.steps >= LEAST_STEPS * other.steps:
            candidates.append(
                _beside(movement, movement.later, other.later, rival, "while it was measured", STILL_LATER)
            )
    return max(filter(None, candidates), key=lambda standstill: standstill.share, default=None)


def _beside(
    movement: Movement, distances: Sequence[float], others: Sequence[float], rival: str, when: str, part: float
) -> Standstill | None:
    positive = [distance for distance in others if distance > 0]
    least = QUIET * statistics.median(positive) if positive else 0.0
    in_training = [place for place, distance in enumerate(others) if distance > least]
    at_rest = [place for place in in_training if distances[place] < part * others[place]]
    if not at_rest:
        return None
    share = sum(movement.sizes[place] for place in at_rest) / sum(movement.sizes[place] for place in in_training)
    return Standstill(tuple(movement.weights[place] for place in at_rest), len(others), share, rival, when)
