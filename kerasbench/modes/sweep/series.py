"""What a sweep shows: series over sizes, what their steps are made of, and where one overtakes another."""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise

from kerasbench import variants
from kerasbench.analysis.contrasts import Contrast, believed, between, judge
from kerasbench.analysis.estimates import CONFIDENCE, Estimate, Interval, LogEstimate, Verdict, t_quantile
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary, derived
from kerasbench.protocol.columns import AXES, CPU, Axis, Column, Size
from kerasbench.protocol.messages import Code

MIN_SIZES = 3  # two points lie on any line
FIT_TOLERANCE = 0.1  # a line that misses a size by more than a tenth, and by more than its interval, explains nothing
UNKNOWN_ERROR = 0.05  # of a size without an interval; all alike, so that only their proportions count


@dataclass(frozen=True)
class CostModel:
    """Step, or prediction = ``overhead`` + ``per_sample`` x batch, in ms."""

    overhead: Interval
    per_sample: Interval
    deviation: float  # the largest of the model from what was measured, as a share of that
    fits: bool  # every size lies within FIT_TOLERANCE, or within its own interval


def fit(times_ms: Sequence[tuple[float, Estimate]]) -> CostModel | None:
    """Fit the line to a series by weighted least squares; None for fewer than MIN_SIZES sizes.

    No standard error counts as less than the median one, so that three trials that agree do not draw the line. Those of
    sizes that lie farther off the line are scaled up (R. T. Birge, Physical Review 40, 1932).
    """
    if len(times_ms) < MIN_SIZES:
        return None
    import numpy as np

    steps = [step for _, step in times_ms]
    shares = [(step.log_error or 0.0) if isinstance(step, LogEstimate) else 0.0 for step in steps]
    above_zero = [share for share in shares if share]
    least = statistics.median(above_zero) if above_zero else UNKNOWN_ERROR
    batches = np.array([batch for batch, _ in times_ms], float)
    times = np.array([step.value for step in steps])
    errors = np.array([max(share, least) * step.value for share, step in zip(shares, steps, strict=True)])
    (slope, intercept), covariance = np.polyfit(batches, times, 1, w=1 / errors, cov="unscaled")
    model = intercept + slope * batches
    degrees = len(steps) - 2
    misfit = float(np.sum(((times - model) / errors) ** 2)) / degrees
    reach = t_quantile(degrees) * math.sqrt(max(1.0 if above_zero else 0.0, misfit))
    per_sample, overhead = (
        Interval(float(value), float(value - reach * error), float(value + reach * error))
        for value, error in zip((slope, intercept), np.sqrt(np.diag(covariance)), strict=True)
    )
    deviations = np.abs(model / times - 1)
    allowed = [max(FIT_TOLERANCE, step.half_width or 0.0) for step in steps]
    return CostModel(overhead, per_sample, float(np.max(deviations)), fits=bool(np.all(deviations <= allowed)))


DRAWS = 1_000  # of the bootstrap: the ends of an interval are then known to a few hundredths of its width
Ratios = Sequence[tuple[float, LogEstimate]]  # by ascending size


@dataclass(frozen=True)
class SeriesPair:
    """One series over another at each size, ascending, and where that changes."""

    over: Column
    under: Column
    contrasts: dict[float, Contrast]
    signs: list[int]  # 1 where the one above is significantly slower, -1 where it is faster, 0 where neither is known
    crossings: "list[Crossing]"


def duel_of(over: Column, under: Column, contrasts: dict[float, Contrast]) -> SeriesPair:
    signs = [sign(contrast.ratio, contrast.verdict) for contrast in contrasts.values()]
    ratios = [(size, contrast.ratio) for size, contrast in contrasts.items()]
    return SeriesPair(over, under, contrasts, signs, crossings(over, under, ratios, signs))


@dataclass(frozen=True)
class SizeSeries:
    """One workload along one axis, with all else equal."""

    name: str  # of the workload
    rest: str  # of its size: what is the same along the axis
    axis: Axis
    rows: dict[float, Row]  # by ascending size
    duels: list[SeriesPair] = field(default_factory=list)  # a backend's CPU and GPU; two backends on one device

    @property
    def label(self) -> str:
        return f"{self.name} {self.rest}".strip()

    @property
    def crossings(self) -> "list[Crossing]":
        return [crossing for duel in self.duels for crossing in duel.crossings]

    @property
    def columns(self) -> list[Column]:
        columns = {column for row in self.rows.values() for column in row.cases if not column.options.control}
        return sorted(columns, key=lambda column: column.order)

    def times_ms(self, column: Column) -> list[tuple[float, Estimate]]:
        return [
            (size, step)
            for size, row in self.rows.items()
            if column in row.cases and (step := row.cases[column].estimate(row.headline)) is not None
        ]

    def out_of_memory(self, column: Column) -> float | None:
        failures = {size: row.cases[column].failure for size, row in self.rows.items() if column in row.cases}
        return next((size for size, failure in failures.items() if failure and failure.code is Code.OOM), None)

    @cached_property
    def costs(self) -> dict[Column, CostModel]:
        """Along batches alone; none of a column with too few sizes."""
        costs = {column: fit(self.times_ms(column)) for column in self.columns if self.axis == "batch"}
        return {column: cost for column, cost in costs.items() if cost is not None}

    @property
    def pairs(self) -> dict[tuple[Column, Column], dict[float, Contrast]]:
        """The columns that are compared, at each size; ones interrupted before an interval go where others have one."""
        pairs = {}
        for a, b in combinations(self.columns, 2):
            if not is_duel(a, b):
                continue
            rows = {size: row for size, row in self.rows.items() if {a, b} <= row.cases.keys() and believed(row)}
            contrasts = {
                size: contrast
                for size, row in rows.items()
                if (contrast := between(row, a, b, row.headline)) is not None
            }
            proven = {size: contrast for size, contrast in contrasts.items() if contrast.ratio.has_interval}
            most = max((contrast.ratio.trials for contrast in contrasts.values()), default=0)
            pairs[a, b] = proven or {size: pair for size, pair in contrasts.items() if pair.ratio.trials == most}
        return pairs


def is_duel(a: Column, b: Column) -> bool:
    """Tell whether one thing differs: the backend, CPU or GPU, or the model itself and one that it was exported to."""
    if a.options == b.options:
        return a.device == b.device if a.backend != b.backend else CPU in (a.device, b.device)
    itself = dict.fromkeys(variant.name for variant in variants.ALL if variant.exports)
    return b.with_options(**itself) == a or a.with_options(**itself) == b


@dataclass(frozen=True)
class Crossing:
    """``winner`` is faster than ``loser`` at sizes above ``at``, and slower below."""

    winner: Column
    loser: Column
    at: float
    bracket: tuple[float, float]  # the measured sizes on both sides
    ratios: Ratios  # from which its interval is drawn

    @property
    def has_interval(self) -> bool:
        """Whether there were enough rounds for one; unlike the interval itself this costs nothing to know."""
        return all(ratio.has_interval for _, ratio in self.ratios)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Between which sizes the sign changes with 95 %: a parametric bootstrap of all ratios, each by Student's t."""
        if not self.has_interval:
            return None
        import numpy as np
        from scipy.special import stdtrit

        rng = random.Random(0)  # the same data have the same tables
        draws = np.array(
            [
                ratio.log_centre + error * stdtrit(degrees, [rng.random() for _ in range(DRAWS)])
                for _, ratio in self.ratios
                for error, degrees in (ratio.farthest,)
            ]
        )
        falling = draws if self.ratios[0][1].log_centre > 0 else -draws
        places = [math.log2(size) for size, _ in self.ratios]
        changes = [middle_change(places, drawn) for drawn in falling.T.tolist()]
        tail = (1 - CONFIDENCE) / 2
        low, high = np.exp2(np.quantile(changes, (tail, 1 - tail)))
        return float(low), float(high)


@derived
def swept(summary: Summary) -> list[SizeSeries]:
    """Return every workload and axis with two sizes or more; a run's duels are judged together."""
    grouped: dict[tuple[str, str, Axis], dict[float, Row]] = {}
    for row in summary.rows:
        for axis in AXES:
            if row.size and (size := row.size.along(axis)) is not None:
                rest = Size(width=row.size.width) if axis == "batch" else Size(batch=row.size.batch)
                grouped.setdefault((row.name, rest.label, axis), {})[float(size)] = row
    series = {key: SizeSeries(*key, dict(sorted(rows.items()))) for key, rows in grouped.items() if len(rows) > 1}
    contrasts = {
        (key, pair, size): contrast
        for key, line in series.items()
        for pair, of_pair in line.pairs.items()
        for size, contrast in of_pair.items()
    }
    pairs: dict[object, dict[tuple[Column, Column], dict[float, Contrast]]] = {key: {} for key in series}
    for (key, pair, size), contrast in judge(contrasts, summary.effect).items():
        pairs[key].setdefault(pair, {})[size] = contrast
    return [
        replace(line, duels=[duel_of(*pair, of_pair) for pair, of_pair in pairs[key].items()])
        for key, line in series.items()
    ]


def sign(ratio: LogEstimate, verdict: Verdict | None) -> int:
    """Return 1 where a is significantly slower than b, -1 where it is faster, else 0; without an interval as it is."""
    if ratio.has_interval:
        return (verdict is Verdict.SLOWER) - (verdict is Verdict.FASTER)
    return (ratio.value > 1) - (ratio.value < 1)


def crossings(a: Column, b: Column, ratios: Ratios, signs: Sequence[int]) -> list[Crossing]:
    """Return where the sign of log(a/b) changes between neighbouring sizes at which it is known, by log2(size)."""
    signed, changes = [index for index, sign in enumerate(signs) if sign], []
    for first, last in pairwise(signed):
        if signs[first] != signs[last]:
            between = ratios[first : last + 1]
            winner, loser = (a, b) if signs[first] > 0 else (b, a)
            places = [math.log2(size) for size, _ in between]
            at = 2 ** middle_change(places, [ratio.log_centre for _, ratio in between])
            bracket = max(size for size, _ in between if size <= at), min(size for size, _ in between if size >= at)
            changes.append(Crossing(winner, loser, at, bracket, between))
    return changes


def middle_change(places: Sequence[float], values: Sequence[float]) -> float:
    """Return where values pass through zero, interpolated linearly: of several changes the middle one, else an end."""
    changes = [
        x + (x_next - x) * value / (value - value_next)
        for (x, value), (x_next, value_next) in pairwise(zip(places, values, strict=True))
        if (value > 0) != (value_next > 0)
    ]
    if len(changes) % 2 == 0:
        return places[-1] if values[0] > 0 else places[0]
    return changes[len(changes) // 2]
