"""Where an epoch's time goes: the share of each part, and what would make an epoch shorter."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kerasbench.analysis.contrasts import believed
from kerasbench.analysis.estimates import Amount, Estimate
from kerasbench.analysis.metrics import NS_PER_MS
from kerasbench.analysis.summary import Summary
from kerasbench.modes.explain import MODE
from kerasbench.modes.explain.breakdown import WORTH_A_HINT, Advice, Help, StepBreakdown, explained
from kerasbench.modes.explain.causes import CauseOutcome, TriedCause
from kerasbench.protocol.columns import Column
from kerasbench.report import document
from kerasbench.report.data import configuration, of_key, result
from kerasbench.report.document import CaseAdvice, Document
from kerasbench.report.kinds import grouped
from kerasbench.report.sections import (
    Bar,
    BarChart,
    Cell,
    Piece,
    Section,
    SeriesStyle,
    Table,
    Typed,
    Words,
    inlines,
    texts,
)
from kerasbench.report.teller import ModeReport
from kerasbench.report.warnings import Marks
from kerasbench.report.words import (
    as_long,
    duration,
    listed,
    names,
    percent,
    three_digits,
    times,
    whole_steps,
    with_range,
)
from kerasbench.results.run import RunConfig
from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.variant import ScriptFacts

GIGA = 1e9
TRIED = (
    "Each cause was taken away in a process of its own, which took turns with the others and computed the same losses."
)
WORTH_SAYING = 0.05  # a step that takes so much more or less while its parts are measured is named
MOST_SHARE = 1.1  # of an epoch: a part that seems to take more tells that nothing is known of the parts
WORTH_A_LABEL = 0.12  # of the width: a narrower piece has no room for its percentage
ADVICE = {
    Help.BATCH: "a larger batch ({options})",
    Help.JIT: "{options}",
    Help.DEVICE: "{column}",
    Help.FEED: "{options}",
    Help.PREPARED: "data that are prepared before training",
}
PARTS = (
    "Of an epoch's time; in brackets ms per step, of the fixed cost ms per epoch, from three rounds on with 95 % "
    "intervals. Each part is measured by itself, so they add up to 100 % only nearly. Computation: Keras' own step on "
    "a batch on the device. Python and framework: what fit does around it."
)
FROM_ARRAYS = (
    "Input pipeline: the extra time of a batch from arrays. "
    "Fixed cost: what each epoch costs once, validation included."
)
FROM_STREAM = (
    "Input pipeline, of a script's stream: how much longer a step with a batch from it takes than with one from "
    "memory. What its epoch costs once, such as validation, is not measured."
)
SHORTER_WAITS = (
    "more workers (num_parallel_calls, num_workers, workers), prefetching, a cache, or decoding before training may "
    "shorten it. None of these was measured"
)
OUTCOMES = {
    CauseOutcome.NONE: "no cause",
    CauseOutcome.UNDECIDED: "undecided (more --rounds narrow the interval)",
    CauseOutcome.REFUSED: "not offered",
    CauseOutcome.NOT_TRIED: "not tried",
}
INPUT = "input pipeline"
# None of them is a backend's colour; black letters can be read on each.
PIECE_COLOURS = {
    "computation": "#56B4E9",
    "Python and framework": "#E69F00",
    INPUT: "#CC79A7",
    "fixed cost per epoch": "#999999",
}
# What an explanation measures besides the metrics of all runs: the parts of a step.
METRICS = ("input_pipeline_ms", "framework_ms", "computation_ms", "warm_up_ms", "flops_per_s", "peak_flops_per_s")


def parts_of(breakdown: StepBreakdown) -> dict[str, tuple[Amount, float]]:
    """Return what each part of an epoch takes in ms, and its share; one that is too small to measure has none."""
    return {name: (amount, min(share, 1.0)) for name, (amount, share) in _measured_parts(breakdown).items()}


def _measured_parts(breakdown: StepBreakdown) -> dict[str, tuple[Amount, float]]:
    of_step = (breakdown.computation_ms, breakdown.framework_ms, breakdown.input_pipeline_ms)
    counted = [*((amount, breakdown.steps) for amount in of_step), (breakdown.overhead_ms, 1)]
    return {
        name: (amount, amount.value * times_an_epoch / breakdown.epoch_ms.value if amount.is_above_zero else 0.0)
        for name, (amount, times_an_epoch) in zip(PIECE_COLOURS, counted, strict=True)
    }


def doubt(breakdown: StepBreakdown) -> str:
    """Return why the shares cannot be relied on, and what to do; empty where they can."""
    if breakdown.disturbance:
        return f"{breakdown.disturbance}. Measure again, with the machine to yourself"
    if any(share > MOST_SHARE for _, share in _measured_parts(breakdown).values()):
        return "a part seems to take longer than the whole. Measure more --rounds"
    return ""


def sentences(breakdown: StepBreakdown) -> list[str]:
    called = names([breakdown.column, *(advice.contrast.over.column for advice in breakdown.advice)])
    shares_of_parts = [f"{percent(share)} {part}" for part, (_, share) in parts_of(breakdown).items() if share]
    epoch = duration(breakdown.epoch_ms.value * NS_PER_MS)
    case = f"{breakdown.row.label} on {called[breakdown.column]}"
    causes = [
        "".join(part if isinstance(part, str) else part.text for part in inlines(words))
        for words in _causes(breakdown, called)
    ]
    shares = [] if doubt(breakdown) else [f"{case}: an epoch takes {epoch}: {listed(shares_of_parts)}."]
    return [*shares, *_advice(breakdown, called), *causes]


def _advice(breakdown: StepBreakdown, called: dict[Column, str]) -> Iterator[str]:
    name = called[breakdown.column]
    if why := doubt(breakdown):
        yield f"{breakdown.row.label} on {name}: the parts of an epoch are undecided, because {why}."
        return
    if not believed(breakdown.row):
        yield f"{name}: no advice, because the same configuration measured twice differs from itself."
    elif not breakdown.advice and all(tried.outcome is not CauseOutcome.FOUND for tried in breakdown.causes):
        yield f"{name}: nothing that was measured makes it clearly faster."
    waiting = parts_of(breakdown)[INPUT][1]
    if breakdown.row.workload.streams and waiting >= WORTH_A_HINT:
        yield f"{name}: {percent(waiting)} of an epoch waits for the script's data: {SHORTER_WAITS}."
    for advice in breakdown.advice:
        over = advice.contrast.over
        what = ADVICE[advice.what].format(column=called.get(over.column, ""), options=over.key.options.label)
        unit = "sample" if advice.what is Help.BATCH else "step"
        yield f"{name}: with {what} a {unit} takes {as_long(advice.contrast.ratio)}."


def _causes(breakdown: StepBreakdown, called: dict[Column, str]) -> Iterator[Words]:
    """Yield sentences for each cause that was found or seen, and one for all with each other outcome."""
    name, others = called[breakdown.column], dict[CauseOutcome, list[str]]()
    for tried in breakdown.causes:
        cause, ratio = tried.cause, tried.contrast.ratio if tried.contrast else None
        takes = f"a {unit_of(cause)} takes {as_long(ratio)}" if ratio else ""
        effect = f"Without that {takes}" if takes else tried.why
        if tried.outcome in (CauseOutcome.FOUND, CauseOutcome.SEEN):
            sentence = ". ".join(filter(None, [f"{name}: {cause.says}", effect, cause.upstream, cause.today]))
            line, when = to_write(cause), "Until then" if cause.upstream else "To avoid it"
            yield [f"{sentence}. {when}: ", Typed(line)] if line else f"{sentence}."
        else:
            how = f" (without it {takes})" if takes else f", because {tried.why}"
            others.setdefault(tried.outcome, []).append(f"{cause.title}{how}")
    yield from (f"{name}: {OUTCOMES[outcome]}: {listed(sentence)}." for outcome, sentence in others.items())


def to_write(cause: Cause) -> str:
    written = cause.written(True, ScriptFacts())
    return written[1] if written else ""


def unit_of(cause: Cause) -> str:
    return "prediction" if cause.predicts else "step"


def _more(breakdown: StepBreakdown, called: dict[Column, str]) -> Iterator[str]:
    if abs(breakdown.later.value - 1) > WORTH_SAYING:
        yield f"While the parts were measured, a step took {times(breakdown.later)} as long as before."
    rate, peak = breakdown.flops_per_s, breakdown.peak_flops_per_s
    if rate is not None and peak is not None:
        share = f"{percent(rate.value / peak.value)} of the {three_digits(peak.value / GIGA)} GFLOP/s"
        computes = f"The step computes {three_digits(rate.value / GIGA)} GFLOP/s"
        yield f"{computes}, {share} of matrix multiplications in its precision."
    if breakdown.compile_ms is not None:
        yield f"Tracing and compiling take {_cost(breakdown.compile_ms)}."
    for paid in breakdown.repaid:
        slow, rival = (called.get(column, column.label) for column in (paid.slow_start, paid.rival))
        extra, steps = three_digits(paid.extra_ms), whole_steps(paid.steps)
        yield f"{slow} makes up for its longer first step ({extra} ms more than {rival}) after {steps}."
    yield f"Warming up takes {_cost(breakdown.warm_up_ms)}, once."


def _cost(amount: Amount) -> str:
    return with_range(amount, "ms") if amount.is_above_zero else "too little to be measured"


def _chart(breakdowns: Sequence[StepBreakdown], title: str) -> BarChart | None:
    if not breakdowns:
        return None
    named = names(dict.fromkeys(breakdown.column for breakdown in breakdowns))
    groups = []
    for label, of_row in grouped((breakdown.row.label, breakdown) for breakdown in breakdowns).items():
        end = max(known.epoch_ms.value * sum(share for _, share in parts_of(known).values()) for known in of_row)
        bars = []
        for breakdown in of_row:
            epoch_ms, name = breakdown.epoch_ms.value, named[breakdown.column]
            pieces = [
                Piece(ms, SeriesStyle(PIECE_COLOURS[part]), percent(share) if ms > WORTH_A_LABEL * end else "")
                for part, (_, share) in parts_of(breakdown).items()
                if (ms := share * epoch_ms)
            ]
            text = duration(epoch_ms * NS_PER_MS)
            bars.append(Bar(name, text, pieces, breakdown.column.backend, tip=f"{name}: an epoch takes {text}"))
        groups.append((label, bars))
    caption = "Where the time of an epoch goes. In each group the longest epoch fills the width."
    return BarChart(title, caption, groups, legend=list(PIECE_COLOURS.items()))


class ExplainReport(ModeReport):
    name = "explained"

    def words(self, config: RunConfig) -> list[str]:
        return [*super().words(config), *(["--without-causes"] if MODE.settings_of(config).causes is False else [])]

    def title(self, summary: Summary) -> str:
        breakdowns = explained(summary)
        named = names(breakdown.column for breakdown in breakdowns)
        largest: dict[tuple[str, str], list[str]] = {}
        for breakdown in breakdowns:
            share, part = max((share, part) for part, (_, share) in parts_of(breakdown).items())
            what = f"the largest part of an epoch is {part}" if share else "every part is too small to measure"
            who = named[breakdown.column] + (f" ({percent(share)})" if share else "")
            if doubt(breakdown):
                what, who = "the parts of an epoch are undecided", named[breakdown.column]
            largest.setdefault((breakdown.row.label, what), []).append(who)
        return "; ".join([f"{label}: {what} on {listed(who)}" for (label, what), who in largest.items()][:3])

    def sections(self, summary: Summary, marks: Marks) -> Iterator[Section]:
        breakdowns = explained(summary)
        if not breakdowns:
            return
        named = names(breakdown.column for breakdown in breakdowns)
        rows = []
        for breakdown in breakdowns:
            ms = breakdown.epoch_ms.value
            cells = [*texts(breakdown.row.label, named[breakdown.column]), Cell(duration(ms * NS_PER_MS), ms)]
            why = doubt(breakdown)
            for amount, share in parts_of(breakdown).values():
                took = f"{three_digits(amount.value)} ms"
                part = "undecided" if why else percent(share)
                if breakdown.disturbance:
                    part = f"{percent(share)}, disturbed"
                if amount.low is not None and amount.high is not None:
                    took += f", {three_digits(max(0.0, amount.low))}–{three_digits(amount.high)}"
                cells.append(Cell(f"{part} ({took})", share) if share else Cell("too small to measure"))
            if breakdown.row.workload.streams:
                cells[-1] = Cell("not measured")
            rows.append(cells)
        headers = ["workload", "configuration", "an epoch", *PIECE_COLOURS]
        streams = {breakdown.row.workload.streams for breakdown in breakdowns}
        waits = {False: FROM_ARRAYS, True: FROM_STREAM}
        notes: list[Words] = [f"{PARTS} {' '.join(text for streamed, text in waits.items() if streamed in streams)}"]
        called = names(summary.columns)
        lines = [line for breakdown in breakdowns for line in _advice(breakdown, called)]
        chart = _chart([breakdown for breakdown in breakdowns if not doubt(breakdown)], self.title(summary))
        yield Section("Where the time goes", chart=chart, table=Table(headers, rows), notes=notes, lines=lines)
        if causes := [words for breakdown in breakdowns for words in _causes(breakdown, called)]:
            is_tried = any(tried.contrast for breakdown in breakdowns for tried in breakdown.causes)
            yield Section("What makes a step slow?", lines=causes, notes=[TRIED] if is_tried else [])

    def details(self, summary: Summary) -> Iterator[Section]:
        called = names(summary.columns)
        for breakdown in explained(summary):
            case = f"{breakdown.row.label} on {called[breakdown.column]}"
            heading = f"{case}: first step, warm-up and floating-point operations"
            yield Section(heading, lines=list(_more(breakdown, called)), folded=True)

    def sentences(self, summary: Summary) -> list[str]:
        return [" ".join(sentences(breakdown)) for breakdown in explained(summary)]

    def data(self, summary: Summary) -> Document:
        whole = Document()
        for breakdown in explained(summary):
            case = of_key(breakdown.row.key(breakdown.column))
            for metric in METRICS:
                amount: Estimate | None = getattr(breakdown, metric)
                unit = "FLOP/s" if metric.endswith("flops_per_s") else "ms"
                whole.results.extend([result(case, metric, amount, unit=unit)] if amount else [])
            for advice in breakdown.advice:
                whole.advice.append(_case_advice(case, advice))
            whole.causes.extend(_tried_cause(case, tried) for tried in breakdown.causes)
        return whole


def _case_advice(case: Mapping[str, Any], advice: Advice) -> CaseAdvice:
    instead, ratio = advice.contrast.over, advice.contrast.ratio
    return CaseAdvice(
        **case,
        what=advice.what,
        instead=configuration(instead.column),
        instead_batch_size=instead.key.size.batch if instead.key.size else None,
        takes_times_as_much=ratio.value,
        low=ratio.low,
        high=ratio.high,
    )


def _tried_cause(case: Mapping[str, Any], tried: TriedCause) -> document.TriedCause:
    cause, ratio = tried.cause, tried.contrast.ratio if tried.contrast else None
    return document.TriedCause(
        **case,
        cause=cause.title,
        says=cause.says,
        outcome=tried.outcome,
        of=unit_of(cause),
        takes_times_as_much=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        why=tried.why,
        upstream=cause.upstream,
        today=cause.today,
        to_write=to_write(cause),
    )
