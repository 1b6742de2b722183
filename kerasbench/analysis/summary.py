"""From trials to what a table says: an estimate for each case and metric, and who is fastest.

Which cases and rows need a warning, and which one.

What other processes did to a row: how much of the machine they used, and which column suffered most.
"""

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

from kerasbench.analysis.cases import CaseSummary, Deviation, Row, deviating, judge_cases, summarize_case
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.metrics import NS_PER_S
from kerasbench.analysis.rankings import Ranking, rank, sittings
from kerasbench.host.noise import SCATTER_WARN, Warned
from kerasbench.protocol.columns import Column, Size
from kerasbench.protocol.measurement import Resolved, Slice
from kerasbench.protocol.messages import Failure, Phase, WorkloadDescription
from kerasbench.results.record import Group, Origin, Record, ScenarioRecord, TrialRecord, completed_rounds
from kerasbench.text import count

T = TypeVar("T")
TAKING_TURNS = ("train", "predict")  # the first phase of a trial that has slices; without training it is the latter


@dataclass(frozen=True)
class Summary:
    """What the tables of a run are drawn from. ``rankings`` are of the training step, one for each row.

    ``columns`` are those of the tables: not the controls, which repeat one of them.
    """

    record: Record
    columns: list[Column]
    rows: list[Row]
    rankings: list[Ranking]
    phases_s: dict[str, dict[Column, float]]
    terms: dict[Column, list[str]]

    @property
    def plain(self) -> "Summary":
        """What was measured at its published size."""
        return self._only([row.size is None for row in self.rows])

    @property
    def swept(self) -> "Summary":
        """What was measured at the sizes of a sweep."""
        return self._only([row.size is not None for row in self.rows])

    def _only(self, chosen: list[bool]) -> "Summary":
        rankings = list(compress(self.rankings, chosen))
        return dataclasses.replace(self, rows=list(compress(self.rows, chosen)), rankings=rankings)

    @property
    def failures(self) -> list[tuple[Row, Column, Failure]]:
        return [
            (row, column, case.failure)
            for row in self.rows
            for column, case in row.cases.items()
            if case.failure is not None
        ]


def summarize(record: Record) -> Summary:
    """Sum up a run."""
    record = _without_open_round(record)
    shown = {trial.column for trial in record.trials if not trial.options.control}
    columns = sorted(shown, key=lambda column: column.order)
    rows = [
        Row(
            scenario.description,
            workload,
            _with_parity(cases),
            _origin(record, scenario, workload, size),
            size,
            own=scenario.suite == "",
        )
        for scenario in record.scenarios
        for workload in scenario.description.workloads
        for size, cases in _cases(record, scenario.description.name, workload.name)
    ]
    published = [row for row in rows if row.size is None]
    sized = [row for row in rows if row.size is not None]
    # Two tables: each one's verdicts are judged together.
    rankings = [*rank(published, record.minimal_effect), *rank(sized, record.minimal_effect)]
    return Summary(record, columns, [*published, *sized], rankings, _phases_s(record, columns), _terms(record))


def _without_open_round(record: Record) -> Record:
    """Leave out what a round that was not completed has measured, unless there is no other.

    Where columns took turns, each row has as many rounds as it needed.
    """
    rows: dict[object, list[TrialRecord]] = {}

    def row_of(trial: TrialRecord) -> object:
        pair = trial.column.paired if record.origin(trial.group).versus else None
        return (trial.scenario, trial.workload, trial.options.size, pair)

    for trial in record.trials:
        rows.setdefault(row_of(trial), []).append(trial)
    whole = {key: completed_rounds({one.case for one in trials}, trials) for key, trials in rows.items()}

    def counts(trial: TrialRecord) -> bool:
        if trial.block and trial.protocol != "published":
            rounds = whole[row_of(trial)]
        else:
            rounds = record.origin(trial.group).rounds
        return not rounds or trial.failure is not None or trial.round <= rounds

    return dataclasses.replace(record, trials=[trial for trial in record.trials if counts(trial)])


def _origin(record: Record, scenario: ScenarioRecord, workload: WorkloadDescription, size: Size | None) -> Origin:
    return record.origin(Group(scenario.description.name, workload.name, size is not None))


def _cases(record: Record, scenario: str, workload: str) -> list[tuple[Size | None, dict[Column, CaseSummary]]]:
    """Return the cases of a workload by column, for each size at which it was measured."""
    grouped: dict[Size | None, dict[Column, list[TrialRecord]]] = {}
    for trial in record.trials:
        if (trial.scenario, trial.workload) == (scenario, workload):
            grouped.setdefault(trial.options.size, {}).setdefault(trial.column, []).append(trial)
    return [
        (size, {column: summarize_case(trials) for column, trials in _in_order(by_column)})
        for size, by_column in sorted(grouped.items(), key=lambda found: found[0].order if found[0] else (0, 0.0))
    ]


def _in_order(by_column: Mapping[Column, T]) -> list[tuple[Column, T]]:
    return sorted(by_column.items(), key=lambda item: item[0].order)


def _with_parity(cases: dict[Column, CaseSummary]) -> dict[Column, CaseSummary]:
    """Fail the cases of a row that compute something else than the others."""
    failures = judge_cases(cases)
    return {column: CaseSummary(case.trials, failures.get(column, case.failure)) for column, case in cases.items()}


def _terms(record: Record) -> dict[Column, list[str]]:
    """Return on which terms each column was measured, in the words of what the children found: all different ones."""
    found: dict[Column, dict[str, None]] = {}
    for trial in record.trials:
        if trial.measurement is not None:
            name = [trial.device.title] if trial.device.title else []
            chosen = trial.options.threads is not None
            found.setdefault(trial.column, {})[", ".join(name + _said(trial.measurement.resolved, chosen))] = None
    return {column: list(terms) for column, terms in _in_order(found)}


def _said(resolved: Resolved, chosen: bool) -> list[str]:
    """Return one trial's terms; with its processors where they were chosen, because some share a core."""
    place = f" on processor{'' if resolved.processors.isdecimal() else 's'} {resolved.processors}"
    where = place if chosen and resolved.processors else ""
    computed = " and ".join(resolved.compute_dtypes)
    threads = "threads unknown" if resolved.threads is None else count(resolved.threads, "thread")
    return [
        "compiled" if resolved.jit else "not jit-compiled",
        resolved.dtype_policy + ("" if computed == resolved.dtype_policy else f" (layers in {computed})"),
        f"float32 products {resolved.fp32}",
        resolved.image_data_format,
        f"{threads}{where}",
    ]


def _phases(trial: TrialRecord) -> Iterator[Phase]:
    """Yield a trial's phases; where others started beside it, from the first one on in which columns take turns."""
    counts = trial.started_alone
    for phase in trial.phases:
        counts = counts or phase.name in TAKING_TURNS
        if counts:
            yield phase


def _phases_s(record: Record, columns: list[Column]) -> dict[str, dict[Column, float]]:
    """Return each phase's mean duration by column, in s, in the order of a trial."""
    durations: dict[str, dict[Column, list[float]]] = {}
    for trial in record.trials:
        if trial.measurement is not None:
            for phase in _phases(trial):
                by_column = durations.setdefault(phase.name, {})
                by_column.setdefault(trial.column, []).append(phase.duration_ns / NS_PER_S)
    return {
        name: {column: statistics.fmean(by_column[column]) for column in columns if column in by_column}
        for name, by_column in durations.items()
    }


COMMON = ("keras", "python")  # what every column has, and what makes more than the backend differ

IDLE_SHARE = 0.7  # of the processors that a slice of the column has in the median: see "TensorFlow's late epochs"
OFTEN = 0.03  # of the slices: on JAX and torch it is at most 1.2 % in the published rows

MARKED = (Warned.IDLE, Warned.DISTURBED, Warned.UNJUDGED)


@dataclass(frozen=True)
class Concern:
    """A warning and what it is about: a row by its label (empty: all), columns (empty: all), and a detail."""

    what: Warned
    row: str
    columns: list[Column]
    detail: str = ""


def concerns(summary: Summary) -> list[Concern]:
    """Return every warning of a summary: of its cases, of its rows, then of the whole."""
    found: list[Concern] = []
    for row, ranking in zip(summary.rows, summary.rankings, strict=True):
        found += _of_cases(row)
        found += _of_row(row, ranking)
    return [*found, *_versions(summary)]


def is_warned(row: Row, column: Column) -> bool:
    """Tell whether a case is marked: not for what its interval shows already."""
    marked = any(applies(row, column) for what, applies in _CASES if what in MARKED)
    return marked or bool(_fallbacks(row, column)) or column in deviating(row.cases)


def _of_cases(row: Row) -> Iterator[Concern]:
    for what, applies in _CASES:
        columns = [column for column in row.cases if applies(row, column)]
        if columns:
            yield Concern(what, row.label, columns)
    for column, one in deviating(row.cases).items():
        yield Concern(Warned.DEVIATES, row.label, [column], _deviation(row, column, one))
    for column, case in row.cases.items():
        waited, of = idle_slices(case)
        if of and waited / of >= OFTEN:
            yield Concern(Warned.WAITED, row.label, [column], f"in {waited} of {of} slices")
        counts = _fallbacks(row, column)
        if counts:
            named = ", ".join(f"{name} ({times} a step)" for name, times in sorted(counts.items()))
            yield Concern(Warned.FALLBACK, row.label, [column], named)


def _of_row(row: Row, ranking: Ranking) -> Iterator[Concern]:
    if ranking.withheld:
        yield Concern(Warned.CONTROL, row.label, [])
    if ranking.disturbed:
        yield Concern(Warned.UNDECIDED, row.label, [])
    for one in sittings(row, ranking):
        if one.differ and one.apart:
            yield Concern(Warned.SITTINGS, row.label, [one.column], f"by {one.apart.value - 1:.0%}")
    if not row.origin.versus:  # who is the fastest of all is nobody's question there
        yield from _of_ranking(row, ranking)
    yield from (Concern(Warned.APART, row.label, columns) for columns in _apart(row))


def _of_ranking(row: Row, ranking: Ranking) -> Iterator[Concern]:
    if ranking.by_slices:
        yield Concern(Warned.SLICES, row.label, [])
    elif ranking.comparisons and row.rounds < MIN_TRIALS_FOR_INTERVAL and not ranking.tentative:
        yield Concern(Warned.FEW, row.label, [])


def _apart(row: Row) -> list[list[Column]]:
    """Return which columns were measured side by side, where they did not fit into memory all together."""
    groups: dict[object, dict[int, list[Column]]] = {}
    for column, case in row.cases.items():
        for trial, _ in case.trials:
            if trial.block and row.origin.protocol != "published":
                pair = column.paired if row.origin.versus else None
                groups.setdefault((trial.round, pair), {}).setdefault(trial.block, []).append(column)
    found = next((blocks for blocks in groups.values() if len(blocks) > 1), {})
    return list(found.values())


def _versions(summary: Summary) -> Iterator[Concern]:
    """Return the packages of which columns that are compared had different versions, and which had which."""
    for package in COMMON:
        found: dict[str, dict[Column, None]] = {}
        for trial in summary.record.trials:
            if trial.measurement is None or trial.options.environment:
                continue  # columns with labels are meant to differ, and the heading says how
            if version := trial.measurement.resolved.versions.get(package):
                found.setdefault(version, {})[trial.column] = None
        if len(found) > 1:
            yield from (
                Concern(Warned.VERSIONS, "", list(columns), f"{package} {one}")
                for one, columns in sorted(found.items())
            )


def _deviation(row: Row, column: Column, one: Deviation) -> str:
    """Return by how much a column's losses differ, from whose, and what does that."""
    others = [other for other in row.cases if other != column and row.cases[other].trials]
    whom = others[0].label if len(others) == 1 else "the median of all columns"
    kinds = {kind for _, m in row.cases[column].trials if m.parity for kind in m.parity.sensitive}
    why = "; batch normalisation in small batches does that" if "BatchNormalization" in kinds else ""
    return f"by {100 * one.share:.2g} % from {whom} in step {one.step}{why}"


def idle_slices(case: CaseSummary) -> tuple[int, int]:
    """Return how many slices of a column used much less of the processors than its others, and of how many."""
    shares = [
        slice_.cpu_ns / slice_.ns
        for _, measurement in case.trials
        for slice_ in measurement.slices
        if slice_.cpu_ns is not None
    ]
    usual = statistics.median(shares) if shares else 0.0
    return sum(share < IDLE_SHARE * usual for share in shares), len(shares)


def _fallbacks(row: Row, column: Column) -> dict[str, int]:
    """Return the operations of a step that fell back to the CPU, and how often each."""
    return {name: n for _, measurement in row.cases[column].trials for name, n in measurement.fallbacks.items()}


def _scattered(row: Row, column: Column) -> bool:
    return (row.cases[column].scatter or 0) >= SCATTER_WARN


def _unjudged(row: Row, column: Column) -> bool:
    trials = row.cases[column].trials
    others = [case for other, case in row.cases.items() if other != column and case.trials]
    steady = row.origin.protocol == "steady"
    return bool(steady and trials and others) and all(measurement.parity is None for _, measurement in trials)


_CASES: tuple[tuple[Warned, Callable[[Row, Column], bool]], ...] = (
    (Warned.IDLE, lambda row, column: column in row.idle),
    (Warned.DISTURBED, lambda row, column: bool(row.cases[column].noisy)),
    (Warned.UNJUDGED, _unjudged),
    (Warned.SCATTERED, _scattered),
)


LEAST = 3  # slices of each sort, before one is said to take longer than the other
SUFFERS = 1.2  # times as long: less is what slices differ by anyway


@dataclass(frozen=True)
class Disturbance:
    """``share`` of all processors' time went to others while slices were disturbed, and ``card`` of a GPU.

    ``card`` is None where its driver does not tell. ``slowed`` is the column whose disturbed slices took most times as
    long as its others, and ``times`` how many; None where none took clearly longer, or where there are too few of
    either sort.
    """

    share: float
    card: float | None = None
    slowed: Column | None = None
    times: float | None = None


def disturbance(row: Row, processors: int) -> Disturbance | None:
    """Return what others did while a row was measured on a machine of so many processors; None: nothing that counts."""
    slices = [slice_ for case in row.cases.values() for slice_ in _slices(case) if slice_.disturbed]
    if not slices:
        return None
    taken_ns = sum((slice_.others_ns or 0) + (slice_.steal_ns or 0) for slice_ in slices)
    share = taken_ns / (processors * sum(slice_.ns for slice_ in slices))
    cards = [slice_.card_share for slice_ in slices if slice_.card_share is not None]
    card = statistics.fmean(cards) if cards else None
    slower = {column: times for column, case in row.cases.items() if (times := _times(_slices(case))) is not None}
    worst = max(slower, key=lambda column: slower[column], default=None)
    if worst is None or slower[worst] < SUFFERS:
        return Disturbance(share, card)
    return Disturbance(share, card, worst, slower[worst])


def _slices(case: CaseSummary) -> list[Slice]:
    return [slice_ for _, measurement in case.trials for slice_ in measurement.slices]


def _times(slices: list[Slice]) -> float | None:
    """Return how many times as long disturbed slices took as the others; None for too few of either."""
    disturbed, others = ([slice_.unit_ns for slice_ in slices if slice_.disturbed is sort] for sort in (True, False))
    if min(len(disturbed), len(others)) < LEAST:
        return None
    return statistics.median(disturbed) / statistics.median(others)
