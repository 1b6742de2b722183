"""The interval of a median of independent values, for benchmarks whose values are."""

from collections.abc import Sequence

from scipy.stats import binom

CONFIDENCE = 0.95


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the two values between which the median lies with at least 95 %, for any distribution; for six at least.

    By the binomial distribution of how many lie below it (Hahn & Meeker, Statistical Intervals, 1991).

    Raises:
        ValueError: fewer than six values.
    """
    ordered = sorted(values)
    low = int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5)) - 1
    if low < 0:
        raise ValueError(f"{len(ordered)} values have no interval of their median: at least six have")
    return ordered[low], ordered[-1 - low]
