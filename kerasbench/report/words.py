"""Numbers and names as tables and sentences show them."""

import math
from collections.abc import Callable, Iterable, Sequence

from kerasbench.analysis.cases import PREDICTED, PREDICTED_ONE, PREDICTS
from kerasbench.analysis.differences import Difference
from kerasbench.analysis.estimates import Estimate, Interval, LogEstimate, detectable
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.names import Names as Names  # noqa: PLC0414 - said with words
from kerasbench.analysis.names import name_of
from kerasbench.analysis.names import names as names  # noqa: PLC0414 - said with words
from kerasbench.analysis.names import spelled as spelled  # noqa: PLC0414 - said with words
from kerasbench.analysis.rows import Row
from kerasbench.protocol.columns import Axis, CaseKey
from kerasbench.report.sections import Typed
from kerasbench.text import count, label

DIGITS = 3
WHOLE_FASTER = 4.75  # from here on it is said in a whole number
LEAST_FASTER = 1.1  # times as fast: less is seen as well the other way round
WHOLE_BATCH = 100  # from here on a crossover is given to the sample
MANUAL = Typed("kerasbench docs")  # no address: it holds in a checkout, for a wheel, and wherever a page is sent
LIMITATIONS = Typed(f"{MANUAL.text} limitations")


def three_digits(value: float) -> str:
    """Return three significant digits, thousands separated, never in exponents: 0.0123, 1.85, 12.3, 1,230."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{DIGITS}g}")  # first, because 9.999 has one decimal fewer than it seems
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def percent(share: float) -> str:
    """Return ``1.8 %``, two significant digits below ten."""
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"


def as_given(share: float) -> str:
    """Return ``3 %`` or ``2.5 %``: a share that somebody has chosen, in no more digits than it has."""
    return f"{100 * share:.3g} %"


def with_range(estimate: Estimate | Interval, unit: str = "") -> str:
    """Return ``12.3 ms (12.1–12.5)``, without the interval if there is none."""
    value = f"{three_digits(estimate.value)} {unit}".strip()
    if estimate.low is None or estimate.high is None:
        return value
    low, high = three_digits(estimate.low), three_digits(estimate.high)
    return f"{value} ({low}–{high})" if estimate.low >= 0 else f"{value} ({low} to {high})"


def multiple(value: float) -> str:
    """Return ``3.9×``, in as many decimals as such ratios are known to."""
    return f"{value:,.{_decimals(value)}f}×"


def _decimals(value: float) -> int:
    return 0 if value >= 9.95 else 1 if value >= 1.995 else 2


def times(ratio: Estimate) -> str:
    """Return ``3.9× (3.7–4.1)``, without the interval if there is none."""
    decimals = _decimals(ratio.value)
    if ratio.low is None or ratio.high is None:
        return multiple(ratio.value)
    while decimals < DIGITS and f"{ratio.low:.{decimals}f}" == f"{ratio.high:.{decimals}f}":
        decimals += 1
    # A bound has as many decimals as the ratio, but two significant digits at least.
    low, high = (f"{bound:,.{max(decimals, 1 - math.floor(math.log10(bound)))}f}" for bound in (ratio.low, ratio.high))
    return f"{ratio.value:,.{decimals}f}× ({low}–{high})"


def as_long(ratio: Estimate, other: str = "") -> str:
    """Return ``2.0× (1.9–2.1) as long``, below 1× with the other way round: ``…, about 8 times as fast``."""
    phrase = f"{times(ratio)} as long" + (f" as {other}" if other else "")
    is_shorter = ratio.high is None or ratio.high < 1
    inverse = 1 / ratio.value
    if not is_shorter or inverse < LEAST_FASTER:
        return phrase
    return (
        f"{phrase}, about {inverse:.0f} times as fast"
        if inverse >= WHOLE_FASTER
        else f"{phrase}, about {inverse:.2g} times as fast"
    )


def span(values: Iterable[float], shown: Callable[[float], str] = three_digits, unit: str = "") -> str:
    """Return ``0.09 to 0.23 ms``, or the one value that all are."""
    numbers = list(values)
    ends = dict.fromkeys(shown(value) for value in (min(numbers), max(numbers)))
    if len(ends) == 2:
        low, high = ends
        shared = low[-1:] if low[-1:] in "×" and high.endswith("×") else ""
        ends = dict.fromkeys([low.removesuffix(shared), high])
    return f"{' to '.join(ends)} {unit}".strip()


def size_along(axis: Axis, size: float) -> str:
    """Return a size of a sweep; a crossover at a large batch is given to the sample."""
    if axis == "batch" and (size >= WHOLE_BATCH or float(size).is_integer()):
        return f"{size:,.0f}"
    return f"{size:.3g}"


def seconds(value: float) -> str:
    """Return a duration as a person says it: ``8 s``, ``2 min 05 s``, ``1 h 10 min``."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def duration(ns: float) -> str:
    """Return ``0.412 ms``, or ``12.3 s`` from a second on."""
    return f"{three_digits(ns / 1e9)} s" if ns >= 1e9 else f"{three_digits(ns / 1e6)} ms"


def whole_steps(steps: float) -> str:
    """Return ``78 steps`` for anything above 77, three digits of what is larger; the first step is always made."""
    return f"{three_digits(steps)} steps" if steps >= 100 else count(max(1, math.ceil(steps)), "step")


def case_name(case: CaseKey) -> str:
    """Return ``mnist_mlp/tiny jax cpu``, with the options if there are any."""
    parts = (label(case.scenario, case.workload), case.column.backend, case.column.device, case.options.label)
    return " ".join(filter(None, parts))


def case_title(case: CaseKey, predicts_only: bool = False) -> str:
    """Return ``mnist_mlp/tiny on JAX``, as pages have it; ``case_name`` is what Python code gets."""
    name = label(case.scenario, case.workload) + (PREDICTS if predicts_only else "")
    size = case.size.label if case.size else ""
    return f"{' '.join(filter(None, [name, size]))} on {name_of(case.column)}"


def listed(parts: Sequence[str]) -> str:
    """Return ``JAX``, ``JAX and PyTorch``, ``JAX, TensorFlow and PyTorch``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def verb(rows: Iterable[Row]) -> str:
    """Return what a backend does with these workloads: ``trains``, or ``predicts`` where nothing is trained."""
    verbs = {UNITS[_unit_of(row)] for row in rows}
    return verbs.pop() if len(verbs) == 1 else "runs"


def timed_in(rows: Iterable[Row]) -> str:
    """Return what is timed of these workloads, ``training step or prediction`` where that is more than one thing."""
    units = {_unit_of(row) for row in rows}
    return " or ".join(unit for unit in UNITS if unit in units) or TRAINED


TRAINED, LOOPED, FORWARD = "training step", "step of a loop", "prediction"
UNITS = {TRAINED: "trains", LOOPED: "runs", FORWARD: "predicts"}  # what is timed, and what a backend does in it


def _unit_of(row: Row) -> str:
    if row.workload.loops:  # its model may train in it or predict
        return LOOPED
    return FORWARD if row.headline in (PREDICTED, PREDICTED_ONE) else TRAINED


def took(estimate: Estimate, metric: str) -> str:
    return f"{three_digits(estimate.value)} {BY_NAME[metric].unit}".strip()


def could_have_seen(ratio: LogEstimate | None, effect: float) -> str:
    """Return which difference an undecided ratio would have shown; empty where none is known."""
    difference = None if ratio is None else detectable(ratio, effect)
    if difference is None:
        return ""
    return f"A difference of more than {percent(difference)} would have been found, nine times in ten."


def change_of(difference: Difference) -> str:
    return f"{difference.fact.title}: {difference.value}; before: {difference.before}"
