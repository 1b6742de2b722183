"""Which warnings apply: to a case, to a row, to a whole summary, and what others disturbed."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, starmap

from kerasbench import variants
from kerasbench.analysis.cases import Measured
from kerasbench.analysis.contrasts import apart, by_session
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, learned
from kerasbench.analysis.names import names
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary, derived
from kerasbench.facts.products import EMULATED, Products
from kerasbench.host.noise import SCATTER_WARN, WarningKind
from kerasbench.host.programs import MOST_PROGRAMS
from kerasbench.protocol.columns import CPU, Column
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.stages import STAGES, TRAIN
from kerasbench.results.times import epoch_overhead_ns
from kerasbench.text import percent

COMMON = ("keras", "python")  # what every column has, and what makes more than the backend differ

IDLE_SHARE = 0.7  # of the processors that a slice of the column has in the median: see "TensorFlow's late epochs"
# What a subnormal first moment adds to a step on torch: 5 to 7 ns. What a page fault costs, with clearing the page: 0.5
# to 1.1 us (validation/studies/subnormals-and-memory.md).
SUBNORMAL_NS, PAGE_NS = 6, 1_000
LEAST_SLOWER = 0.1  # of a step, by what subnormal numbers add to it
LEAST_IN_PAGES = 0.1  # of a step, in page faults
# Steps that get longer: the last third of a column's slices beside the first, in an order that chance gives to one in
# seven thousand (H. B. Mann, "Nonparametric tests against trend", 1945). None of 1,255 trials in results/ does both.
GROWN, TREND, LEAST_SLICES = 1.35, 3.8, 6
MOST_POINTS = 60  # of a trend: what a soak measures for minutes is taken together
IN_ORDER = 0.9  # of so few slices that not even the best order is as rare as that
LONGER_MEAN = 1.6  # times the median of a column's slices; of these trials none has more than 1.53
LATE = 0.5  # of all steps' time; what ends of epochs take beyond their fixed cost
COMPARISON = "the comparison of losses"  # left out where steps are slow
OFTEN = 0.03  # of the slices: on JAX and torch it is at most 1.2 % in the published rows


@dataclass(frozen=True)
class CaseWarning:
    what: WarningKind
    detail: str = ""
    share: float | None = None  # of a step's time that it is about, estimated
    columns: tuple[Column, ...] = ()  # empty: all
    row: str = ""  # its label; empty: all rows


def programs_in(rows: Iterable[Row]) -> list[str]:
    """Return which other programs kept a CPU busy in blocks that they interrupted, the most frequent first."""
    trials = ((row, trial) for row in rows for case in row.cases.values() for trial, _ in case.trials)
    blocks = {
        (row.label, trial.block): trial.surroundings.programs
        for row, trial in trials
        if trial.surroundings is not None and any(signal.name == WarningKind.OTHERS for signal in trial.noise)
    }
    counts = Counter(name for names in blocks.values() for name in names)
    return [name for name, _ in counts.most_common(MOST_PROGRAMS)]


@derived
def concerns(summary: Summary) -> list[CaseWarning]:
    warnings: list[CaseWarning] = []
    for row, ranking in summary.ranked:
        noted: dict[CaseWarning, list[Column]] = {}  # what is said of several columns is said once
        for column in row.cases:
            for concern in _of_case(row, column):
                noted.setdefault(concern, []).append(column)
        of_cases = [replace(concern, columns=tuple(columns)) for concern, columns in noted.items()]
        warnings += [replace(concern, row=row.label) for concern in (*of_cases, *_of_row(row, ranking))]
    return [*warnings, *_versions(summary)]


def _of_case(row: Row, column: Column) -> Iterator[CaseWarning]:
    case = row.cases[column]
    losses = [(m.learning.batch_loss_before, m.learning.batch_loss_after) for _, m in case.trials if m.learning]
    if row.scenario.learnable and not all(starmap(learned, losses)):
        yield CaseWarning(WarningKind.IDLE)
    if any(trial.disturbed for trial, _ in case.trials):
        yield CaseWarning(WarningKind.DISTURBED)
    has_others = any(other.trials for rival, other in row.cases.items() if rival != column)
    digests = {rival: other.digest for rival, other in row.cases.items() if other.digest}
    if any(digest != digests[column] for digest in digests.values() if column in digests):
        yield CaseWarning(WarningKind.OTHER_DATA)
    elif row.origin.agenda.usual and has_others and _is_unjudged(case) and not _too_slow_to_compare(case):
        yield CaseWarning(WarningKind.UNJUDGED)
    values = case.steps_ms
    if len(values) >= MIN_TRIALS_FOR_INTERVAL and statistics.stdev(values) >= SCATTER_WARN * statistics.fmean(values):
        yield CaseWarning(WarningKind.SCATTERED)
    if deviation := row.deviating.get(column):
        reference = names(row.cases)[deviation.beside] if deviation.beside else "the median of all configurations"
        kinds = {kind for _, m in case.trials if m.parity for kind in m.parity.sensitive}
        why = "; batch normalisation in small batches does that" if "BatchNormalization" in kinds else ""
        detail = f"by {100 * deviation.share:.2g} % from {reference} in step {deviation.step}{why}"
        yield CaseWarning(WarningKind.DEVIATES, detail)
    if still := row.standstills.get(column):
        yield CaseWarning(WarningKind.STILL, still.cause)
    yield from _of_steps(case, column)
    yield from _of_hidden_work(case)


def _is_unjudged(case: Measured) -> bool:
    return bool(case.trials) and all(m.parity is None for _, m in case.trials)


def _too_slow_to_compare(case: Measured) -> bool:
    """Tell whether a second model, without its random numbers, would have taken too long."""
    return any(m.sizes is not None and not m.sizes.silenced_steps for _, m in case.trials)


def _of_steps(case: Measured, column: Column) -> Iterator[CaseWarning]:
    operations = {name: times for _, m in case.trials for name, times in m.fallbacks.items()}
    if operations:
        detail = ", ".join(f"{name} ({times} a step)" for name, times in sorted(operations.items()))
        yield CaseWarning(WarningKind.FALLBACK, detail)
    for sentence in dict.fromkeys(sentence for _, m in case.trials for sentence in m.lost):
        yield CaseWarning(WarningKind.LOST, sentence)
    if emulated := [part for part in case.facts.get(Products.name, "").split(" and ") if EMULATED in part]:
        yield CaseWarning(WarningKind.EMULATED, ", ".join(part.partition(",")[0] for part in emulated))
    compilers = [m.compiler for _, m in case.trials if m.compiler]
    if any(compiler.while_measured for compiler in compilers):
        yield CaseWarning(WarningKind.RECOMPILED)
    if any(compiler.eager for compiler in compilers):
        yield CaseWarning(WarningKind.EAGER)
    slower = slower_by_subnormals(case)
    if slower >= LEAST_SLOWER and all(m.resolved.subnormals == "flushed" for _, m in case.trials):
        yield CaseWarning(WarningKind.SUBNORMALS, f"by about {percent(slower)}", slower)
    pages, share = _page_faults(case)
    if share >= LEAST_IN_PAGES and column.device == CPU and not variants.has(column.options, "keeps_memory"):
        yield CaseWarning(WarningKind.PAGES, f"{pages:,.0f} pages, about {percent(share)} of its time", share)
    waited, slices = _idle_slices(case)
    if slices and waited / slices >= OFTEN:
        yield CaseWarning(WarningKind.WAITED, f"in {waited} of {slices} turns")


def _of_hidden_work(case: Measured) -> Iterator[CaseWarning]:
    """Yield what a median of slices does not show, though a plain `fit` takes as long as it lasts."""
    trained = [measurement for _, measurement in case.trials if measurement.training is not None]
    grown = [growth(_undisturbed_ns(measurement)) for measurement in trained]
    if grown and min(grown) >= GROWN:
        yield CaseWarning(WarningKind.GROWING, f"{max(grown):.2g} times as long at the end")
    late = [late_share(measurement) for measurement in trained]
    if any(share >= LATE for share in late):
        yield CaseWarning(WarningKind.LATE, f"{1 + max(late):.2g} times as long with it")
    units_ns = [ns for measurement in trained for ns in _undisturbed_ns(measurement)]
    if len(units_ns) >= LEAST_SLICES:
        times = statistics.fmean(units_ns) / statistics.median(units_ns)
        if times >= LONGER_MEAN:
            yield CaseWarning(WarningKind.RARE, f"{times:.2g} times as long by the mean")


def _undisturbed_ns(measurement: Measurement) -> list[float]:
    slices = measurement.samples[TRAIN]
    disturbed = slices.disturbed or [False] * len(slices)
    return [ns for ns, other in zip(slices.units_ns, disturbed, strict=True) if not other]


def growth(units_ns: Sequence[float]) -> float:
    """Return how many times as long the last third of slices is as the first; 1 unless they get longer in order."""
    if len(units_ns) < LEAST_SLICES:
        return 1.0
    together = math.ceil(len(units_ns) / MOST_POINTS)
    points = [statistics.median(units_ns[start : start + together]) for start in range(0, len(units_ns), together)]
    size, third = len(points), len(points) // 3
    pairs = size * (size - 1) / 2
    order = sum((later > earlier) - (later < earlier) for earlier, later in combinations(points, 2)) / pairs  # tau
    times = statistics.median(points[-third:]) / statistics.median(points[:third])
    by_chance = math.sqrt(
        2 * (2 * size + 5) / (9 * size * (size - 1))
    )  # the standard error of Kendall's tau without a trend
    return times if order >= min(IN_ORDER, TREND * by_chance) else 1.0


def late_share(measurement: Measurement) -> float:
    """Return by which share of its steps' time a `fit` was longer, as ends of epochs took far more than short ones."""
    ends = measurement.training.epoch_ends if measurement.training else None
    overhead_ns = epoch_overhead_ns(measurement)
    if ends is None or not ends.count or not ends.steps or overhead_ns is None:
        return 0.0
    fixed_ns = ends.count * max(0.0, overhead_ns)
    more_ns = ends.more_ns - fixed_ns
    return more_ns / (ends.steps * measurement.median_ns[TRAIN]) if more_ns > fixed_ns else 0.0


def _of_row(row: Row, ranking: Ranking) -> Iterator[CaseWarning]:
    if ranking.withheld:
        yield CaseWarning(WarningKind.CONTROL)
    if ranking.disturbed:
        yield CaseWarning(WarningKind.UNDECIDED)
    for contrast in ranking.others:
        differs_by = apart(by_session(contrast))
        if differs_by is not None and differs_by.is_above(1):
            detail = f"by {100 * (differs_by.value - 1):.0f} %"
            yield CaseWarning(WarningKind.SESSIONS, detail, columns=(contrast.over.column,))
    if row.origin.config.ranks:  # others have intervals of their own, or none is the fastest
        few = row.rounds < MIN_TRIALS_FOR_INTERVAL
        by_slices = ranking.proven and any(contrast.ratio.basis == "slices" for contrast in ranking.others)
        if by_slices and not few:  # of enough rounds: most were disturbed
            most = MIN_TRIALS_FOR_INTERVAL - 1
            detail = f"at most {most} rounds were uninterrupted, so intervals come from their turns"
            yield CaseWarning(WarningKind.DISTURBED, detail)
        elif by_slices:
            yield CaseWarning(WarningKind.SLICES)
        elif ranking.others and few and not ranking.tentative:
            yield CaseWarning(WarningKind.FEW)
    # What a row has no figures of, because its steps would have taken minutes.
    all_sizes = (measurement.sizes for case in row.cases.values() for _, measurement in case.trials)
    sizes = min(filter(None, all_sizes), key=lambda sizes: len(sizes.left_out), default=None)
    measured = [case for case in row.cases.values() if case.trials]
    slow = len(measured) > 1 and any(_is_unjudged(case) and _too_slow_to_compare(case) for case in measured)
    if sizes is not None and (sizes.left_out or slow):
        what = [STAGES[stage].left_out if stage in STAGES else stage for stage in sizes.left_out]
        what += [COMPARISON] if slow else []
        parts = ", ".join(dict.fromkeys(what))
        yield CaseWarning(WarningKind.SLOW, f"left out: {parts}; one step takes {sizes.step_ns / 1e9:.1f} s")
    yield from (CaseWarning(WarningKind.APART, columns=columns) for columns in _apart(row))


def _apart(row: Row) -> list[tuple[Column, ...]]:
    """Return which columns were measured side by side, where they did not fit into memory all together."""
    groups: dict[object, dict[int, list[Column]]] = {}
    for column, case in row.cases.items():
        for trial, _ in case.trials:
            if trial.block and not row.origin.agenda.in_full:
                pair = column.paired if row.origin.config.paired else None
                groups.setdefault((trial.round, pair), {}).setdefault(trial.block, []).append(column)
    split = next((blocks for blocks in groups.values() if len(blocks) > 1), {})
    return list(map(tuple, split.values()))


def _versions(summary: Summary) -> Iterator[CaseWarning]:
    for package in COMMON:
        versions: dict[str, dict[Column, None]] = {}
        for trial in summary.record.trials:
            if trial.measurement is None or trial.options.environment:
                continue  # columns with labels are meant to differ, and the heading says how
            if version := trial.measurement.resolved.versions.get(package):
                versions.setdefault(version, {})[trial.column] = None
        if len(versions) > 1:
            for version, columns in sorted(versions.items()):
                yield CaseWarning(WarningKind.VERSIONS, f"{package} {version}", columns=tuple(columns))


def _idle_slices(case: Measured) -> tuple[int, int]:
    """Return how many slices of a column used much less of the processors than its others, and of how many."""
    columns = [measurement.slices for _, measurement in case.trials]
    times = [both for slices in columns for both in zip(slices.cpu_ns or (), slices.ns, strict=False)]
    shares = [cpu_ns / ns for cpu_ns, ns in times if cpu_ns is not None]
    usual = statistics.median(shares) if shares else 0.0
    return sum(share < IDLE_SHARE * usual for share in shares), len(shares)


def slower_by_subnormals(case: Measured) -> float:
    """Return by about what share of it a step becomes longer, where subnormal numbers are kept; 0: not known to."""
    shares = [0.0]
    for _, measurement in case.trials:
        if measurement.vanishing and measurement.training is not None:
            steps = measurement.steps_per_epoch if measurement.training.unit == "epoch" else 1
            more_ns = SUBNORMAL_NS * measurement.vanishing * measurement.parameters
            shares.append(more_ns * steps / measurement.median_ns[TRAIN])
    return max(shares)


def _page_faults(case: Measured) -> tuple[float, float]:
    """Return how many pages of memory a step (or epoch) takes from the system, and about what share of its time."""
    trained = [measurement.samples[TRAIN] for _, measurement in case.trials if TRAIN in measurement.samples]
    counted = [slices for slices in trained if slices.page_faults]
    pages = sum(sum(slices.page_faults or ()) for slices in counted)
    units, ns = sum(sum(slices.count) for slices in counted), sum(sum(slices.ns) for slices in counted)
    return (pages / units, pages * PAGE_NS / ns) if units else (0.0, 0.0)
