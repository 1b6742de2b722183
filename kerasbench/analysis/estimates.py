"""Statistics over trial values: pure functions over numbers.

The process is the unit of replication. A cell's value is the geometric mean of its trials' values, its interval
Student's t on their logarithms: pooling the blocks of all trials would cover 43-55 % where 95 % is promised
(found by simulation; benchmarks/coverage.py and docs/method.md have that of the interval used here).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

CONFIDENCE = 0.95
MIN_TRIALS_FOR_INTERVAL = 3


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; ``low`` and ``high`` are None where there are too few trials for one.

    Of a single trial, an interval is that of a percentile within it.
    """

    value: float
    low: float | None
    high: float | None
    trials: int
    welch_degrees: float | None = None

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the interval: one less than the trials, or Welch's for two samples."""
        return self.trials - 1 if self.welch_degrees is None else self.welch_degrees

    @property
    def log_error(self) -> float:
        """Standard error of the value's logarithm; 0 for fewer than three trials."""
        if self.high is None or self.trials < MIN_TRIALS_FOR_INTERVAL:
            return 0.0
        return math.log(self.high / self.value) / t_quantile(self.degrees)

    @property
    def half_width(self) -> float | None:
        """Half of the interval as a share of the value: 0.018 for ±1.8 %. On logarithms, so the upper side's."""
        return None if self.high is None else self.high / self.value - 1


def estimate(values: Sequence[float]) -> Estimate:
    """Return the geometric mean of positive trial values with Student's t interval on their logarithms.

    Raises:
        ValueError: no values, or one that is not positive.
    """
    if not values or min(values) <= 0:
        raise ValueError(f"an estimate needs positive values, not {list(values)}")
    logs = [math.log(value) for value in values]
    centre = statistics.fmean(logs)
    if len(logs) < MIN_TRIALS_FOR_INTERVAL:
        return Estimate(math.exp(centre), None, None, len(logs))
    reach = t_quantile(len(logs) - 1) * math.sqrt(variance(logs) / len(logs))
    return Estimate(math.exp(centre), math.exp(centre - reach), math.exp(centre + reach), len(logs))


def welch(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Return the ratio of the geometric means of two independent samples of positive values, a over b.

    Its interval is Welch's on logarithms, with the degrees of freedom of Satterthwaite: B. L. Welch, "The
    generalization of Student's problem when several different population variances are involved", Biometrika 34 (1947).
    """
    logs = [[math.log(value) for value in sample] for sample in (a, b)]
    centre = statistics.fmean(logs[0]) - statistics.fmean(logs[1])
    fewest = min(len(a), len(b))
    if fewest < MIN_TRIALS_FOR_INTERVAL:
        return Estimate(math.exp(centre), None, None, fewest)
    errors = [variance(sample) / len(sample) for sample in logs]
    if not any(errors):
        return Estimate(math.exp(centre), math.exp(centre), math.exp(centre), fewest)
    parts = (error**2 / (len(sample) - 1) for error, sample in zip(errors, logs, strict=True))
    degrees = sum(errors) ** 2 / sum(parts)
    reach = t_quantile(degrees) * math.sqrt(sum(errors))
    return Estimate(math.exp(centre), math.exp(centre - reach), math.exp(centre + reach), fewest, degrees)


def mean(values: Sequence[float]) -> Estimate:
    """Return the arithmetic mean without an interval, for what may be zero or negative: a loss, an overhead."""
    return Estimate(statistics.fmean(values), None, None, len(values))


def mean_interval(values: Sequence[float]) -> Estimate:
    """Return the arithmetic mean with Student's t interval: for differences of times, which may be about zero."""
    centre = statistics.fmean(values)
    if len(values) < MIN_TRIALS_FOR_INTERVAL:
        return Estimate(centre, None, None, len(values))
    reach = t_quantile(len(values) - 1) * math.sqrt(variance(values) / len(values))
    return Estimate(centre, centre - reach, centre + reach, len(values))


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


def percentile_interval(ordered: Sequence[float], share: float) -> tuple[float, float] | None:
    """Return the two order statistics between which the percentile lies with at least 95 %; None for too few values.

    By the binomial distribution of how many values lie below it, so for any distribution of independent values
    (Hahn & Meeker, Statistical Intervals, 1991).
    """
    ranks = _percentile_ranks(len(ordered), share)
    return None if ranks is None else (ordered[ranks[0]], ordered[ranks[1]])


@cache
def _percentile_ranks(count: int, share: float) -> tuple[int, int] | None:
    """Return the ranks, from 0 on, of the two order statistics."""
    import numpy as np
    from scipy.special import bdtr

    tail = (1 - CONFIDENCE) / 2
    at_most = bdtr(np.arange(count, dtype=float), count, share)  # P(so many values, or fewer, lie below the percentile)
    low, high = np.flatnonzero(at_most <= tail), np.flatnonzero(at_most >= 1 - tail)
    return (int(low[-1]), int(high[0])) if len(low) and len(high) else None


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
