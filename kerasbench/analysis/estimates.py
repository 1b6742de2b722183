"""Statistics over trial values: pure functions over numbers.

The process is the unit of replication. A cell's value is the geometric mean of its trials' values, its interval
Student's t on their logarithms: pooling the blocks of all trials would cover 43-55 % where 95 % is promised
(found by simulation; benchmarks/coverage.py and docs/method.md have that of the interval used here).
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

CONFIDENCE = 0.95
MIN_TRIALS_FOR_INTERVAL = 3
# The standard error of a median: that of a mean of normal values times the root of pi/2; MAD times 1.4826 is their sd.
MEDIAN_ERROR = math.sqrt(math.pi / 2) * 1.4826
Basis = Literal["trials", "slices"]


class Estimate(Protocol):
    """A value with its 95 % interval; ``low``, ``high`` and ``half_width`` are None where too little is known for one.

    ``half_width`` is half of the interval as a share of the value: 0.018 for ±1.8 %; the upper half.
    """

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def half_width(self) -> float | None: ...
    @property
    def trials(self) -> int: ...


@dataclass(frozen=True)
class LogEstimate:
    """A positive value, or a ratio of two, by its logarithm: centre, standard error, degrees of freedom.

    ``log_error`` is None where there is no interval. ``basis`` says what the interval rests on: on differences between
    trials, or on those between the slices of time in which the two sides of a ratio took turns. ``disturbed``: other
    processes used so much of the machine that nothing can be decided by it.
    """

    log_centre: float
    log_error: float | None
    degrees: float
    trials: int
    basis: Basis = "trials"
    disturbed: bool = False

    @property
    def value(self) -> float:
        return math.exp(self.log_centre)

    @property
    def low(self) -> float | None:
        return None if self.log_error is None else math.exp(self.log_centre - _reach(self.log_error, self.degrees))

    @property
    def high(self) -> float | None:
        return None if self.log_error is None else math.exp(self.log_centre + _reach(self.log_error, self.degrees))

    @property
    def half_width(self) -> float | None:
        return None if self.high is None else self.high / self.value - 1

    @property
    def has_interval(self) -> bool:
        return self.log_error is not None

    @property
    def inverse(self) -> "LogEstimate":
        """One over it."""
        return dataclasses.replace(self, log_centre=-self.log_centre)

    def times(self, factor: float) -> "LogEstimate":
        """Return the estimate of so many times the value."""
        return dataclasses.replace(self, log_centre=self.log_centre + math.log(factor))

    def and_then(self, other: "LogEstimate") -> "LogEstimate":
        """Return the product with another estimate, made from other trials: of a/c and c/b that is a/b.

        The degrees of freedom of its error are those of Welch and Satterthwaite.
        """
        centre, trials = self.log_centre + other.log_centre, min(self.trials, other.trials)
        basis: Basis = "trials" if self.basis == other.basis == "trials" else "slices"
        disturbed = self.disturbed or other.disturbed
        if self.log_error is None or other.log_error is None:
            return LogEstimate(centre, None, trials - 1, trials, basis, disturbed)
        variances = (self.log_error**2, other.log_error**2)
        shares = sum(each**2 / one.degrees for each, one in zip(variances, (self, other), strict=True))
        degrees = sum(variances) ** 2 / shares if shares else min(self.degrees, other.degrees)
        return LogEstimate(centre, math.sqrt(sum(variances)), degrees, trials, basis, disturbed)


@dataclass(frozen=True)
class Amount:
    """A value that may be zero or negative, such as a difference of times: centre, standard error, degrees of freedom.

    ``error`` is None where there is no interval.
    """

    centre: float
    error: float | None
    degrees: float
    trials: int

    @property
    def value(self) -> float:
        return self.centre

    @property
    def low(self) -> float | None:
        return None if self.error is None else self.centre - _reach(self.error, self.degrees)

    @property
    def high(self) -> float | None:
        return None if self.error is None else self.centre + _reach(self.error, self.degrees)

    @property
    def half_width(self) -> float | None:
        if self.error is None:
            return None
        return _reach(self.error, self.degrees) / abs(self.centre) if self.centre else math.inf

    @property
    def sign(self) -> int:
        """1 for an amount that is above zero, -1 for one below, 0 for one that is not told from it."""
        return sign(self.value, self.low, self.high)

    def __neg__(self) -> "Amount":
        return dataclasses.replace(self, centre=-self.centre)


def _reach(error: float, degrees: float) -> float:
    """Return half of the interval."""
    return t_quantile(degrees) * error


def estimate(values: Sequence[float]) -> LogEstimate:
    """Return the geometric mean of positive trial values with Student's t interval on their logarithms.

    Raises:
        ValueError: no values, or one that is not positive.
    """
    if not values or min(values) <= 0:
        raise ValueError(f"an estimate needs positive values, not {list(values)}")
    logs = [math.log(value) for value in values]
    return LogEstimate(statistics.fmean(logs), standard_error(logs), len(logs) - 1, len(logs))


def welch(a: Sequence[float], b: Sequence[float]) -> LogEstimate:
    """Return the ratio of the geometric means of two independent samples of positive values, a over b.

    Its interval is Welch's on logarithms, with the degrees of freedom of Satterthwaite: B. L. Welch, "The
    generalization of Student's problem when several different population variances are involved", Biometrika 34 (1947).
    """
    logs = [[math.log(value) for value in sample] for sample in (a, b)]
    centre = statistics.fmean(logs[0]) - statistics.fmean(logs[1])
    fewest = min(len(a), len(b))
    if fewest < MIN_TRIALS_FOR_INTERVAL:
        return LogEstimate(centre, None, fewest - 1, fewest)
    errors = [variance(sample) / len(sample) for sample in logs]
    if not any(errors):
        return LogEstimate(centre, 0.0, fewest - 1, fewest)
    parts = (error**2 / (len(sample) - 1) for error, sample in zip(errors, logs, strict=True))
    return LogEstimate(centre, math.sqrt(sum(errors)), sum(errors) ** 2 / sum(parts), fewest)


def mean(values: Sequence[float]) -> Amount:
    """Return the arithmetic mean without an interval, for what may be zero or negative: a loss, an overhead."""
    return Amount(statistics.fmean(values), None, len(values) - 1, len(values))


def mean_interval(values: Sequence[float]) -> Amount:
    """Return the arithmetic mean with Student's t interval: for differences of times, which may be about zero."""
    return Amount(statistics.fmean(values), standard_error(values), len(values) - 1, len(values))


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean; None for too few values."""
    return math.sqrt(variance(values) / len(values)) if len(values) >= MIN_TRIALS_FOR_INTERVAL else None


def median_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the median, by the median absolute deviation; None for fewer than two values."""
    if len(values) < 2:
        return None
    centre = statistics.median(values)
    return MEDIAN_ERROR * statistics.median(abs(value - centre) for value in values) / math.sqrt(len(values))


def sign(value: float, low: float | None, high: float | None) -> int:
    """Return 1 for an amount above zero, -1 for one below, and 0 where its interval does not tell it from zero.

    Without an interval an amount above zero is taken for what it is, and one below is not told from it.
    """
    if low is None or high is None:
        return int(value > 0)
    return (low > 0) - (high < 0)


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of two or more values, to a rounding error; 0 if all are one.

    A page takes thousands: ``statistics.variance`` is exact, by fractions, and twenty times slower.
    """
    apart = [value - values[0] for value in values]
    centre = statistics.fmean(apart)
    return math.fsum((one - centre) ** 2 for one in apart) / (len(apart) - 1)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the percentile of sorted values, between neighbours by linear interpolation."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def t_upper_tail(t: float, degrees: float) -> float:
    """Return the probability that Student's t exceeds this value."""
    from scipy.special import stdtr

    return float(stdtr(degrees, -t))


def t_noncentrality(threshold: float, degrees: int, power: float) -> float:
    """Return how many standard errors a true mean lies off, whose t exceeds the threshold with that probability."""
    from scipy.special import nctdtrinc

    return float(nctdtrinc(degrees, 1 - power, threshold))


def t_draws(degrees: float, uniforms: Sequence[float]) -> list[float]:
    """Return Student's t for each uniform number in 0..1."""
    import numpy as np
    from scipy.special import stdtrit

    return [float(drawn) for drawn in stdtrit(degrees, np.array(uniforms))]


@cache
def t_quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t: 4.303 for 2 degrees of freedom at 95 %."""
    from scipy.special import stdtrit  # 0.2 s, so only once there is something to compute

    return float(stdtrit(degrees, (1 + confidence) / 2))
