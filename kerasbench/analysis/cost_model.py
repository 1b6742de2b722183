"""What a step is made of: an overhead, and a cost for each sample. Fitted to a series; pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kerasbench.analysis.estimates import Estimate, LogEstimate, t_quantile

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
