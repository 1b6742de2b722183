"""Where an epoch's time goes, in plain language: every sentence with its number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerasbench.analysis.breakdown import Advice, Help, StepBreakdown
from kerasbench.analysis.estimates import Amount, Estimate
from kerasbench.analysis.rankings import BreakEven, believed
from kerasbench.report import charts
from kerasbench.report.figures import NOT_ABOVE_ZERO, percent, three_digits, whole_steps
from kerasbench.report.sections import Section

GIGA = 1e9
MS_PER_S = 1000.0
WORTH_SAYING = 0.05  # a step that takes so much more or less while its parts are measured is named


def section(breakdowns: Sequence[StepBreakdown]) -> Section | None:
    """Return a part for each case that was explained."""
    parts = [
        Section(f"{one.row.label}, {one.column.label}", lines=list(sentences(one)), folded=True) for one in breakdowns
    ]
    return Section("Where the time goes", parts=parts, chart=charts.epoch_chart(breakdowns)) if parts else None


@dataclass(frozen=True)
class Wording:
    """How a cost is worded. It is a difference of two measured times, and may be negative."""

    above: str  # significantly above zero
    below: str  # significantly below: no cost was seen
    uncertain: str = ""  # not significantly above zero; empty: as above

    def of(self, ms: Amount, above: str, a_step: str = "") -> str:
        """Return the sentence; ``above`` is the amount in words if it is above zero."""
        if ms.sign == 1:
            return self.above.format(above)
        if ms.sign == -1:
            return self.below.format(_duration(-ms))
        if ms.low is None or ms.high is None:
            known = f"{three_digits(ms.value)} ms{a_step}, in too few rounds for an interval"
        else:
            known = f"{three_digits(ms.low)} to {three_digits(ms.high)} ms{a_step}"
        return (self.uncertain or self.above).format(f"{NOT_ABOVE_ZERO} ({known})")


ONCE = Wording(
    "; {} is what each epoch costs once, validation included",
    "; what each epoch costs once, validation included, was not seen: short epochs took {} less than the same number "
    "of steady steps",
    "; what each epoch costs once, validation included, is {}",
)
FEEDING = Wording(
    "Feeding: {}: the extra time of a batch from arrays, compared with a prepared batch.",
    "Feeding: no cost was seen; from arrays a step took {} less than with a prepared batch.",
)
FRAMEWORK = Wording(
    "Python and framework: {}: what fit does around the compiled step.",
    "Python and framework: no cost was seen; in fit a step took {} less than alone.",
)
COMPILING = Wording(
    "The first step takes {} longer than the same call later: tracing and compiling.",
    "The first step takes {} less than the same call later: no compiling was seen.",
    "Tracing and compiling are {}: the time of the first step, minus that of the same call later.",
)
WARMING = Wording(
    "Until it was steady, the training took {} longer than the same number of steady steps. The first epoch pays this "
    "once.",
    "Until it was steady, the training took {} less than the same number of steady steps.",
    "The cost of warming up is {}: the time until the training was steady, minus that of the same number of steady "
    "steps.",
)

ADVICE = {
    Help.BATCH: "A larger batch would help: {options} needs {left} for each sample.",
    Help.JIT: "{options} would help: a step needs {left}.",
    Help.DEVICE: "Another device would help: on {column} a step needs {left}.",
    Help.PREPARED: "Prepared data would help: with prepared batches, a step needs {left}.",
}


def sentences(one: StepBreakdown) -> Iterator[str]:
    """Yield the sentences of one case: first those of the epoch, then those of the step."""
    overhead = one.overhead_ms
    share = f"{_duration(overhead)} of it ({percent(overhead.value / one.epoch_ms.value)})"
    yield f"An epoch of {one.steps:,} full steps takes {_duration(one.epoch_ms)}{ONCE.of(overhead, share)}."
    yield FEEDING.of(one.feeding_ms, _step(one, one.feeding_ms), " a step")
    yield FRAMEWORK.of(one.framework_ms, _step(one, one.framework_ms), " a step")
    computing = "Keras' own step alone, on a batch that is already on the device"
    yield f"Computation: {_step(one, one.computation_ms)}: {computing}."
    if abs(one.later.value - 1) > WORTH_SAYING:
        times = f"{three_digits(one.later.value)} times as long{_within(one.later, 1, '')}"
        yield f"When the parts were measured, a step took {times} as before. The parts are shares of the step before."
    if one.rate is not None and one.peak is not None:
        rate, peak = three_digits(one.rate.value / GIGA), three_digits(one.peak.value / GIGA)
        yield (
            f"The step computes {rate} GFLOP/s, {percent(one.rate.value / one.peak.value)} of the {peak} that matrix "
            "products reach on this device in the same precision."
        )
    if one.compile_ms is not None:
        yield COMPILING.of(one.compile_ms, _duration(one.compile_ms))
    yield from (_repaid(one, paid) for paid in one.repaid)
    yield WARMING.of(one.warming_ms, _duration(one.warming_ms))
    yield from (_advice(advice) for advice in one.advice)
    if not believed(one.row):
        yield "No advice: a column measured twice differs from itself."
    elif not one.advice:
        yield "Nothing that was measured is proven to make it faster."


def _repaid(one: StepBreakdown, paid: BreakEven) -> str:
    rival, repays = (paid.rival.label, "it") if paid.slow_start == one.column else ("it", paid.slow_start.label)
    extra, steps = three_digits(paid.extra_ms), whole_steps(paid.steps)
    return f"Against {rival}, {repays} repays its longer first step ({extra} ms) after {steps}."


def _advice(advice: Advice) -> str:
    left = f"{percent(advice.left.value)} of today's time{_within(advice.left, 100, ' %')}"
    return ADVICE[advice.what].format(column=advice.column.label, options=advice.column.options.label, left=left)


def _step(one: StepBreakdown, part: Amount) -> str:
    return f"{three_digits(part.value)} ms a step{_within(part, 1, ' ms')}, {percent(one.share(part))} of the epoch"


def _duration(ms: Amount) -> str:
    if ms.value < MS_PER_S:
        return f"{three_digits(ms.value)} ms{_within(ms, 1, ' ms')}"
    return f"{three_digits(ms.value / MS_PER_S)} s{_within(ms, 1 / MS_PER_S, ' s')}"


def _within(found: Estimate, factor: float, unit: str) -> str:
    """Return `` (0.35 to 0.41 ms)``, empty without an interval. What is above zero is nowhere below it."""
    if found.low is None or found.high is None:
        return ""
    return f" ({three_digits(max(0.0, found.low) * factor)} to {three_digits(found.high * factor)}{unit})"
