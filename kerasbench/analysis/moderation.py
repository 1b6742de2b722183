"""Variances that borrow from each other, and intervals that allow for how many verdicts there are.

After three blocks a ratio's own variance is hardly known: Student's t with two degrees of freedom needs 4.3 standard
errors. But the ratios of a run are scattered by one machine, so their variances are draws from one distribution, and
each can borrow from the others what its own few blocks do not know: G. K. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression in microarray experiments", Statistical Applications in Genetics and
Molecular Biology 3(1), 2004. benchmarks/moderated.py shows by simulation what these intervals cover.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MIN_RATIOS = 6  # fewer say too little about how their variances are distributed
# The distribution is estimated, too, and a plain estimate is trusted too much: with six ratios of three blocks 93 % of
# the intervals would hold the truth. So its spread is taken one standard error larger, its middle half of one.
SPREAD_ERRORS, MIDDLE_ERRORS = 1.0, 0.5
LEAST_VARIANCE = 1e-12  # of logarithms: equal to the digits of a clock


@dataclass(frozen=True)
class Prior:
    """How the variances of a run's ratios are distributed: a scaled inverse chi-square.

    ``variance`` is about where they lie, ``degrees`` how many degrees of freedom that knowledge is worth.
    """

    variance: float
    degrees: float
    ratios: int

    def moderate(self, variance: float, degrees: float) -> tuple[float, float]:
        """Return a ratio's variance, moderated by those of the others, and its degrees of freedom."""
        total = self.degrees + degrees
        return (self.degrees * self.variance + degrees * variance) / total, total


def prior_of(samples: Sequence[tuple[float, float]]) -> Prior | None:
    """Return the distribution of variances, each given with its degrees of freedom; None for fewer than MIN_RATIOS.

    By the moments of log variances: of a draw with d degrees of freedom the logarithm scatters by trigamma(d/2) for its
    own few values, and by trigamma(prior degrees / 2) for the distribution that it was drawn from.
    """
    from scipy.special import digamma, polygamma

    if len(samples) < MIN_RATIOS:
        return None
    logs = [
        math.log(max(variance, LEAST_VARIANCE)) - float(digamma(degrees / 2)) + math.log(degrees / 2)
        for variance, degrees in samples
    ]
    scatter = statistics.variance(logs) * (1 + SPREAD_ERRORS * math.sqrt(2 / (len(logs) - 1)))
    own = statistics.fmean(float(polygamma(1, degrees / 2)) for _, degrees in samples)
    most = sum(degrees for _, degrees in samples) * (1 - 1 / len(samples))  # all variances are one: they are pooled
    degrees = min(2 * inverse_trigamma(scatter - own), most) if scatter > own else most
    middle = statistics.fmean(logs) + MIDDLE_ERRORS * statistics.stdev(logs) / math.sqrt(len(logs))
    return Prior(math.exp(middle + float(digamma(degrees / 2)) - math.log(degrees / 2)), degrees, len(samples))


# How the ratios of one run scatter, by their metric, and by whether they are of columns of one backend and device (a
# control, a version, a twin), which scatter less than those of two. None for too few of them.
Priors = Callable[[str, bool], Prior | None]


def inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = value, for a value above 0 (Newton's method, as in Smyth's appendix)."""
    from scipy.special import polygamma

    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x


def confidence_of(p_values: Sequence[float], rate: float) -> float:
    """Return the confidence of the intervals by which all of these are judged, so that few of what is called are false.

    Each p is two-sided: of a ratio that lies on the edge of what is called a difference. Of those that are called, a
    share of ``rate`` is false at most (Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", Journal
    of the Royal Statistical Society B 57, 1995). What is called is what lies beyond the edge with the whole of an
    interval of this confidence, and of those intervals a share of ``rate`` misses the truth at most (Y. Benjamini and
    D. Yekutieli, "False discovery rate-adjusted multiple confidence intervals for selected parameters", Journal of the
    American Statistical Association 100, 2005). So the interval that is shown is the one that decides.
    """
    if not p_values:
        return 1 - rate
    called = 1
    for rank, p in enumerate(sorted(p_values), start=1):
        if p <= rate * rank / len(p_values):
            called = rank
    return 1 - rate * called / len(p_values)
