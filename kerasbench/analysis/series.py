"""What a sweep shows: series over sizes, and where one overtakes another, with the uncertainty of that; pure."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from kerasbench.analysis.cost_model import CostModel, fit
from kerasbench.analysis.estimates import CONFIDENCE, MIN_TRIALS_FOR_INTERVAL, Estimate, percentile, t_draws
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import STEADY, Column, Row, Summary
from kerasbench.analysis.verdicts import Verdict, judge, ratio
from kerasbench.exchange.devices import CPU
from kerasbench.exchange.messages import Code
from kerasbench.exchange.options import AXES, Axis, Size
from kerasbench.text import label

DRAWS = 1_000  # of the bootstrap: the ends of an interval are then known to a few hundredths of its width
Ratios = Sequence[tuple[float, Estimate]]  # by ascending size


@dataclass(frozen=True)
class Swept:
    """One regime along one axis: its rows by ascending size, with all else equal."""

    label: str
    axis: Axis
    rows: dict[float, Row]

    @property
    def columns(self) -> list[Column]:
        return sorted({column for row in self.rows.values() for column in row.cells})

    def steps_ms(self, column: Column) -> list[tuple[float, Estimate]]:
        """Return a column's series: the step at each size at which it was measured."""
        cells = ((size, row.cells.get(column)) for size, row in self.rows.items())
        return [(size, found) for size, cell in cells if cell and (found := cell.estimate(STEADY)) is not None]

    def out_of_memory(self, column: Column) -> float | None:
        """Return the smallest size at which a column ran out of memory."""
        failures = ((size, cell.failure) for size, row in self.rows.items() if (cell := row.cells.get(column)))
        return next((size for size, failure in failures if failure and failure.code is Code.OOM), None)

    def cost(self, column: Column) -> CostModel | None:
        """Return what a column's steps are made of; None along another axis than the batch, or for too few sizes."""
        return fit([(int(size), step) for size, step in self.steps_ms(column)]) if self.axis == "batch" else None


@dataclass(frozen=True)
class Crossing:
    """``winner`` is faster than ``loser`` at sizes above ``at``, and slower below.

    ``low`` and ``high`` are the ends of its 95 % interval, None where there were too few rounds for one; ``bracket``
    holds the measured sizes on both sides.
    """

    winner: Column
    loser: Column
    at: float
    low: float | None
    high: float | None
    bracket: tuple[float, float]


@dataclass(frozen=True)
class Duel:
    """Two series that are compared: the ratio of their times, a over b, at each size, and where its sign changes.

    ``signs`` are 1 where a is slower beyond doubt, -1 where it is faster, 0 where neither can be said (see ``sign``).
    """

    a: Column
    b: Column
    ratios: Ratios
    signs: list[int]
    crossings: list[Crossing]


def swept(summary: Summary) -> list[Swept]:
    """Return every regime and axis along which there are two sizes or more."""
    grouped: dict[tuple[str, Axis], dict[float, Row]] = {}
    for row in summary.rows:
        for axis in AXES:
            if row.size and (size := row.size.along(axis)) is not None:
                grouped.setdefault((_label(row, axis), axis), {})[float(size)] = row
    return [Swept(*key, dict(sorted(rows.items()))) for key, rows in grouped.items() if len(rows) > 1]


def _label(row: Row, axis: Axis) -> str:
    """Return the row's name with what is the same along the axis."""
    assert row.size is not None
    rest = Size(width=row.size.width) if axis == "batch" else Size(batch=row.size.batch)
    return f"{label(row.scenario.name, row.regime.name)} {rest.label}".strip()


def duels(found: Swept, effect: float) -> list[Duel]:
    """Return the pairs that a sweep answers for: one backend's CPU and GPU, and two backends on one device."""
    pairs = [(a, b, list(_ratios(found, a, b))) for a, b in combinations(found.columns, 2) if _comparable(a, b)]
    return [duel(a, b, ratios, effect) for a, b, ratios in pairs if ratios]


def _comparable(a: Column, b: Column) -> bool:
    if a[2] != b[2]:
        return False
    return a[1] == b[1] if a[0] != b[0] else CPU in (a[1], b[1])


def duel(a: Column, b: Column, ratios: Ratios, effect: float) -> Duel:
    """Return who is slower at which size, and the crossing between any two sizes at which that is the other one.

    Between them may lie sizes at which the two cannot be told apart. A size that was interrupted before it had enough
    rounds for an interval is left out, where others have one.
    """
    enough = min(MIN_TRIALS_FOR_INTERVAL, max(one.trials for _, one in ratios))
    ratios = [(size, one) for size, one in ratios if one.trials >= enough]
    signs = [sign(one, effect) for _, one in ratios]
    settled = [index for index, found in enumerate(signs) if found]
    crossings = [
        crossing(*((a, b) if signs[first] > 0 else (b, a)), ratios[first : last + 1])
        for first, last in pairwise(settled)
        if signs[first] != signs[last]
    ]
    return Duel(a, b, ratios, signs, crossings)


def _ratios(found: Swept, a: Column, b: Column) -> Iterator[tuple[float, Estimate]]:
    metric = BY_NAME[STEADY]
    for size, row in found.rows.items():
        cells = [row.cells.get(a), row.cells.get(b)]
        both = [cell.by_round(metric) for cell in cells if cell is not None and cell.failure is None]
        if len(both) == 2 and (paired := ratio(*both)) is not None:
            yield size, paired


def sign(a_over_b: Estimate, effect: float) -> int:
    """Return 1 where a is slower by more than the minimal effect beyond doubt, -1 where it is faster, else 0.

    Fewer than three rounds prove nothing: what they measured is taken as it is.
    """
    if a_over_b.trials < MIN_TRIALS_FOR_INTERVAL:
        return (a_over_b.value > 1) - (a_over_b.value < 1)
    return {Verdict.SLOWER: 1, Verdict.FASTER: -1}.get(judge(a_over_b, effect), 0)


def crossing(winner: Column, loser: Column, ratios: Ratios) -> Crossing:
    """Return where the sign of d = log(a/b) changes between the ends of these sizes, at which it is known.

    d is interpolated over log2(size). Its interval is a parametric bootstrap's: every d is drawn anew from Student's t
    about its mean with its standard error, DRAWS times. Where noise makes several changes, the middle one counts.
    """
    places = [math.log2(size) for size, _ in ratios]
    logs = [math.log(one.value) for _, one in ratios]
    at = 2 ** middle_change(places, logs)
    below, above = max(s for s, _ in ratios if s <= at), min(s for s, _ in ratios if s >= at)
    low, high = _interval(places, logs, ratios)
    return Crossing(winner, loser, at, low, high, (below, above))


def _interval(
    places: Sequence[float], logs: Sequence[float], ratios: Ratios
) -> tuple[float, float] | tuple[None, None]:
    if any(one.trials < MIN_TRIALS_FOR_INTERVAL for _, one in ratios):
        return None, None
    rng = random.Random(0)  # the same data have the same tables
    drawn = [
        [log + one.log_error * t for t in t_draws(one.degrees, [rng.random() for _ in range(DRAWS)])]
        for log, (_, one) in zip(logs, ratios, strict=True)
    ]
    falls = logs[0] > 0
    oriented = ([value if falls else -value for value in one] for one in zip(*drawn, strict=True))
    changes = sorted(middle_change(places, one) for one in oriented)
    tail = (1 - CONFIDENCE) / 2
    return 2 ** percentile(changes, tail), 2 ** percentile(changes, 1 - tail)


def middle_change(places: Sequence[float], values: Sequence[float]) -> float:
    """Return where values fall, or rise, through zero, between neighbours by linear interpolation.

    Of several changes the middle one. Where both ends have the same sign there is none to speak of: it lies at the last
    place if all is still above zero, at the first if all is below already.
    """
    changes = [
        x + (x_next - x) * value / (value - value_next)
        for (x, value), (x_next, value_next) in pairwise(zip(places, values, strict=True))
        if (value > 0) != (value_next > 0)
    ]
    if len(changes) % 2 == 0:
        return places[-1] if values[0] > 0 else places[0]
    return changes[len(changes) // 2]
