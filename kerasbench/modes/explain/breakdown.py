"""Where an epoch's time goes, and what would make it shorter: from trials that measured what a step is made of.

An epoch of S steps is a + S * (feeding + framework + computation): shares of a step fed from arrays, by readings of the
same cycles of it, of one fed with a batch that lies ready on the device, and of the compiled step by itself.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kerasbench.analysis.cases import STEADY, Measured
from kerasbench.analysis.contrasts import CaseInRow, Contrast, believed, between, judge
from kerasbench.analysis.estimates import Amount, LogEstimate, Verdict, estimate, mean_interval
from kerasbench.analysis.metrics import NS_PER_MS
from kerasbench.analysis.rankings import BreakEven, break_evens
from kerasbench.analysis.ratios import divide_slices, estimate_ratio
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary, derived
from kerasbench.modes.explain.causes import TriedCause, tried_causes
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.measurement import Measurement, Samples
from kerasbench.protocol.stages import PARTS_OF_STEP, TRAIN
from kerasbench.results.times import epoch_ns, epoch_overhead_ns
from kerasbench.variants.feed import Feed
from kerasbench.variants.workers import without_feed

ARRAYS, READY, BARE = PARTS_OF_STEP
MS_PER_S = 1000
WORTH_A_HINT = 0.10  # of an epoch: what a part must take before doing away with it is advised


class Help(StrEnum):
    BATCH = "a larger batch"
    JIT = "jit"
    DEVICE = "another device"
    FEED = "another feed"
    PREPARED = "prepared data"


@dataclass(frozen=True)
class Advice:
    what: Help
    contrast: Contrast  # with it over the case as it is: a step, or a sample. Prepared data are no case of their own

    @property
    def key(self) -> tuple[CaseKey, CaseKey, Help]:
        return self.contrast.under.key, self.contrast.over.key, self.what


@dataclass(frozen=True)
class StepBreakdown:
    """One case, with 95 % intervals over trials; input pipeline, framework and computation add up to a step."""

    row: Row
    column: Column
    disturbance: str  # what took too much of the machine in one of its trials; empty: nothing did
    steps: int  # of an epoch
    epoch_ms: Amount
    overhead_ms: Amount  # of an epoch
    input_pipeline_ms: Amount
    framework_ms: Amount
    computation_ms: Amount
    later: LogEstimate  # how long a step took while its parts were measured, over how long before
    flops_per_s: Amount | None  # as its peak: None where nothing counted them
    peak_flops_per_s: Amount | None
    compile_ms: Amount | None
    warm_up_ms: Amount  # what the first steps took beyond as many steady ones
    repaid: list[BreakEven]
    advice: list[Advice]
    causes: list[TriedCause]  # those that it might have, the strongest first


@derived
def explained(summary: Summary) -> list[StepBreakdown]:
    operations = {(flops.scenario, flops.workload): flops.operations for flops in summary.record.flops}
    cases = [
        CaseInRow(row, column) for row, column, case in summary.cases if case.failure is None and _with_parts(case)
    ]
    counted = [operations.get((case.key.scenario, case.key.workload)) for case in cases]
    parts = zip(cases, counted, _advice(summary, cases), tried_causes(cases, summary.effect), strict=True)
    return [_breakdown(*of_case, summary.effect) for of_case in parts]


def _with_parts(case: Measured) -> list[Measurement]:
    """Return the trials that measured the parts of a step: of a full one, which an epoch has to have."""
    return [m for _, m in case.trials if m.full_steps_per_epoch and m.peak_flops is not None]


def _breakdown(
    case: CaseInRow, operations: float | None, advice: list[Advice], causes: list[TriedCause], effect: float
) -> StepBreakdown:
    (row, column), trials = case, _with_parts(case.case)
    steps = trials[0].full_steps_per_epoch
    signals = [signal for trial, _ in case.case.trials for signal in trial.noise]
    compiling_ms = case.case.values("compile_ms")
    warm_ups = [(m.training.warmup, m.median_ns[TRAIN]) for m in trials if m.training]
    epoch_ms = mean_interval([ns / NS_PER_MS for m in trials if (ns := epoch_ns(m)) is not None])
    overhead_ms = mean_interval([(epoch_overhead_ns(m) or 0) / NS_PER_MS for m in trials])
    whole_ms = (epoch_ms.value - overhead_ms.value) / steps
    prepared = [share(m.samples[READY], m.samples[ARRAYS]) for m in trials]
    alone = [share(m.samples[BARE], m.samples[ARRAYS]) for m in trials]
    warming_ms = [sum(turn.ns - turn.count * usual_ns for turn in turns) / NS_PER_MS for turns, usual_ns in warm_ups]
    rates = [operations * row.workload.batch * MS_PER_S / step_ms(m.samples[BARE]) for m in trials if operations]
    return StepBreakdown(
        row=row,
        column=column,
        disturbance=next((signal.reason for signal in signals if signal.invalidates), ""),
        steps=steps,
        epoch_ms=epoch_ms,
        overhead_ms=overhead_ms,
        input_pipeline_ms=mean_interval([(1 - part) * whole_ms for part in prepared]),
        framework_ms=mean_interval([(part - bare) * whole_ms for part, bare in zip(prepared, alone, strict=True)]),
        computation_ms=mean_interval([bare * whole_ms for bare in alone]),
        later=estimate([step_ms(m.samples[ARRAYS]) / step_ms(m.samples[TRAIN]) for m in trials]),
        flops_per_s=mean_interval(rates) if rates else None,
        peak_flops_per_s=mean_interval([m.peak_flops for m in trials if m.peak_flops]) if rates else None,
        compile_ms=mean_interval(compiling_ms) if compiling_ms else None,
        warm_up_ms=mean_interval(warming_ms),
        repaid=break_evens(row, column, effect),
        advice=advice,
        causes=causes,
    )


def step_ms(slices: Samples) -> float:
    return statistics.median(slices.units_ns) / NS_PER_MS


def share(part: Samples, whole: Samples) -> float:
    """Return what a step took in one way, over what it took in another: the median over cycles, if it has any."""
    ratio = divide_slices(part, whole)
    return math.exp(ratio.log) if ratio else step_ms(part) / step_ms(whole)


def _advice(summary: Summary, cases: Sequence[CaseInRow]) -> list[list[Advice]]:
    candidates = [list(_candidates(summary, case)) if believed(case.row) else [] for case in cases]
    contrasts = {advice.key: advice.contrast for of_case in candidates for advice in of_case}
    contrasts = judge(contrasts, summary.record.minimal_effect)
    helpful = []
    for of_case in candidates:
        faster = [
            advice
            for advice in of_case
            if contrasts[advice.key].verdict is Verdict.FASTER
            # Another case that is significantly faster is always worth a word, preparing data only if it saves enough.
            and (advice.what is not Help.PREPARED or advice.contrast.ratio.value < 1 - WORTH_A_HINT)
        ]
        helpful.append(sorted(faster, key=lambda advice: advice.contrast.ratio.value))
    return helpful


def _candidates(summary: Summary, case: CaseInRow) -> Iterator[Advice]:
    """Yield what differs from a case in one thing, with the time that is left there for the same work."""
    row, column = case
    for rival in row.cases:
        what = _difference(rival, column)
        if what and (contrast := between(row, rival, column, STEADY)) is not None:
            yield Advice(what, contrast)
    for other in summary.rows:
        # Larger alone, and measured in the same run: blocks of two runs are not of one hour, though numbered alike.
        is_alike = (other.name, other.run) == (row.name, row.run) and column in other.cases
        batch = other.size.batch if other.size and other.size.width is None and is_alike else None
        if batch is not None and batch > row.workload.batch:
            larger = CaseInRow(other, column)
            if left := estimate_ratio(larger.case, case.case, STEADY):
                a_sample = left.log_centre + math.log(row.workload.batch / batch)
                yield Advice(Help.BATCH, Contrast(larger, case, STEADY, replace(left, log_centre=a_sample)))
    shares = [share(m.samples[READY], m.samples[ARRAYS]) for m in _with_parts(case.case)]
    yield Advice(Help.PREPARED, Contrast(case, case, STEADY, estimate(shares)))


def _difference(rival: Column, column: Column) -> Help | None:
    """Return the one thing in which a column differs from another of the same backend, None for none or several."""
    if replace(rival, device=column.device) == column and rival.device != column.device:
        return Help.DEVICE
    if "jit" not in column.options and rival != column and rival.with_options(jit=None) == column:
        return Help.JIT
    if Feed.name in rival.options and rival != column and without_feed(rival) == without_feed(column):
        return Help.FEED
    return None
