"""The interval of a median of independent values, for studies whose values are."""

from collections.abc import Sequence

from scipy.stats import quantile_test


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the two values between which the median lies with at least 95 %, for any distribution; for six at least.

    By the binomial distribution of how many lie below it (Hahn & Meeker, Statistical Intervals, 1991).
    """
    found = quantile_test(values).confidence_interval()
    return float(found.low), float(found.high)
