"""From trials to what a table says: an estimate for each cell and metric, and who is fastest."""

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

from kerasbench.analysis import parity
from kerasbench.analysis.cells import CellSummary, Row, summarize_cell
from kerasbench.analysis.metrics import NS_PER_S
from kerasbench.analysis.standings import Standing, stand
from kerasbench.exchange.descriptions import RegimeDescription
from kerasbench.exchange.measurement import Resolved
from kerasbench.exchange.messages import Failure, Phase
from kerasbench.exchange.options import Size, is_control
from kerasbench.results.keys import Column
from kerasbench.results.record import Group, Origin, Record, ScenarioRecord, TrialRecord
from kerasbench.text import count

TAKING_TURNS = ("train", "predict")  # the first phase of a trial that has slices; without training it is the latter


@dataclass(frozen=True)
class Summary:
    """What the tables of a run are drawn from. ``standings`` are of the training step, one for each row.

    ``columns`` are those of the tables: not the controls, which repeat one of them.
    """

    record: Record
    columns: list[Column]
    rows: list[Row]
    standings: list[Standing]
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
        standings = list(compress(self.standings, chosen))
        return dataclasses.replace(self, rows=list(compress(self.rows, chosen)), standings=standings)

    @property
    def failures(self) -> list[tuple[Row, Column, Failure]]:
        return [
            (row, column, cell.failure)
            for row in self.rows
            for column, cell in row.cells.items()
            if cell.failure is not None
        ]


def summarize(record: Record) -> Summary:
    """Sum up a run."""
    record = _without_open_round(record)
    columns = sorted({trial.column for trial in record.trials if not is_control(trial.column[2])})
    rows = [
        Row(
            scenario.description,
            regime,
            _with_parity(cells),
            _origin(record, scenario, regime, size),
            size,
            own=scenario.suite == "",
        )
        for scenario in record.scenarios
        for regime in scenario.description.regimes
        for size, cells in _cells(record, scenario.description.name, regime.name)
    ]
    published = [row for row in rows if row.size is None]
    sized = [row for row in rows if row.size is not None]
    # Two tables: each one's verdicts are judged together.
    standings = [*stand(published, record.minimal_effect), *stand(sized, record.minimal_effect)]
    return Summary(record, columns, [*published, *sized], standings, _phases_s(record, columns), _terms(record))


def _without_open_round(record: Record) -> Record:
    """Leave out what a round that was not completed has measured, unless there is no other.

    Where columns took turns, each row has as many rounds as it needed.
    """
    rows: dict[object, list[TrialRecord]] = {}

    def row_of(trial: TrialRecord) -> object:
        alike = (trial.backend, trial.device.label, trial.paired_terms) if record.origin(trial.group).versus else ()
        return (trial.scenario, trial.regime, trial.options.size, *alike)

    for trial in record.trials:
        rows.setdefault(row_of(trial), []).append(trial)
    whole = {key: _whole_rounds(trials) for key, trials in rows.items()}

    def counts(trial: TrialRecord) -> bool:
        if trial.bout and trial.protocol != "published":
            rounds = whole[row_of(trial)]
        else:
            rounds = record.origin(trial.group).rounds
        return not rounds or trial.failure is not None or trial.round <= rounds

    return dataclasses.replace(record, trials=[trial for trial in record.trials if counts(trial)])


def _whole_rounds(trials: Sequence[TrialRecord]) -> int:
    """Return in how many rounds, from the first on, a row had every column that had not failed by then."""
    columns, done = {trial.column for trial in trials}, 0
    while True:
        failed = {trial.column for trial in trials if trial.ends_cell and trial.round <= done + 1}
        had = {trial.column for trial in trials if trial.round == done + 1 and not trial.crowded}
        if not had or not columns - failed <= had:
            return done
        done += 1


def _origin(record: Record, scenario: ScenarioRecord, regime: RegimeDescription, size: Size | None) -> Origin:
    return record.origin(Group(scenario.description.name, regime.name, size is not None))


def _cells(record: Record, scenario: str, regime: str) -> list[tuple[Size | None, dict[Column, CellSummary]]]:
    """Return the cells of a regime by column, for each size at which it was measured."""
    grouped: dict[Size | None, dict[Column, list[TrialRecord]]] = {}
    for trial in record.trials:
        if (trial.scenario, trial.regime) == (scenario, regime):
            grouped.setdefault(trial.options.size, {}).setdefault(trial.column, []).append(trial)
    return [
        (size, {column: summarize_cell(trials) for column, trials in sorted(by_column.items())})
        for size, by_column in sorted(grouped.items(), key=lambda found: found[0].order if found[0] else (0, 0.0))
    ]


def _with_parity(cells: dict[Column, CellSummary]) -> dict[Column, CellSummary]:
    """Fail the cells of a row that compute something else than the others."""
    failures = parity.judge_cells(cells)
    return {column: CellSummary(cell.trials, failures.get(column, cell.failure)) for column, cell in cells.items()}


def _terms(record: Record) -> dict[Column, list[str]]:
    """Return on which terms each column was measured, in the words of what the children found: all different ones."""
    found: dict[Column, dict[str, None]] = {}
    for trial in record.trials:
        if trial.measurement is not None:
            name = [trial.device.title] if trial.device.title else []
            chosen = trial.options.threads is not None
            found.setdefault(trial.column, {})[", ".join(name + _said(trial.measurement.resolved, chosen))] = None
    return {column: list(terms) for column, terms in sorted(found.items())}


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
