"""Where an epoch's time goes: the share of each part, and what would make an epoch shorter."""

from collections.abc import Iterator

from kerasbench.analysis.breakdown import Help, StepBreakdown
from kerasbench.analysis.contrasts import believed
from kerasbench.analysis.estimates import Amount
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import NS_PER_MS
from kerasbench.report import charts
from kerasbench.report.sections import Cell, Section, Table, Words, texts
from kerasbench.report.words import (
    Names,
    duration,
    listed,
    names,
    percent,
    three_digits,
    times,
    whole_steps,
    with_range,
)

GIGA = 1e9
WORTH_SAYING = 0.05  # a step that takes so much more or less while its parts are measured is named
UNSEEN, LITTLE = "too small to measure", "too little to be measured"
ADVICE = {
    Help.BATCH: "a larger batch ({options})",
    Help.JIT: "{options}",
    Help.DEVICE: "{column}",
    Help.PREPARED: "data that are prepared before training",
}


def title(findings: Findings) -> str:
    """Return ``mnist_dense: the largest part of an epoch is computation on JAX (67 %)``."""
    named = names(breakdown.column for breakdown in findings.breakdowns)
    largest: dict[tuple[str, str], list[str]] = {}
    for breakdown in findings.breakdowns:
        shares = _shares(breakdown)
        part = max(shares, key=lambda name: shares[name])
        what = f"the largest part of an epoch is {part}" if shares[part] else "every part is too small to measure"
        share = f" ({percent(shares[part])})" if shares[part] else ""
        largest.setdefault((breakdown.row.label, what), []).append(f"{named[breakdown.column]}{share}")
    return "; ".join([f"{label}: {what} on {listed(who)}" for (label, what), who in largest.items()][:3])


def _shares(breakdown: StepBreakdown) -> dict[str, float]:
    return {name: ms / breakdown.epoch_ms.value for name, ms in charts.parts_ms(breakdown).items()}


def section(findings: Findings) -> Section | None:
    if not findings.breakdowns:
        return None
    named = names(breakdown.column for breakdown in findings.breakdowns)
    rows = []
    for breakdown in findings.breakdowns:
        ms, shares = breakdown.epoch_ms.value, _shares(breakdown)
        cells = [*texts(breakdown.row.label, named[breakdown.column]), Cell(duration(ms * NS_PER_MS), ms)]
        for name, (amount, _) in charts.amounts(breakdown).items():
            known = amount.sign == 1
            cells.append(Cell(f"{percent(shares[name])} ({_brief(amount)})", shares[name]) if known else Cell(UNSEEN))
        rows.append(cells)
    headers = ["workload", "configuration", "an epoch", *charts.PIECE_COLOURS]
    notes: list[Words] = [
        "Of an epoch's time; in brackets ms per step, of the fixed cost ms per epoch (95 % intervals). Computation: "
        "Keras' own step on a batch on the device. Python and framework: what fit does around it. Input pipeline: the "
        "extra time of a batch from arrays. Fixed cost: what each epoch costs once, validation included."
    ]
    called = names(findings.summary.columns)
    lines = [line for breakdown in findings.breakdowns for line in _advice(breakdown, called)]
    chart = charts.epoch_chart(findings.breakdowns, title(findings))
    return Section("Where the time goes", chart=chart, table=Table(headers, rows), notes=notes, lines=lines)


def _brief(amount: Amount) -> str:
    if amount.low is None or amount.high is None:
        return f"{three_digits(amount.value)} ms"
    return f"{three_digits(amount.value)} ms, {three_digits(max(0.0, amount.low))}–{three_digits(amount.high)}"


def sentences(breakdown: StepBreakdown) -> list[str]:
    called = names([breakdown.column, *(advice.contrast.over.column for advice in breakdown.advice)])
    seen = [f"{percent(share)} {part}" for part, share in _shares(breakdown).items() if share]
    epoch = duration(breakdown.epoch_ms.value * NS_PER_MS)
    case = f"{breakdown.row.label} on {called[breakdown.column]}"
    return [f"{case}: an epoch takes {epoch}: {listed(seen)}.", *_advice(breakdown, called)]


def _advice(breakdown: StepBreakdown, called: Names) -> Iterator[str]:
    name = called[breakdown.column]
    if not believed(breakdown.row):
        yield f"{name}: no advice, because the same configuration measured twice differs from itself."
    elif not breakdown.advice:
        yield f"{name}: nothing that was measured makes it clearly faster."
    for advice in breakdown.advice:
        over = advice.contrast.over
        what = ADVICE[advice.what].format(column=called.get(over.column, ""), options=over.key.options.label)
        unit = "sample" if advice.what is Help.BATCH else "step"
        yield f"{name}: with {what} a {unit} takes {times(advice.contrast.ratio)} as long."


def details(findings: Findings) -> Iterator[Section]:
    called = names(findings.summary.columns)
    for breakdown in findings.breakdowns:
        case = f"{breakdown.row.label} on {called[breakdown.column]}"
        heading = f"{case}: first step, warm-up and floating-point operations"
        yield Section(heading, lines=list(_more(breakdown, called)), folded=True)


def _more(breakdown: StepBreakdown, called: Names) -> Iterator[str]:
    if abs(breakdown.later.value - 1) > WORTH_SAYING:
        yield f"While the parts were measured, a step took {times(breakdown.later)} as long as before."
    if breakdown.rate is not None and breakdown.peak is not None:
        rate, peak = three_digits(breakdown.rate.value / GIGA), three_digits(breakdown.peak.value / GIGA)
        share = percent(breakdown.rate.value / breakdown.peak.value)
        most = f"{share} of the {peak} GFLOP/s of matrix multiplications in its precision"
        yield f"The step computes {rate} GFLOP/s, {most}."
    if breakdown.compile_ms is not None:
        yield f"Tracing and compiling take {_cost(breakdown.compile_ms)}."
    for paid in breakdown.repaid:
        slow, rival = (called.get(column, column.label) for column in (paid.slow_start, paid.rival))
        extra, steps = three_digits(paid.extra_ms), whole_steps(paid.steps)
        yield f"{slow} makes up for its longer first step ({extra} ms more than {rival}) after {steps}."
    yield f"Warming up takes {_cost(breakdown.warming_ms)}, once."


def _cost(amount: Amount) -> str:
    return with_range(amount, "ms") if amount.sign == 1 else LITTLE
