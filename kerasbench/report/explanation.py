"""Where an epoch's time goes, in plain language: every sentence with its number."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from kerasbench.analysis.breakdown import Advice, Help, StepBreakdown
from kerasbench.analysis.estimates import Amount, Estimate
from kerasbench.analysis.rankings import BreakEven
from kerasbench.report import charts
from kerasbench.report.figures import NOT_ABOVE_ZERO, percent, significant, whole_steps
from kerasbench.report.sections import Section

GIGA = 1e9
MS_PER_S = 1000.0
WORTH_SAYING = 0.05  # a step that takes so much more or less while its parts are measured is named


def section(breakdowns: Sequence[StepBreakdown]) -> Section | None:
    """Return a part for each case that was explained."""
    if not breakdowns:
        return None
    parts = [
        Section(f"{one.row.label}, {one.column.label}", lines=list(sentences(one)), folded=True) for one in breakdowns
    ]
    return Section("Where the time goes", parts=parts, chart=charts.epoch_chart(breakdowns))


def as_data(found: Sequence[StepBreakdown]) -> list[dict[str, Any]]:
    """Return the same as plain data, with the sentences."""
    return [_data(one) for one in found]


def sentences(one: StepBreakdown) -> Iterator[str]:
    """Yield the sentences of one case: first those of the epoch, then those of the step."""
    yield f"An epoch of {one.steps:,} steps takes {_duration(one.epoch_ms)}{_once(one)}."
    feeding = _part(
        one,
        one.feeding_ms,
        "the extra time of a batch from arrays, compared with a prepared batch",
        "from arrays a step took {} than with a prepared batch",
    )
    yield f"Feeding: {feeding}."
    framework = _part(
        one, one.framework_ms, "what fit does around the compiled step", "in fit a step took {} than alone"
    )
    yield f"Python and framework: {framework}."
    computing = "Keras' own step alone, on a batch that is already on the device"
    yield f"Computation: {_step(one, one.computation_ms)}: {computing}."
    if abs(one.later.value - 1) > WORTH_SAYING:
        times = f"{significant(one.later.value)} times as long{_within(one.later, 1, '')}"
        yield f"When the parts were measured, a step took {times} as before. The parts are shares of the step before."
    if one.rate is not None and one.peak is not None:
        rate, peak = significant(one.rate.value / GIGA), significant(one.peak.value / GIGA)
        yield (
            f"The step computes {rate} GFLOP/s, {percent(one.rate.value / one.peak.value)} of the {peak} that matrix "
            "products reach on this device in the same precision."
        )
    if one.compile_ms is not None:
        yield _compiling(one.compile_ms)
    yield from (_repaid(one, paid) for paid in one.repaid)
    yield _warming(one.warming_ms)
    yield from (_advice(advice) for advice in one.advice)
    if not one.advice:
        yield "Nothing that was measured would make it significantly faster."


# A cost is the difference of two measured times. Its sign is 1 if it is significantly above zero, -1 if below, else 0.


def _once(one: StepBreakdown) -> str:
    what, ms = "what each epoch costs once, validation included", one.overhead_ms
    match ms.sign:
        case 1:
            return f"; {_duration(ms)} of it ({percent(ms.value / one.epoch_ms.value)}) is {what}"
        case 0:
            return f"; {what}, is {_uncertain(ms)}"
        case _:
            return f"; {what}, was not seen: short epochs took {_less(ms)} than the same number of steady steps"


def _part(one: StepBreakdown, ms: Amount, what: str, instead: str) -> str:
    """Say what a part of a step costs; ``instead`` says what was seen if that is less than nothing."""
    match ms.sign:
        case 1:
            return f"{_step(one, ms)}: {what}"
        case 0:
            return f"{_uncertain(ms, ' a step')}: {what}"
        case _:
            return f"no cost was seen; {instead.format(_less(ms))}"


def _compiling(ms: Amount) -> str:
    match ms.sign:
        case 1:
            return f"The first step takes {_duration(ms)} longer than the same call later: tracing and compiling."
        case 0:
            how = "the time of the first step, minus that of the same call later"
            return f"Tracing and compiling are {_uncertain(ms)}: {how}."
        case _:
            return f"The first step takes {_less(ms)} than the same call later: no compiling was seen."


def _warming(ms: Amount) -> str:
    match ms.sign:
        case 1:
            return (
                f"Until it was steady, the training took {_duration(ms)} longer than the same number of "
                "steady steps. The first epoch pays this once."
            )
        case 0:
            return (
                f"The cost of warming up is {_uncertain(ms)}: the time until the training was steady, minus that of "
                "the same number of steady steps."
            )
        case _:
            return f"Until it was steady, the training took {_less(ms)} than the same number of steady steps."


def _repaid(one: StepBreakdown, paid: BreakEven) -> str:
    extra, steps = significant(paid.extra_ms), whole_steps(paid.steps)
    if paid.slow_start == one.column:
        return f"Against {paid.rival.label}, it repays its longer first step ({extra} ms) after {steps}."
    return f"Against it, {paid.slow_start.label} repays its longer first step ({extra} ms) after {steps}."


def _advice(advice: Advice) -> str:
    left = f"{percent(advice.left.value)} of today's time{_within(advice.left, 100, ' %')}"
    match advice.what:
        case Help.BATCH:
            return f"A larger batch would help: {advice.column.options.label} needs {left} for each sample."
        case Help.JIT:
            return f"{advice.column.options.label} would help: a step needs {left}."
        case Help.DEVICE:
            return f"Another device would help: on {advice.column.label} a step needs {left}."
        case Help.PREPARED:
            return f"Prepared data would help: with prepared batches, a step needs {left}."


def _step(one: StepBreakdown, part: Amount) -> str:
    return f"{significant(part.value)} ms a step{_within(part, 1, ' ms')}, {percent(one.share(part))} of the epoch"


def _uncertain(ms: Amount, of: str = "") -> str:
    """Say that an amount is not significantly above zero, with its interval if there is one."""
    if ms.low is None or ms.high is None:
        return f"{NOT_ABOVE_ZERO} ({significant(ms.value)} ms{of}, in too few rounds for an interval)"
    return f"{NOT_ABOVE_ZERO} ({significant(ms.low)} to {significant(ms.high)} ms{of})"


def _less(ms: Amount) -> str:
    """Return what an amount below zero saves: ``3.20 ms (2.90 to 3.50 ms) less``."""
    return f"{_duration(-ms)} less"


def _duration(ms: Amount) -> str:
    if ms.value < MS_PER_S:
        return f"{significant(ms.value)} ms{_within(ms, 1, ' ms')}"
    return f"{significant(ms.value / MS_PER_S)} s{_within(ms, 1 / MS_PER_S, ' s')}"


def _within(found: Estimate, factor: float, unit: str) -> str:
    """Return `` (0.35 to 0.41 ms)``, empty without an interval. What is above zero is nowhere below it."""
    if found.low is None or found.high is None:
        return ""
    return f" ({significant(max(0.0, found.low) * factor)} to {significant(found.high * factor)}{unit})"


def _data(one: StepBreakdown) -> dict[str, Any]:
    figures = {
        field.name: _figure(value)
        for field in dataclasses.fields(one)
        if isinstance(value := getattr(one, field.name), Amount)
    }
    return {
        "scenario": one.row.scenario.name,
        "workload": one.row.workload.name,
        "backend": one.column.backend,
        "device": one.column.device,
        "options": one.column.options.label,
        "steps": one.steps,
        **figures,
        "later": _figure(one.later),
        "advice": [{"what": each.what, "column": each.column.order, "left": _figure(each.left)} for each in one.advice],
        "sentences": list(sentences(one)),
    }


def _figure(found: Estimate) -> dict[str, float | None]:
    return {"value": found.value, "low": found.low, "high": found.high, "trials": found.trials}
