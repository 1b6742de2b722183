"""Where an epoch's time goes: the share of each part, and what would make an epoch shorter."""

from collections.abc import Iterator, Sequence

from kerasbench.analysis.contrasts import believed
from kerasbench.analysis.estimates import Amount, Estimate
from kerasbench.analysis.findings import Findings, derived
from kerasbench.analysis.metrics import NS_PER_MS
from kerasbench.modes.explain.breakdown import Help, StepBreakdown, breakdowns
from kerasbench.protocol.columns import Column
from kerasbench.report.data import configuration, like, of_key, result
from kerasbench.report.document import Advised, Document
from kerasbench.report.sections import Bar, BarChart, BarGroup, Cell, Piece, Section, Table, Words, texts
from kerasbench.report.teller import Teller
from kerasbench.report.warnings import Marks
from kerasbench.report.words import duration, listed, names, percent, three_digits, times, whole_steps, with_range

GIGA = 1e9
WORTH_SAYING = 0.05  # a step that takes so much more or less while its parts are measured is named
UNSEEN, LITTLE = "too small to measure", "too little to be measured"
ADVICE = {
    Help.BATCH: "a larger batch ({options})",
    Help.JIT: "{options}",
    Help.DEVICE: "{column}",
    Help.PREPARED: "data that are prepared before training",
}


# None of them is a backend's colour; black letters can be read on each.
PIECE_COLOURS = {
    "computation": "#56B4E9",
    "Python and framework": "#E69F00",
    "input pipeline": "#CC79A7",
    "fixed cost per epoch": "#999999",
}
WORTH_A_LABEL = 0.12  # of the width: a narrower piece has no room for its percentage


@derived
def explained(findings: Findings) -> list[StepBreakdown]:
    return breakdowns(findings.summary)


def _shares(breakdown: StepBreakdown) -> dict[str, float]:
    return {name: ms / breakdown.epoch_ms.value for name, ms in parts_ms(breakdown).items()}


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


def _advice(breakdown: StepBreakdown, called: dict[Column, str]) -> Iterator[str]:
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


def _more(breakdown: StepBreakdown, called: dict[Column, str]) -> Iterator[str]:
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
    return with_range(amount, "ms") if amount.is_above_zero else LITTLE


def _chart(breakdowns: Sequence[StepBreakdown], title: str) -> BarChart:
    """Return a group for each workload, a bar for each of its configurations."""
    named = names(dict.fromkeys(breakdown.column for breakdown in breakdowns))
    groups = []
    for label in dict.fromkeys(breakdown.row.label for breakdown in breakdowns):
        of_row = [breakdown for breakdown in breakdowns if breakdown.row.label == label]
        end = max(sum(parts_ms(breakdown).values()) for breakdown in of_row)
        drawn = []
        for breakdown in of_row:
            epoch_ms, name = breakdown.epoch_ms.value, named[breakdown.column]
            pieces = [
                Piece(part, ms, PIECE_COLOURS[part], percent(ms / epoch_ms) if ms > WORTH_A_LABEL * end else "")
                for part, ms in parts_ms(breakdown).items()
                if ms > 0
            ]
            text = duration(epoch_ms * NS_PER_MS)
            drawn.append(Bar(name, text, pieces, breakdown.column.backend, tip=f"{name}: an epoch takes {text}"))
        groups.append(BarGroup(label, drawn, end))
    caption = "Where the time of an epoch goes. In each group the longest epoch fills the width."
    return BarChart(title, caption, groups, legend=list(PIECE_COLOURS.items()))


def amounts(breakdown: StepBreakdown) -> dict[str, tuple[Amount, int]]:
    """Return the parts of an epoch: what each takes, in ms, and how many times in an epoch."""
    of_step = (breakdown.computation_ms, breakdown.framework_ms, breakdown.feeding_ms)
    parts = [*((amount, breakdown.steps) for amount in of_step), (breakdown.overhead_ms, 1)]
    return dict(zip(PIECE_COLOURS, parts, strict=True))


def parts_ms(breakdown: StepBreakdown) -> dict[str, float]:
    """Return what each part has of an epoch; one that is too small to measure has nothing."""
    return {
        name: amount.value * times_an_epoch if amount.is_above_zero else 0.0
        for name, (amount, times_an_epoch) in amounts(breakdown).items()
    }


# What an explanation measures besides the metrics of all runs: the parts of a step.
PARTS = {
    "input_pipeline_ms": "feeding_ms",
    "framework_ms": "framework_ms",
    "computation_ms": "computation_ms",
    "warm_up_ms": "warming_ms",
    "flops_per_s": "rate",
    "peak_flops_per_s": "peak",
}


class Explanations(Teller):
    name = "explained"

    def title(self, findings: Findings) -> str:
        """Return ``mnist_dense: the largest part of an epoch is computation on JAX (67 %)``."""
        known = explained(findings)
        named = names(breakdown.column for breakdown in known)
        largest: dict[tuple[str, str], list[str]] = {}
        for breakdown in known:
            shares = _shares(breakdown)
            part = max(shares, key=lambda name: shares[name])
            what = f"the largest part of an epoch is {part}" if shares[part] else "every part is too small to measure"
            share = f" ({percent(shares[part])})" if shares[part] else ""
            largest.setdefault((breakdown.row.label, what), []).append(f"{named[breakdown.column]}{share}")
        return "; ".join([f"{label}: {what} on {listed(who)}" for (label, what), who in largest.items()][:3])

    def sections(self, findings: Findings, marks: Marks) -> Iterator[Section]:
        known = explained(findings)
        if not known:
            return
        named = names(breakdown.column for breakdown in known)
        rows = []
        for breakdown in known:
            ms, shares = breakdown.epoch_ms.value, _shares(breakdown)
            cells = [*texts(breakdown.row.label, named[breakdown.column]), Cell(duration(ms * NS_PER_MS), ms)]
            for name, (amount, _) in amounts(breakdown).items():
                seen = Cell(f"{percent(shares[name])} ({_brief(amount)})", shares[name])
                cells.append(seen if amount.is_above_zero else Cell(UNSEEN))
            rows.append(cells)
        headers = ["workload", "configuration", "an epoch", *PIECE_COLOURS]
        notes: list[Words] = [
            "Of an epoch's time; in brackets ms per step, of the fixed cost ms per epoch (95 % intervals). "
            "Computation: Keras' own step on a batch on the device. Python and framework: what fit does around it. "
            "Input pipeline: the extra time of a batch from arrays. Fixed cost: what each epoch costs once, validation "
            "included."
        ]
        called = names(findings.summary.columns)
        lines = [line for breakdown in known for line in _advice(breakdown, called)]
        chart = _chart(known, self.title(findings))
        yield Section("Where the time goes", chart=chart, table=Table(headers, rows), notes=notes, lines=lines)

    def details(self, findings: Findings) -> Iterator[Section]:
        called = names(findings.summary.columns)
        for breakdown in explained(findings):
            case = f"{breakdown.row.label} on {called[breakdown.column]}"
            heading = f"{case}: first step, warm-up and floating-point operations"
            yield Section(heading, lines=list(_more(breakdown, called)), folded=True)

    def sentences(self, findings: Findings) -> list[str]:
        return [" ".join(sentences(breakdown)) for breakdown in explained(findings)]

    def data(self, findings: Findings) -> Document:
        told = Document()
        for breakdown in explained(findings):
            case = of_key(breakdown.row.key(breakdown.column))
            for metric, name in PARTS.items():
                amount: Estimate | None = getattr(breakdown, name)
                unit = "FLOP/s" if metric.endswith("flops_per_s") else "ms"
                told.results.extend([result(case, metric, amount, unit=unit)] if amount is not None else [])
            for advice in breakdown.advice:
                over, ratio = advice.contrast.over, advice.contrast.ratio
                instead, batch = configuration(over.column), over.key.options.batch
                more = {"what": advice.what, "instead": instead, "instead_batch_size": batch}
                told.advice.append(like(Advised, ratio, **case, **more, takes_times_as_much=ratio.value))
        return told


TELLER = Explanations()
