"""What a sweep shows: series over sizes, and where one overtakes another, with the uncertainty of that; pure."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

from kerasbench.analysis.cells import STEADY, Row
from kerasbench.analysis.cost_model import CostModel, fit
from kerasbench.analysis.estimates import CONFIDENCE, Estimate, LogEstimate, percentile, t_draws
from kerasbench.analysis.ratios import between
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.verdicts import Verdict, judge
from kerasbench.exchange.devices import CPU
from kerasbench.exchange.messages import Code
from kerasbench.exchange.options import AXES, Axis, Size
from kerasbench.results.keys import Column
from kerasbench.text import label

DRAWS = 1_000  # of the bootstrap: the ends of an interval are then known to a few hundredths of its width
Ratios = Sequence[tuple[float, LogEstimate]]  # by ascending size


@dataclass(frozen=True)
class Swept:
    """One regime along one axis: its rows by ascending size, with all else equal.

    ``effect`` is the smallest difference that is called one.
    """

    label: str
    axis: Axis
    rows: dict[float, Row]
    effect: float

    @property
    def columns(self) -> list[Column]:
        return sorted({column for row in self.rows.values() for column in row.cells})

    def steps_ms(self, column: Column) -> list[tuple[float, Estimate]]:
        """Return a column's series: the step at each size at which it was measured."""
        steps = []
        for size, row in self.rows.items():
            found = row.cells[column].estimate(STEADY) if column in row.cells else None
            if found is not None:
                steps.append((size, found))
        return steps

    def out_of_memory(self, column: Column) -> float | None:
        """Return the smallest size at which a column ran out of memory."""
        for size, row in self.rows.items():
            failure = row.cells[column].failure if column in row.cells else None
            if failure is not None and failure.code is Code.OOM:
                return size
        return None

    def cost(self, column: Column) -> CostModel | None:
        """Return what a column's steps are made of; None along another axis than the batch, or for too few sizes."""
        return fit([(int(size), step) for size, step in self.steps_ms(column)]) if self.axis == "batch" else None

    @cached_property
    def costs(self) -> dict[Column, CostModel]:
        """What the steps of each column are made of, where that is known."""
        found = {column: self.cost(column) for column in self.columns}
        return {column: model for column, model in found.items() if model is not None}

    @cached_property
    def duels(self) -> "list[Duel]":
        """The pairs that a sweep answers for: one backend's CPU and GPU, and two backends on one device."""
        found = []
        for a, b in combinations(self.columns, 2):
            ratios = self._ratios(a, b) if _comparable(a, b) else []
            if ratios:
                found.append(duel(a, b, ratios, self.effect))
        return found

    def _ratios(self, a: Column, b: Column) -> Ratios:
        """Return the ratio of two columns' steps at each size at which both were measured in one round."""
        ratios = []
        for size, row in self.rows.items():
            if a in row.cells and b in row.cells:
                found = between(row.cells[a], row.cells[b], STEADY)
                if found is not None:
                    ratios.append((size, found))
        return ratios


@dataclass(frozen=True)
class Crossing:
    """``winner`` is faster than ``loser`` at sizes above ``at``, and slower below.

    ``bracket`` holds the measured sizes on both sides, ``ratios`` those from which its interval is drawn.
    """

    winner: Column
    loser: Column
    at: float
    bracket: tuple[float, float]
    ratios: Ratios

    @property
    def has_interval(self) -> bool:
        """Whether there were enough rounds for one; unlike the interval itself this costs nothing to know."""
        return all(ratio.has_interval for _, ratio in self.ratios)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Where it lies with 95 %; None without an interval."""
        return crossing_interval(self.ratios) if self.has_interval else None


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
            size = row.size.along(axis) if row.size else None
            if size is not None:
                grouped.setdefault((_label(row, axis), axis), {})[float(size)] = row
    effect = summary.record.minimal_effect
    return [Swept(*key, dict(sorted(rows.items())), effect) for key, rows in grouped.items() if len(rows) > 1]


def _label(row: Row, axis: Axis) -> str:
    """Return the row's name with what is the same along the axis."""
    assert row.size is not None
    rest = Size(width=row.size.width) if axis == "batch" else Size(batch=row.size.batch)
    return f"{label(row.scenario.name, row.regime.name)} {rest.label}".strip()


def _comparable(a: Column, b: Column) -> bool:
    if a[2] != b[2]:
        return False
    return a[1] == b[1] if a[0] != b[0] else CPU in (a[1], b[1])


def duel(a: Column, b: Column, ratios: Ratios, effect: float) -> Duel:
    """Return who is slower at which size, and the crossing between any two sizes at which that is the other one.

    Between them may lie sizes at which the two cannot be told apart.
    """
    ratios = _well_known(ratios)
    signs = [sign(found, effect) for _, found in ratios]
    settled = [index for index, found in enumerate(signs) if found]
    crossings = []
    for first, last in pairwise(settled):
        if signs[first] != signs[last]:
            winner, loser = (a, b) if signs[first] > 0 else (b, a)
            crossings.append(crossing(winner, loser, ratios[first : last + 1]))
    return Duel(a, b, ratios, signs, crossings)


def _well_known(ratios: Ratios) -> Ratios:
    """Leave out a size that was interrupted before it had enough rounds for an interval, where others have one."""
    proven = [(size, found) for size, found in ratios if found.has_interval]
    most = max(found.trials for _, found in ratios)
    return proven or [(size, found) for size, found in ratios if found.trials == most]


def sign(a_over_b: LogEstimate, effect: float) -> int:
    """Return 1 where a is slower by more than the minimal effect beyond doubt, -1 where it is faster, else 0.

    Without an interval nothing is proven: what was measured is taken as it is.
    """
    if not a_over_b.has_interval:
        return (a_over_b.value > 1) - (a_over_b.value < 1)
    return {Verdict.SLOWER: 1, Verdict.FASTER: -1}.get(judge(a_over_b, effect), 0)


def crossing(winner: Column, loser: Column, ratios: Ratios) -> Crossing:
    """Return where the sign of d = log(a/b) changes between the ends of these sizes, at which it is known.

    d is interpolated over log2(size). Where noise makes several changes, the middle one counts.
    """
    at = 2 ** middle_change(_places(ratios), [found.log_centre for _, found in ratios])
    below = max(size for size, _ in ratios if size <= at)
    above = min(size for size, _ in ratios if size >= at)
    return Crossing(winner, loser, at, (below, above), ratios)


def crossing_interval(ratios: Ratios) -> tuple[float, float]:
    """Return between which sizes the sign changes with 95 %, for ratios that all have an interval.

    A parametric bootstrap: every d is drawn anew from Student's t about its mean with its standard error, DRAWS times.
    """
    rng = random.Random(0)  # the same data have the same tables
    falls = ratios[0][1].log_centre > 0
    drawn = zip(*(_draws(found, rng) for _, found in ratios), strict=True)
    oriented = (one if falls else [-value for value in one] for one in drawn)
    changes = sorted(middle_change(_places(ratios), one) for one in oriented)
    tail = (1 - CONFIDENCE) / 2
    return 2 ** percentile(changes, tail), 2 ** percentile(changes, 1 - tail)


def _draws(found: LogEstimate, rng: random.Random) -> list[float]:
    assert found.log_error is not None
    uniforms = [rng.random() for _ in range(DRAWS)]
    return [found.log_centre + found.log_error * t for t in t_draws(found.degrees, uniforms)]


def _places(ratios: Ratios) -> list[float]:
    return [math.log2(size) for size, _ in ratios]


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
