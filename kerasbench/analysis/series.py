"""What a step is made of: an overhead, and a cost for each sample. Fitted to a series; pure.

What a sweep shows: series over sizes, and where one overtakes another, with the uncertainty of that; pure.
"""

import dataclasses
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice, pairwise
from typing import NamedTuple

from kerasbench.analysis.cases import STEADY, Row
from kerasbench.analysis.estimates import (
    CONFIDENCE,
    Estimate,
    LogEstimate,
    Verdict,
    judge_all,
    percentile,
    t_draws,
    t_quantile,
)
from kerasbench.analysis.rankings import believed
from kerasbench.analysis.ratios import in_row
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import AXES, CPU, Axis, Column, Size
from kerasbench.protocol.messages import Code
from kerasbench.text import label

MIN_SIZES = 3  # two points lie on any line
FIT_TOLERANCE = 0.1  # a line that misses a size by more than a tenth, and by more than its interval, explains nothing
UNKNOWN_ERROR = 0.05  # of a size without an interval; all alike, so that only their proportions count


@dataclass(frozen=True)
class Parameter:
    """A coefficient with its 95 % interval, in ms."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CostModel:
    """Step = ``overhead`` + ``per_sample`` x batch, in ms.

    ``deviation`` is the largest of the model from what was measured, as a share of that, and ``worst`` the batch where
    it is; ``fits`` is whether every size lies within FIT_TOLERANCE, or within its own interval.
    """

    overhead: Parameter
    per_sample: Parameter
    deviation: float
    worst: int
    fits: bool


def fit(steps_ms: Sequence[tuple[int, Estimate]]) -> CostModel | None:
    """Fit the line to a series by weighted least squares; None for fewer than MIN_SIZES sizes.

    The weights are the inverse squares of the sizes' standard errors, none below the median one: three trials that
    happen to agree shall not draw the line. The intervals of the coefficients are Student's t with two degrees less
    than there are sizes; where the sizes lie farther off the line than their errors, the errors are scaled up
    (R. T. Birge, "The calculation of errors by the method of least squares", Physical Review 40, 1932).
    """
    if len(steps_ms) < MIN_SIZES:
        return None
    found = [step for _, step in steps_ms]
    overhead, per_sample = _line([float(batch) for batch, _ in steps_ms], found)
    model = [overhead.value + per_sample.value * batch for batch, _ in steps_ms]
    deviations = [abs(ms / step.value - 1) for ms, step in zip(model, found, strict=True)]
    worst = max(range(len(deviations)), key=lambda index: deviations[index])
    allowed = [max(FIT_TOLERANCE, step.half_width or 0.0) for step in found]
    fits = all(one <= most for one, most in zip(deviations, allowed, strict=True))
    return CostModel(overhead, per_sample, deviations[worst], steps_ms[worst][0], fits)


def _line(sizes: Sequence[float], found: Sequence[Estimate]) -> tuple[Parameter, Parameter]:
    """Return intercept and slope of the weighted line."""
    times, errors = [step.value for step in found], _errors_ms(found)
    weights = [1 / error**2 for error in errors]
    total = sum(weights)
    centre, mean = (_dot(weights, values) / total for values in (sizes, times))
    spread = _dot(weights, [(size - centre) ** 2 for size in sizes])
    slope = _dot(weights, [(size - centre) * time for size, time in zip(sizes, times, strict=True)]) / spread
    intercept = mean - slope * centre
    misfit = _dot(weights, [(time - intercept - slope * size) ** 2 for size, time in zip(sizes, times, strict=True)])
    degrees = len(sizes) - 2
    known = any(_log_error(step) for step in found)
    reach = t_quantile(degrees) * math.sqrt(max(1.0 if known else 0.0, misfit / degrees))
    return (
        _around(intercept, reach * math.sqrt(1 / total + centre**2 / spread)),
        _around(slope, reach / math.sqrt(spread)),
    )


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _errors_ms(found: Sequence[Estimate]) -> list[float]:
    """Return the standard error of each size's step."""
    known = [error for one in found if (error := _log_error(one))]
    least = statistics.median(known) if known else UNKNOWN_ERROR
    return [max(_log_error(one), least) * one.value for one in found]


def _log_error(step: Estimate) -> float:
    """Return the standard error as a share of the step; 0 where it is not known."""
    return step.log_error or 0.0 if isinstance(step, LogEstimate) else 0.0


def _around(value: float, reach: float) -> Parameter:
    return Parameter(value, value - reach, value + reach)


DRAWS = 1_000  # of the bootstrap: the ends of an interval are then known to a few hundredths of its width
Ratios = Sequence[tuple[float, LogEstimate]]  # by ascending size


@dataclass(frozen=True)
class SizeSeries:
    """One workload along one axis: its rows by ascending size, with all else equal.

    ``duels`` are the pairs that a sweep answers for: one backend's CPU and GPU, and two backends on one device.
    """

    label: str
    axis: Axis
    rows: dict[float, Row]
    duels: "list[SeriesComparison]" = field(default_factory=list)

    @property
    def columns(self) -> list[Column]:
        """The columns in their order, but for controls."""
        found = {column for row in self.rows.values() for column in row.cases}
        return sorted((column for column in found if not column.options.control), key=lambda column: column.order)

    def steps_ms(self, column: Column) -> list[tuple[float, Estimate]]:
        """Return a column's series: the step at each size at which it was measured."""
        steps = []
        for size, row in self.rows.items():
            found = row.cases[column].estimate(STEADY) if column in row.cases else None
            if found is not None:
                steps.append((size, found))
        return steps

    def out_of_memory(self, column: Column) -> float | None:
        """Return the smallest size at which a column ran out of memory."""
        for size, row in self.rows.items():
            failure = row.cases[column].failure if column in row.cases else None
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

    @property
    def pairs(self) -> "list[Pair]":
        """The columns that are compared, with the ratio at each size at which both were measured."""
        return [
            Pair(a, b, found)
            for a, b in combinations(self.columns, 2)
            if _comparable(a, b) and (found := _well_known(self._ratios(a, b)))
        ]

    def _ratios(self, a: Column, b: Column) -> "Ratios":
        return [
            (size, found)
            for size, row in self.rows.items()
            if a in row.cases and b in row.cases and believed(row)
            if (found := in_row(row, a, b, STEADY)) is not None
        ]


class Pair(NamedTuple):
    """Two series that are compared: the ratio of their times, a over b, at each size."""

    a: Column
    b: Column
    ratios: Ratios


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
class SeriesComparison:
    """Two series that are compared: the ratio of their times, a over b, at each size, and where its sign changes.

    ``signs`` are 1 where a is significantly slower, -1 where it is faster, 0 where neither can be said (see ``signs``).
    """

    a: Column
    b: Column
    ratios: Ratios
    signs: list[int]
    crossings: list[Crossing]


def swept(summary: Summary) -> list[SizeSeries]:
    """Return every workload and axis along which there are two sizes or more; their duels are judged together."""
    grouped: dict[tuple[str, Axis], dict[float, Row]] = {}
    for row in summary.rows:
        for axis in AXES:
            size = row.size.along(axis) if row.size else None
            if size is not None:
                grouped.setdefault((_label(row, axis), axis), {})[float(size)] = row
    found = [SizeSeries(*key, dict(sorted(rows.items()))) for key, rows in grouped.items() if len(rows) > 1]
    pairs = [one.pairs for one in found]
    decided = iter(duels([pair for each in pairs for pair in each], summary.record.minimal_effect))
    return [
        dataclasses.replace(one, duels=list(islice(decided, len(each)))) for one, each in zip(found, pairs, strict=True)
    ]


def _label(row: Row, axis: Axis) -> str:
    """Return the row's name with what is the same along the axis."""
    assert row.size is not None
    rest = Size(width=row.size.width) if axis == "batch" else Size(batch=row.size.batch)
    return f"{label(row.scenario.name, row.workload.name)} {rest.label}".strip()


def _comparable(a: Column, b: Column) -> bool:
    if a.options != b.options:
        return False
    return a.device == b.device if a.backend != b.backend else CPU in (a.device, b.device)


def duels(pairs: Sequence[Pair], effect: float) -> list[SeriesComparison]:
    """Return who is slower at which size, of all pairs judged together, and where they cross."""
    signed = iter(signs([found for pair in pairs for _, found in pair.ratios], effect))
    return [_duel(pair, list(islice(signed, len(pair.ratios)))) for pair in pairs]


def _duel(pair: Pair, signs: list[int]) -> SeriesComparison:
    """Return the crossing between any two sizes at which the other one is slower.

    Between them may lie sizes at which the two cannot be told apart.
    """
    settled = [index for index, found in enumerate(signs) if found]
    crossings = []
    for first, last in pairwise(settled):
        if signs[first] != signs[last]:
            winner, loser = (pair.a, pair.b) if signs[first] > 0 else (pair.b, pair.a)
            crossings.append(crossing(winner, loser, pair.ratios[first : last + 1]))
    return SeriesComparison(*pair, signs, crossings)


def _well_known(ratios: Ratios) -> Ratios:
    """Leave out a size that was interrupted before it had enough rounds for an interval, where others have one."""
    proven = [(size, found) for size, found in ratios if found.has_interval]
    most = max((found.trials for _, found in ratios), default=0)
    return proven or [(size, found) for size, found in ratios if found.trials == most]


def signs(ratios: Sequence[LogEstimate], effect: float) -> list[int]:
    """Return 1 where a is significantly slower by more than the minimal effect, -1 where it is faster, else 0.

    Without an interval nothing is proven: what was measured is taken as it is.
    """
    verdicts = judge_all(ratios, effect)
    settled = {Verdict.SLOWER: 1, Verdict.FASTER: -1}
    return [
        settled.get(verdict, 0) if one.has_interval else (one.value > 1) - (one.value < 1)
        for one, verdict in zip(ratios, verdicts, strict=True)
    ]


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

    A parametric bootstrap: every d is drawn from Student's t about its mean with its standard error, DRAWS times.
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
