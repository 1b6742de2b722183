"""Numbers as they stand in tables: three significant digits, a unit, an interval."""

import math

from kerasbench.analysis.estimates import Estimate
from kerasbench.exchange.options import Axis

DIGITS = 3
WHOLE_BATCH = 100  # from here on a crossover is told to the sample
# Said of a cost that is none, in place of a negative number.
NOT_TOLD, BELOW = "not significantly above zero", "below zero"


def significant(value: float) -> str:
    """Return three significant digits, thousands separated, never in exponents: 0.0123, 1.85, 12.3, 1,230."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{DIGITS}g}")  # first, because 9.999 has one decimal fewer than it seems
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def with_interval(estimate: Estimate, unit: str = "") -> str:
    """Return ``12.3 ms ±1.8 %``, without the interval where there is none."""
    value = f"{significant(estimate.value)} {unit}".strip()
    return value if estimate.half_width is None else f"{value} ±{percent(estimate.half_width)}"


def factor(ratio: Estimate) -> str:
    """Return ``3.52× ±2 %``, without the interval where there is none; its width in one digit below 1 %, else whole."""
    value = f"{significant(ratio.value)}×"
    width = ratio.half_width
    if width is None:
        return value
    return f"{value} ±{percent(width)}" if width < 0.0095 else f"{value} ±{100 * width:.0f} %"


def times(ratio: Estimate) -> str:
    """Return ``3.9× (3.7–4.1)`` as a sentence has it, without the interval where there is none."""
    low, high = ratio.low, ratio.high
    decimals = 0 if ratio.value >= 9.95 else 1 if ratio.value >= 1.995 else 2
    if low is None or high is None:
        return f"{ratio.value:,.{decimals}f}×"
    while decimals < DIGITS and f"{low:.{decimals}f}" == f"{high:.{decimals}f}":
        decimals += 1
    return f"{ratio.value:,.{decimals}f}× ({_bound(low, decimals)}–{_bound(high, decimals)})"


def _bound(bound: float, decimals: int) -> str:
    """Return an end of a ratio's interval with as many decimals as the ratio, but two significant digits at least."""
    return f"{bound:,.{max(decimals, 1 - math.floor(math.log10(bound)))}f}"


def size_along(axis: Axis, size: float) -> str:
    """Return a size of a sweep; a crossover at a large batch is told to the sample."""
    if axis == "batch" and (size >= WHOLE_BATCH or float(size).is_integer()):
        return f"{size:,.0f}"
    return f"{size:.3g}"


def about(axis: Axis, size: float) -> str:
    """Return a size between those that were measured: a batch in whole samples."""
    return size_along(axis, round(size) if axis == "batch" else size)


def percent(share: float) -> str:
    """Return ``1.8 %``, two significant digits below ten."""
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"


def seconds(value: float) -> str:
    """Return a duration as a person says it: ``8 s``, ``2 min 05 s``, ``1 h 10 min``."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
