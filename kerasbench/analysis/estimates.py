"""Statistics over trial values, and what a ratio of two times lets one claim: pure functions over numbers.

The process is the unit of replication. A case's value is the geometric mean of its trials' values, its interval
Student's t on their logarithms: pooling the slices of all trials would cover 43-55 % where 95 % is promised
(found by simulation; validation/studies/intervals.md has that of the interval used here).

After three blocks a ratio's own variance is hardly known: Student's t with two degrees of freedom needs 4.3 standard
errors. But the ratios of a run are scattered by one machine, so their variances are draws from one distribution
(``Prior``), and each can borrow from the others what its own few blocks do not know: G. K. Smyth, "Linear models and
empirical Bayes methods for assessing differential expression in microarray experiments", Statistical Applications in
Genetics and Molecular Biology 3(1), 2004. validation/moderated.py shows by simulation what these intervals cover.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import ClassVar, Literal, NamedTuple, get_args

from msgspec import Struct

CONFIDENCE = 0.95
MOST_LOG = 300.0  # of a value or of a bound of its interval: products of two are still numbers
MIN_TRIALS_FOR_INTERVAL = 3
# The standard error of a median: that of a mean of normal values times the root of pi/2; MAD times 1.4826 is their sd.
MEDIAN_ERROR = math.sqrt(math.pi / 2) * 1.4826
MIN_RATIOS = 6  # fewer say too little about how their variances are distributed
# The distribution is estimated, too, and a plain estimate is trusted too much: with six ratios of three blocks 93 % of
# the intervals would hold the truth. So its spread is taken one standard error larger, its middle half of one.
SPREAD_ERRORS, MIDDLE_ERRORS = 1.0, 0.5
LEAST_VARIANCE = 1e-12  # of logarithms: equal to the digits of a clock
Basis = Literal["trials", "sessions", "slices"]  # of a product of two ratios, the later one of its factors


class Interval(Struct, frozen=True):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def exp(log: float) -> float:
    """Return e to this power, within what a number can hold: an interval may have no bounds."""
    return math.exp(min(max(log, -MOST_LOG), MOST_LOG))


@dataclass(frozen=True)
class LogEstimate:
    """A positive value, or a ratio of two, by its logarithm."""

    log_centre: float
    log_error: float | None  # the standard error by what was measured; None where there is no interval
    degrees: float  # of freedom
    trials: int  # of a ratio: its blocks or rounds
    basis: Basis = "trials"  # the interval is over these, over the sessions of a run, or over slices taken in turns
    disturbed: bool = False  # other processes used so much of the machine that it decides nothing
    confidence: float = CONFIDENCE  # of its interval: more where it is one of many that are judged together
    between_sessions: float = 0.0  # by what others are taken to differ: a standard deviation of the logarithm

    @property
    def value(self) -> float:
        return exp(self.log_centre)

    @property
    def low(self) -> float | None:
        return None if self.log_error is None else exp(self.log_centre - self._reach)

    @property
    def high(self) -> float | None:
        return None if self.log_error is None else exp(self.log_centre + self._reach)

    def is_above(self, edge: float) -> bool:
        """Tell whether the whole interval lies above; one that others disturbed does not, nor where there is none."""
        return not self.disturbed and self.low is not None and self.low > edge

    @property
    def half_width(self) -> float | None:
        return None if self.high is None else self.high / self.value - 1

    @property
    def _reach(self) -> float:
        return max(t_quantile(degrees, self.confidence) * error for error, degrees in self.errors)

    @property
    def errors(self) -> list[tuple[float, float]]:
        """Its standard errors, each with its degrees of freedom: in its sessions, and of the mean over many."""
        assert self.log_error is not None
        errors = [(self.log_error, self.degrees)]
        if self.between_sessions:  # it has more degrees of freedom, so that the first may reach farther
            error = math.hypot(self.log_error, self.between_sessions)
            errors.append((error, self.degrees * (error / self.log_error) ** 4 if self.log_error else math.inf))
        return errors

    @property
    def farthest(self) -> tuple[float, float]:
        return max(self.errors, key=lambda error: error[0] * t_quantile(error[1], self.confidence))

    @property
    def has_interval(self) -> bool:
        return self.log_error is not None

    @property
    def inverse(self) -> "LogEstimate":
        return replace(self, log_centre=-self.log_centre)

    def and_then(self, other: "LogEstimate") -> "LogEstimate":
        """Return a/c times c/b, of other trials; degrees by Welch and Satterthwaite (Biometrika 34, 1947)."""
        centre, trials = self.log_centre + other.log_centre, min(self.trials, other.trials)
        basis: Basis = max(self.basis, other.basis, key=get_args(Basis).index)
        disturbed = self.disturbed or other.disturbed
        if self.log_error is None or other.log_error is None:
            return LogEstimate(centre, None, trials - 1, trials, basis, disturbed)
        variances = (self.log_error**2, other.log_error**2)
        shares = variances[0] ** 2 / self.degrees + variances[1] ** 2 / other.degrees
        degrees = sum(variances) ** 2 / shares if shares else min(self.degrees, other.degrees)
        between = math.hypot(self.between_sessions, other.between_sessions)
        error = math.sqrt(sum(variances))
        return LogEstimate(centre, error, degrees, trials, basis, disturbed, between_sessions=between)


@dataclass(frozen=True)
class Amount:
    """A value that may be zero or negative, such as a difference of times."""

    value: float
    error: float | None  # the standard error; None where there is no interval
    degrees: float  # of freedom
    trials: int
    half_width: ClassVar[None] = None  # a share of what may be zero says nothing

    @property
    def low(self) -> float | None:
        return None if self.error is None else self.value - t_quantile(self.degrees) * self.error

    @property
    def high(self) -> float | None:
        return None if self.error is None else self.value + t_quantile(self.degrees) * self.error

    @property
    def is_above_zero(self) -> bool:
        """Whether its interval tells it from zero; without an interval the value counts."""
        return (self.value if self.low is None else self.low) > 0


# Without an interval, ``low``, ``high`` and ``half_width`` (its upper half as a share: 0.018 for ±1.8 %) are None.
Estimate = LogEstimate | Amount


def estimate(values: Sequence[float]) -> LogEstimate:
    """Return the geometric mean of positive trial values with Student's t interval on their logarithms."""
    if not values or min(values) <= 0:
        raise ValueError(f"an estimate needs positive values, not {list(values)}")
    logs = [math.log(value) for value in values]
    return LogEstimate(statistics.fmean(logs), standard_error(logs), len(logs) - 1, len(logs))


def mean(values: Sequence[float]) -> Amount:
    """Return the arithmetic mean without an interval, for what may be zero or negative: a loss."""
    return Amount(statistics.fmean(values), None, len(values) - 1, len(values))


def mean_interval(values: Sequence[float]) -> Amount:
    """Return the arithmetic mean with Student's t interval: for differences of times, which may be about zero."""
    return Amount(statistics.fmean(values), standard_error(values), len(values) - 1, len(values))


def standard_error(values: Sequence[float]) -> float | None:
    return math.sqrt(variance(values) / len(values)) if len(values) >= MIN_TRIALS_FOR_INTERVAL else None


def median_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the median, by the median absolute deviation; None for fewer than two values."""
    if len(values) < 2:
        return None
    centre = statistics.median(values)
    return MEDIAN_ERROR * statistics.median(abs(value - centre) for value in values) / math.sqrt(len(values))


def variance(values: Sequence[float]) -> float:
    """Return the sample variance, 0 of a single value; ``statistics.variance`` is exact, and twenty times slower."""
    apart = [value - values[0] for value in values]
    centre = statistics.fmean(apart)
    return math.fsum((value - centre) ** 2 for value in apart) / max(1, len(apart) - 1)


@cache
def t_quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t: 4.303 for 2 degrees of freedom at 95 %."""
    from scipy.special import stdtrit  # 0.2 s, so only once there is something to compute

    return float(stdtrit(degrees, (1 + confidence) / 2))


POWER = 0.9  # how often a difference is called that a run is said to be able to see
MINIMAL_EFFECT = 0.03  # smaller differences do not survive a change of kernel, compiler or room temperature
MINIMAL_EFFECT_ON_BATTERY = 0.05
UNCHANGED = 1e-5  # of the loss: rounding moves it by 1e-6, six steps of mobilenet_v2 with normalised batches by 1e-4


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


class Judgement(NamedTuple):
    ratio: LogEstimate | None
    verdict: Verdict


def learned(batch_loss_before: float, batch_loss_after: float) -> bool:
    return abs(batch_loss_after - batch_loss_before) > UNCHANGED * abs(batch_loss_before)


def judge(
    ratios: Sequence[LogEstimate | None], effect: float = MINIMAL_EFFECT, runs: Sequence[object] = ()
) -> list[Judgement]:
    """Say what ratios mean for what is above: beyond the effect, or within it. Those of a run are judged together."""
    claims = [claim(ratio, effect) for ratio in ratios]
    runs = runs or [None] * len(claims)
    p_values = [(run, p) for run, (_, p) in zip(runs, claims, strict=True) if p is not None]
    confidences = {run: confidence_of([p for of, p in p_values if of == run], 1 - CONFIDENCE) for run in {*runs}}
    return [
        Judgement(
            ratio and replace(ratio, confidence=confidences[run]),
            verdict if p is not None and p <= 1 - confidences[run] else Verdict.INCONCLUSIVE,
        )
        for ratio, (verdict, p), run in zip(ratios, claims, runs, strict=True)
    ]


def claim(ratio: LogEstimate | None, effect: float) -> tuple[Verdict, float | None]:
    """Return what a ratio speaks for, and p of a two-sided t test against the nearer edge (None: no interval)."""
    if ratio is None or ratio.log_error is None or ratio.disturbed:
        return Verdict.INCONCLUSIVE, None
    edge, centre = math.log1p(effect), ratio.log_centre
    verdict = Verdict.SAME if abs(centre) < edge else (Verdict.SLOWER if centre > 0 else Verdict.FASTER)
    from scipy.special import stdtr  # the probability of a smaller t

    # p at most 0.05 is the same as a 95 % interval wholly beyond the effect, or wholly within (two one-sided tests).
    beyond = abs(abs(centre) - edge)
    p_values = [2 * float(stdtr(degrees, -beyond / error)) if error else 0.0 for error, degrees in ratio.errors]
    return verdict, min(1.0, max(p_values))


def detectable(ratio: LogEstimate, effect: float) -> float | None:
    """Return the share by which a difference is called with POWER, at the ratio's confidence; None: no interval."""
    if ratio.log_error is None:
        return None
    reach = max(errors_beyond(degrees, ratio.confidence) * error for error, degrees in ratio.errors)
    return exp(math.log1p(effect) + reach) - 1


@cache
def errors_beyond(degrees: float, confidence: float) -> float:
    """Return how many standard errors beyond an effect have noncentral t exceed the quantile of t with POWER."""
    from scipy.special import nctdtrinc

    return float(nctdtrinc(degrees, 1 - POWER, t_quantile(degrees, confidence)))


@dataclass(frozen=True)
class Prior:
    """How the variances of a run's ratios are distributed: a scaled inverse chi-square."""

    variance: float  # about where they lie
    degrees: float  # how many degrees of freedom that knowledge is worth
    ratios: int

    def moderate(self, variance: float, degrees: float) -> tuple[float, float]:
        """Return a ratio's variance, moderated by those of the others, and its degrees of freedom."""
        total = self.degrees + degrees
        return (self.degrees * self.variance + degrees * variance) / total, total


def prior_of(samples: Sequence[tuple[float, float]], independent: float | None = None) -> Prior | None:
    """Return the distribution of variances, each given with its degrees of freedom; None for fewer than MIN_RATIOS.

    ``independent``: how many they are worth, where some follow from others; None: all.

    By the moments of log variances: of a draw with d degrees of freedom the logarithm scatters by trigamma(d/2) for its
    own few values, and by trigamma(prior degrees / 2) for the distribution that it was drawn from.
    """
    from scipy.special import digamma, zeta

    number = len(samples) if independent is None else independent
    if number < MIN_RATIOS:
        return None
    logs = [
        math.log(max(variance, LEAST_VARIANCE)) - float(digamma(degrees / 2)) + math.log(degrees / 2)
        for variance, degrees in samples
    ]
    scatter = statistics.variance(logs) * (1 + SPREAD_ERRORS * math.sqrt(2 / (number - 1)))
    expected = statistics.fmean(float(zeta(2, degrees / 2)) for _, degrees in samples)  # zeta(2, x): trigamma(x)
    most = statistics.fmean(degrees for _, degrees in samples) * (number - 1)  # all variances are one: they are pooled
    degrees = min(2 * inverse_trigamma(scatter - expected), most) if scatter > expected else most
    middle = statistics.fmean(logs) + MIDDLE_ERRORS * statistics.stdev(logs) / math.sqrt(number)
    return Prior(math.exp(middle + float(digamma(degrees / 2)) - math.log(degrees / 2)), degrees, int(number))


def inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = value, for a value above 0 (Newton's method, as in Smyth's appendix)."""
    from scipy.special import zeta  # trigamma(x) is zeta(2, x), its derivative -2 zeta(3, x)

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(zeta(2, x))
        step = trigamma * (1 - trigamma / value) / float(-2 * zeta(3, x))
        x += step
        if -step / x < 1e-8:
            break
    return x


def confidence_of(p_values: Sequence[float], rate: float) -> float:
    """Return the confidence of the intervals that decide about all of these, each p by ``claim``.

    Of what is called, a share of ``rate`` is false at most (Y. Benjamini and Y. Hochberg, JRSS B 57, 1995), and of its
    intervals a share of ``rate`` misses the truth at most (Y. Benjamini and D. Yekutieli, JASA 100, 2005).
    """
    number = max(1, len(p_values))
    called = max((rank for rank, p in enumerate(sorted(p_values), start=1) if p <= rate * rank / number), default=1)
    return 1 - rate * called / number
