"""Where an epoch's time goes, and what would make it shorter: from trials that measured what a step is made of.

An epoch of S steps is a + S * (feeding + framework + computation). Three readings were taken in turn in one process: a
step fed from arrays, fed with a batch that lies ready on the device, and the compiled step by itself. Each part is a
share of the first of them, by the readings of the same cycle, and so the parts add up to the step.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kerasbench.analysis.cases import STEADY, CaseSummary, Row
from kerasbench.analysis.estimates import Amount, LogEstimate, Verdict, estimate, judge_all, mean_interval
from kerasbench.analysis.metrics import BY_NAME, NS_PER_MS
from kerasbench.analysis.rankings import BreakEven, believed
from kerasbench.analysis.ratios import between, by_slices, in_row
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Measurement, Parts, Slice, epoch_ns, epoch_overhead_ns

WORTH_A_HINT = 0.10  # of an epoch: what a part must take before doing away with it is advised


class Help(StrEnum):
    """What might help."""

    BATCH = "a larger batch"
    JIT = "jit"
    DEVICE = "another device"
    PREPARED = "prepared data"


@dataclass(frozen=True)
class Advice:
    """What would help, and by how much: the time that is left, as a share of today's (a step's, or a sample's)."""

    what: Help
    column: Column
    left: LogEstimate

    @property
    def is_worth_it(self) -> bool:
        """Whether it saves enough; another case that is significantly faster always does."""
        return self.what is not Help.PREPARED or self.left.value < 1 - WORTH_A_HINT


@dataclass(frozen=True)
class StepBreakdown:
    """One case: times in ms, an epoch's or a step's, with 95 % intervals over trials.

    ``feeding``, ``framework`` and ``computation`` are of a step. They add up to it, and their intervals are those of
    their shares of it. ``later`` is how long a step took while its parts were measured, over how long before. ``rate``
    and ``peak`` are in floating-point operations a second, None where nothing counted them. ``warming_ms`` is what the
    first steps took beyond as many steady ones.
    """

    row: Row
    column: Column
    steps: int
    epoch_ms: Amount
    overhead_ms: Amount
    feeding_ms: Amount
    framework_ms: Amount
    computation_ms: Amount
    later: LogEstimate
    rate: Amount | None
    peak: Amount | None
    compile_ms: Amount | None
    warming_ms: Amount
    repaid: list[BreakEven]
    advice: list[Advice]

    def share(self, step_ms: Amount) -> float:
        """Return the part of the epoch that so much a step comes to."""
        return step_ms.value * self.steps / self.epoch_ms.value


def breakdowns(summary: Summary, paid: Sequence[BreakEven]) -> list[StepBreakdown]:
    """Return one for each case whose trials measured the parts of a step; ``paid`` are all break-evens of the run.

    What would help is judged together for all of them.
    """
    flops = {(one.scenario, one.workload): one.operations for one in summary.record.flops}
    cases = [
        (row, column)
        for row in summary.rows
        for column, case in row.cases.items()
        if case.failure is None and any(_parts(measurement) for _, measurement in case.trials)
    ]
    advice = _advice(summary, cases)
    return [
        _breakdown(row, column, flops.get((row.scenario.name, row.workload.name)), paid, helpful)
        for (row, column), helpful in zip(cases, advice, strict=True)
    ]


def _breakdown(
    row: Row, column: Column, flops: float | None, paid: Sequence[BreakEven], advice: list[Advice]
) -> StepBreakdown:
    parts = [(one, found) for _, one in row.cases[column].trials if (found := _parts(one)) is not None]
    measured = [measurement for measurement, _ in parts]
    steps = measured[0].full_steps_per_epoch
    bare = [step_ms(found.bare) for _, found in parts]
    compiling = row.cases[column].values(BY_NAME["compile_ms"])
    epoch_ms = mean_interval(
        [whole / NS_PER_MS for measurement in measured if (whole := epoch_ns(measurement)) is not None]
    )
    overhead_ms = mean_interval([(epoch_overhead_ns(measurement) or 0) / NS_PER_MS for measurement in measured])
    a_step_ms = (epoch_ms.value - overhead_ms.value) / steps
    prepared = [share(found.ready, found.arrays) for _, found in parts]
    alone = [share(found.bare, found.arrays) for _, found in parts]

    def of_a_step(shares: Iterable[float]) -> Amount:
        return mean_interval([each * a_step_ms for each in shares])

    return StepBreakdown(
        row=row,
        column=column,
        steps=steps,
        epoch_ms=epoch_ms,
        overhead_ms=overhead_ms,
        feeding_ms=of_a_step(1 - each for each in prepared),
        framework_ms=of_a_step(in_fit - by_itself for in_fit, by_itself in zip(prepared, alone, strict=True)),
        computation_ms=of_a_step(alone),
        later=estimate([step_ms(found.arrays) / step_ms(measurement.slices) for measurement, found in parts]),
        rate=None if flops is None else mean_interval([flops * row.workload.batch * 1000 / each for each in bare]),
        peak=None if flops is None else mean_interval([found.peak_flops for _, found in parts]),
        compile_ms=mean_interval(compiling) if compiling else None,
        warming_ms=mean_interval([_warming_ms(measurement) for measurement in measured]),
        repaid=[one for one in paid if one.row is row and column in (one.slow_start, one.rival)],
        advice=advice,
    )


def _parts(measurement: Measurement) -> Parts | None:
    return measurement.training.parts if measurement.training else None


def step_ms(slices: Sequence[Slice]) -> float:
    """Return the median over slices of the time of a step."""
    return statistics.median(slice_.unit_ns for slice_ in slices) / NS_PER_MS


def share(part: Sequence[Slice], whole: Sequence[Slice]) -> float:
    """Return what a step took in one way, over what it took in another: the median over cycles, if it has any."""
    found = by_slices(part, whole)
    return math.exp(found.log) if found else step_ms(part) / step_ms(whole)


def _warming_ms(measurement: Measurement) -> float:
    """Return what the warm-up's steps took beyond as many steady ones."""
    training = measurement.training
    if training is None:
        return 0.0
    return sum(slice_.ns - slice_.count * training.median_ns for slice_ in training.warmup) / NS_PER_MS


def _advice(summary: Summary, cases: Sequence[tuple[Row, Column]]) -> list[list[Advice]]:
    """Return for each case what helps significantly: other cases of the row and sizes, data that lie ready."""
    candidates = [list(_candidates(summary, row, column)) if believed(row) else [] for row, column in cases]
    verdicts = iter(judge_all([one.left for each in candidates for one in each], summary.record.minimal_effect))
    helpful = [[one for one in each if next(verdicts) is Verdict.FASTER and one.is_worth_it] for each in candidates]
    return [sorted(each, key=lambda one: one.left.value) for each in helpful]


def _candidates(summary: Summary, row: Row, column: Column) -> Iterator[Advice]:
    """Yield what differs from a case in one thing, with the time that is left there for the same work."""
    mine = row.cases[column]
    for rival, case in row.cases.items():
        what = _differs(case, mine)
        if what and (left := in_row(row, rival, column, STEADY)) is not None:
            yield Advice(what, rival, left)
    for other in summary.rows:
        batch = _larger_batch(other, row)
        if batch and column in other.cases:
            left = between(other.cases[column], mine, STEADY)
            if left is not None:
                larger = dataclasses.replace(column, options=other.key(column).options)
                yield Advice(Help.BATCH, larger, left.times(row.workload.batch / batch))
    parts = [found for _, measurement in mine.trials if (found := _parts(measurement)) is not None]
    yield Advice(Help.PREPARED, column, estimate([share(one.ready, one.arrays) for one in parts]))


def _larger_batch(other: Row, row: Row) -> int | None:
    """Return the batch of a row that differs from another in being larger alone, measured in the same run.

    Blocks of two runs are not of one hour, though they have the same numbers.
    """
    is_alike = (other.scenario.name, other.workload.name) == (row.scenario.name, row.workload.name)
    is_of_one_run = other.origin.started == row.origin.started
    if not is_alike or not is_of_one_run or other.size is None or other.size.width is not None:
        return None
    batch = other.size.batch
    return batch if batch is not None and batch > row.workload.batch else None


def _differs(rival: CaseSummary, mine: CaseSummary) -> Help | None:
    """Return the one thing in which a case differs from another of the same backend, None for none or several."""
    if not rival.trials or not mine.trials:
        return None
    other, own = rival.trials[0][0], mine.trials[0][0]
    if other.backend != own.backend:
        return None
    if other.options == own.options:
        return Help.DEVICE if other.device.label != own.device.label else None
    is_jit = own.options.jit is None and dataclasses.replace(other.options, jit=None) == own.options
    return Help.JIT if is_jit and other.device.label == own.device.label else None
