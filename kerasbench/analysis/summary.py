"""From trials to what a table says: cases in rows, who is fastest, what needs a warning, and what others disturbed."""

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

from kerasbench.analysis.cases import Measured, Noted, Row, judge_cases, summarize_case
from kerasbench.analysis.contrasts import apart, by_session
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.rankings import Ranking, rank
from kerasbench.analysis.ratios import priors_of
from kerasbench.host.noise import SCATTER_WARN, WarningKind
from kerasbench.protocol.columns import CPU, CaseKey, Column, Size
from kerasbench.protocol.measurement import Compiler, Measurement
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.stages import STAGES
from kerasbench.results.run import Group, Run, Trial, completed_rounds
from kerasbench.text import count, percent

T = TypeVar("T")


@dataclass(frozen=True)
class Summary:
    """What the tables of a run are drawn from. ``rankings`` are of the training step, one for each row.

    ``columns`` are those of the tables: not the controls, which repeat one of them.
    """

    record: Run
    columns: list[Column]
    rows: list[Row]
    rankings: list[Ranking]
    terms: dict[Column, list[str]]

    @property
    def ranked(self) -> list[tuple[Row, Ranking]]:
        """The rows, each with the ranking of its columns."""
        return list(zip(self.rows, self.rankings, strict=True))

    @property
    def plain(self) -> "Summary":
        """What was measured at its published size."""
        return self._only(is_sized=False)

    @property
    def swept(self) -> "Summary":
        """What was measured at the sizes of a sweep."""
        return self._only(is_sized=True)

    def _only(self, is_sized: bool) -> "Summary":
        chosen = [(row.size is not None) is is_sized for row in self.rows]
        rankings = list(compress(self.rankings, chosen))
        return dataclasses.replace(self, rows=list(compress(self.rows, chosen)), rankings=rankings)

    @property
    def cases(self) -> Iterator[tuple[Row, Column, Measured]]:
        """Every case, with its row and its column."""
        return ((row, column, case) for row in self.rows for column, case in row.cases.items())

    @property
    def failures(self) -> list[tuple[Row, Column, Failure]]:
        return [(row, column, case.failure) for row, column, case in self.cases if case.failure is not None]


def summarize(record: Run, known: Mapping[CaseKey, Measured] | None = None) -> Summary:
    """Sum up a run; ``known`` are cases that were summed up already."""
    record = _without_open_round(record)
    shown = {trial.column for trial in record.trials if not trial.options.control}
    columns = sorted(shown, key=lambda column: column.order)
    rows = [
        Row(
            scenario.description,
            workload,
            cases,
            record.origin(Group(scenario.description.name, workload.name, size is not None)),
            size,
            own=scenario.suite == "",
        )
        for scenario in record.scenarios
        for workload in scenario.description.workloads
        for size, cases in _cases(record, known or {}, scenario.description.name, workload.name)
    ]
    rows = _with_priors(rows)
    published = [row for row in rows if row.size is None]
    sized = [row for row in rows if row.size is not None]
    # Two tables: each one's verdicts are judged together.
    rankings = [*rank(published, record.minimal_effect), *rank(sized, record.minimal_effect)]
    return Summary(record, columns, [*published, *sized], rankings, _terms(record))


def _with_priors(rows: Sequence[Row]) -> list[Row]:
    by_run: dict[str, list[Row]] = {}
    for row in rows:
        by_run.setdefault(row.run, []).append(row)
    priors = {run: priors_of([list(row.cases.values()) for row in own]) for run, own in by_run.items()}
    return [dataclasses.replace(row, priors=priors[row.run]) for row in rows]


def _without_open_round(record: Run) -> Run:
    """Leave out what a round that was not completed has measured, unless there is no other.

    Where columns took turns, each row has as many rounds as it needed.
    """
    rows: dict[tuple[object, ...], list[Trial]] = {}
    for trial in record.trials:
        rows.setdefault(_row_of(record, trial), []).append(trial)
    completed = {}
    for key, trials in rows.items():
        origin = record.origin(trials[0].group)
        of_race = origin.rounds if origin.config.race else None
        completed[key] = completed_rounds({one.case for one in trials}, trials, of_race)
    counting = []
    for trial in record.trials:
        in_turn = trial.block and not trial.agenda.in_full
        rounds = completed[_row_of(record, trial)] if in_turn else record.origin(trial.group).rounds
        if not rounds or trial.failure is not None or trial.round <= rounds:
            counting.append(trial)
    return dataclasses.replace(record, trials=counting)


def _row_of(record: Run, trial: Trial) -> tuple[object, ...]:
    pair = trial.column.paired if record.origin(trial.group).in_pairs else None
    return (trial.scenario, trial.workload, trial.options.size, pair)


def _cases(
    record: Run, known: Mapping[CaseKey, Measured], scenario: str, workload: str
) -> list[tuple[Size | None, dict[Column, Measured]]]:
    """Return the cases of a workload by column, for each size; those that compute something else have failed."""
    grouped: dict[Size | None, dict[Column, list[Trial]]] = {}
    for trial in record.trials:
        if (trial.scenario, trial.workload) == (scenario, workload):
            grouped.setdefault(trial.options.size, {}).setdefault(trial.column, []).append(trial)
    rows = []
    for size, by_column in sorted(grouped.items(), key=lambda item: item[0].order if item[0] else (0, 0.0)):
        cases = {
            column: known.get(CaseKey(scenario, workload, column, size)) or summarize_case(trials)
            for column, trials in _in_order(by_column)
        }
        for column, failure in judge_cases(cases).items():
            cases[column] = Measured(cases[column].trials, failure)
        rows.append((size, cases))
    return rows


def _in_order(by_column: Mapping[Column, T]) -> list[tuple[Column, T]]:
    return sorted(by_column.items(), key=lambda item: item[0].order)


def _terms(record: Run) -> dict[Column, list[str]]:
    """Return the settings in force of each configuration, as the children found them: all different ones."""
    terms: dict[Column, dict[str, None]] = {}
    has_images = any(scenario.description.kind not in WITHOUT_IMAGES for scenario in record.scenarios)
    for trial in record.trials:
        if trial.measurement is not None:
            chip = [trial.device.title] if trial.device.title else []
            terms.setdefault(trial.column, {})[", ".join(chip + _terms_of(trial, trial.measurement, has_images))] = None
    return {column: list(of_column) for column, of_column in _in_order(terms)}


WITHOUT_IMAGES = ("dense", "recurrent", "transformer")  # kinds of models to which the order of channels is nothing


def _terms_of(trial: Trial, measurement: Measurement, has_images: bool) -> list[str]:
    """Return the settings of one trial that apply; its CPU cores where they were chosen, because some share a core."""
    resolved = measurement.resolved
    computed = " and ".join(resolved.compute_dtypes)
    threads = "threads unknown" if resolved.threads is None else count(resolved.threads, "thread")
    if trial.options.threads is not None and resolved.processors:
        threads += f" on CPU {resolved.processors}"
    return [
        "compiled" if resolved.jit else "not jit-compiled",
        resolved.dtype_policy + ("" if computed == resolved.dtype_policy else f" (layers in {computed})"),
        *([] if trial.device.kind == CPU else [f"float32 matrix multiplications {resolved.fp32}"]),
        *([f"subnormal numbers {resolved.subnormals}"] if resolved.subnormals else []),
        *([resolved.image_data_format] if has_images else []),
        threads,
    ]


COMMON = ("keras", "python")  # what every column has, and what makes more than the backend differ

IDLE_SHARE = 0.7  # of the processors that a slice of the column has in the median: see "TensorFlow's late epochs"
# What a subnormal first moment adds to a step on torch: 5 to 7 ns. What a page fault costs, with clearing the page: 0.5
# to 1.1 us (benchmarks/studies/subnormals-and-memory.md).
SUBNORMAL_NS, PAGE_NS = 6, 1_000
LEAST_SLOWER = 0.1  # of a step, by what subnormal numbers add to it
LEAST_IN_PAGES = 0.1  # of a step, in page faults
OFTEN = 0.03  # of the slices: on JAX and torch it is at most 1.2 % in the published rows


@dataclass(frozen=True)
class Concern:
    """A warning and what it is about."""

    what: WarningKind
    row: str  # its label; empty: all rows
    columns: list[Column]  # empty: all
    detail: str = ""
    share: float | None = None  # of a step's time that it is about, estimated


def concerns(summary: Summary) -> list[Concern]:
    """Return every warning of a summary: of its cases, of its rows, then of the whole."""
    found: list[Concern] = []
    are_races = all(row.origin.config.race for row in summary.rows)  # beside other rows, theirs are shown as those are
    for row, ranking in summary.ranked:
        found += _of_cases(row)
        found += _of_row(row, ranking, are_races)
    return [*found, *_versions(summary)]


def _of_cases(row: Row) -> list[Concern]:
    """Return the warnings of a row's cases; what is said of several columns is said once."""
    found: dict[Noted, list[Column]] = {}
    for column in row.cases:
        for noted in _of_case(row, column):
            found.setdefault(noted, []).append(column)
    return [Concern(noted.what, row.label, columns, noted.detail, noted.share) for noted, columns in found.items()]


def _of_case(row: Row, column: Column) -> list[Noted]:
    """Return the warnings of a case, each with what there is to add to it."""
    return [
        Noted(what, *known) if isinstance(known, tuple) else Noted(what, known if isinstance(known, str) else "")
        for what, applies in _CASES
        if (known := applies(row, column))
    ]


def _of_row(row: Row, ranking: Ranking, are_races: bool) -> Iterator[Concern]:
    if ranking.withheld:
        yield Concern(WarningKind.CONTROL, row.label, [])
    if ranking.disturbed:
        yield Concern(WarningKind.UNDECIDED, row.label, [])
    for contrast in ranking.others:
        differs_by = apart(by_session(contrast))
        if differs_by is not None and differs_by.is_above(1):
            detail = f"by {100 * (differs_by.value - 1):.0f} %"
            yield Concern(WarningKind.SITTINGS, row.label, [contrast.over.column], detail)
    if not are_races and not row.origin.in_pairs:  # these have intervals of their own, or none is the fastest
        few = row.rounds < MIN_TRIALS_FOR_INTERVAL
        if ranking.by_slices and not few:  # of enough rounds: most were disturbed
            most = MIN_TRIALS_FOR_INTERVAL - 1
            detail = f"at most {most} rounds were uninterrupted, so intervals come from their turns"
            yield Concern(WarningKind.DISTURBED, row.label, [], detail)
        elif ranking.by_slices:
            yield Concern(WarningKind.SLICES, row.label, [])
        elif ranking.others and few and not ranking.tentative:
            yield Concern(WarningKind.FEW, row.label, [])
    yield from _left_out(row)
    yield from (Concern(WarningKind.APART, row.label, columns) for columns in _apart(row))


def _left_out(row: Row) -> Iterator[Concern]:
    """Say what a row has no figures of, because its steps would have taken minutes."""
    found = (measurement.sizes for case in row.cases.values() for _, measurement in case.trials)
    sizes = next((one for one in found if one is not None and one.left_out), None)
    if sizes is not None:
        what = [STAGES[stage].left_out if stage in STAGES else stage for stage in sizes.left_out]
        parts = ", ".join(dict.fromkeys(what))
        yield Concern(WarningKind.SLOW, row.label, [], f"left out: {parts}; one step takes {sizes.step_ns / 1e9:.1f} s")


def _apart(row: Row) -> list[list[Column]]:
    """Return which columns were measured side by side, where they did not fit into memory all together."""
    groups: dict[object, dict[int, list[Column]]] = {}
    for column, case in row.cases.items():
        for trial, _ in case.trials:
            if trial.block and not row.origin.agenda.in_full:
                pair = column.paired if row.origin.in_pairs else None
                groups.setdefault((trial.round, pair), {}).setdefault(trial.block, []).append(column)
    split = next((blocks for blocks in groups.values() if len(blocks) > 1), {})
    return list(split.values())


def _versions(summary: Summary) -> Iterator[Concern]:
    """Return the packages of which columns that are compared had different versions, and which had which."""
    for package in COMMON:
        versions: dict[str, dict[Column, None]] = {}
        for trial in summary.record.trials:
            if trial.measurement is None or trial.options.environment:
                continue  # columns with labels are meant to differ, and the heading says how
            if version := trial.measurement.resolved.versions.get(package):
                versions.setdefault(version, {})[trial.column] = None
        if len(versions) > 1:
            for version, columns in sorted(versions.items()):
                yield Concern(WarningKind.VERSIONS, "", list(columns), f"{package} {version}")


def _deviation(row: Row, column: Column) -> str | None:
    """Return by how much a column's losses differ, from whose, and what does that; None: not beyond their bounds."""
    deviation = row.deviating.get(column)
    if deviation is None:
        return None
    reference = deviation.beside.label if deviation.beside else "the median of all configurations"
    kinds = {kind for _, m in row.cases[column].trials if m.parity for kind in m.parity.sensitive}
    why = "; batch normalisation in small batches does that" if "BatchNormalization" in kinds else ""
    return f"by {100 * deviation.share:.2g} % from {reference} in step {deviation.step}{why}"


def _waited(row: Row, column: Column) -> str | None:
    waited, slices = idle_slices(row.cases[column])
    return f"in {waited} of {slices} turns" if slices and waited / slices >= OFTEN else None


def _becomes_slower(row: Row, column: Column) -> tuple[str, float] | None:
    case = row.cases[column]
    slower = slower_by_subnormals(case)
    are_flushed = all(m.resolved.subnormals == "flushed" for _, m in case.trials)
    return (f"by about {percent(slower)}", slower) if slower >= LEAST_SLOWER and are_flushed else None


def _takes_pages(row: Row, column: Column) -> tuple[str, float] | None:
    pages, share = page_faults(row.cases[column])
    counts = share >= LEAST_IN_PAGES and column.device == CPU and not column.options.malloc
    return (f"{pages:,.0f} pages, about {percent(share)} of its time", share) if counts else None


def _fell_back(row: Row, column: Column) -> str | None:
    operations = {name: times for _, m in row.cases[column].trials for name, times in m.fallbacks.items()}
    return ", ".join(f"{name} ({times} a step)" for name, times in sorted(operations.items())) or None


def _is_unjudged(row: Row, column: Column) -> bool:
    trials = row.cases[column].trials
    others = [case for other, case in row.cases.items() if other != column and case.trials]
    usual = row.origin.agenda.usual
    return bool(usual and trials and others) and all(measurement.parity is None for _, measurement in trials)


def idle_slices(case: Measured) -> tuple[int, int]:
    """Return how many slices of a column used much less of the processors than its others, and of how many."""
    columns = [measurement.slices for _, measurement in case.trials]
    times = [both for slices in columns for both in zip(slices.cpu_ns or (), slices.ns, strict=False)]
    shares = [cpu_ns / ns for cpu_ns, ns in times if cpu_ns is not None]
    usual = statistics.median(shares) if shares else 0.0
    return sum(share < IDLE_SHARE * usual for share in shares), len(shares)


def slower_by_subnormals(case: Measured) -> float:
    """Return by about what share of it a step becomes longer, where subnormal numbers are kept; 0: not known to."""
    found = [0.0]
    for _, measurement in case.trials:
        if measurement.vanishing and measurement.training is not None:
            steps = measurement.steps_per_epoch if measurement.training.unit == "epoch" else 1
            more_ns = SUBNORMAL_NS * measurement.vanishing * measurement.parameters
            found.append(more_ns * steps / measurement.training.median_ns)
    return max(found)


def page_faults(case: Measured) -> tuple[float, float]:
    """Return how many pages of memory a step (or epoch) takes from the system, and about what share of its time."""
    trained = [measurement.training for _, measurement in case.trials if measurement.training is not None]
    counted = [training.slices for training in trained if training.slices.page_faults]
    pages = sum(sum(slices.page_faults or ()) for slices in counted)
    units, ns = sum(sum(slices.count) for slices in counted), sum(sum(slices.ns) for slices in counted)
    return (pages / units, pages * PAGE_NS / ns) if units else (0.0, 0.0)


def _compilers(row: Row, column: Column) -> Iterator[Compiler]:
    return (m.compiler for _, m in row.cases[column].trials if m.compiler)


# Each with whether it applies to a case; in its place what there is to add, and the share of a step that it is about.
_CASES: tuple[tuple[WarningKind, Callable[[Row, Column], str | tuple[str, float] | bool | None]], ...] = (
    (WarningKind.IDLE, lambda row, column: row.scenario.learnable and not row.cases[column].learned),
    (WarningKind.DISTURBED, lambda row, column: any(trial.disturbed for trial, _ in row.cases[column].trials)),
    (WarningKind.UNJUDGED, _is_unjudged),
    (WarningKind.SCATTERED, lambda row, column: (row.cases[column].scatter or 0) >= SCATTER_WARN),
    (WarningKind.DEVIATES, _deviation),
    (WarningKind.FALLBACK, _fell_back),
    (WarningKind.RECOMPILED, lambda row, column: any(one.while_measured for one in _compilers(row, column))),
    (WarningKind.EAGER, lambda row, column: any(one.eager for one in _compilers(row, column))),
    (WarningKind.SUBNORMALS, _becomes_slower),
    (WarningKind.PAGES, _takes_pages),
    (WarningKind.WAITED, _waited),
)
