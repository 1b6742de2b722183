"""From trials to what a table says: an estimate for each cell and metric, and who is fastest."""

import dataclasses
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from kerasbench.catalog import label
from kerasbench.metrics import BY_NAME, NS_PER_S, Metric
from kerasbench.results import Record, TrialRecord
from kerasbench.stats import MIN_TRIALS_FOR_INTERVAL, Estimate
from kerasbench.verdict import Verdict, judge, learned, ratio
from kerasbench.wire import Description, Failure, Measurement, RegimeDescription

Column = tuple[str, str]  # backend, device label


@dataclass(frozen=True)
class CellSummary:
    """What a cell's trials amount to. ``failure`` is the last one; a cell that failed may hold earlier trials."""

    trials: list[tuple[TrialRecord, Measurement]]
    failure: Failure | None

    def by_round(self, metric: Metric) -> dict[int, float]:
        """Return the metric's value in each round that has one."""
        values = {trial.round: metric.read(trial, measurement) for trial, measurement in self.trials}
        return {index: value for index, value in values.items() if value is not None}

    @property
    def learned(self) -> bool:
        """Whether training changed the loss in every trial."""
        return all(learned(m.learning.batch_loss_before, m.learning.batch_loss_after) for _, m in self.trials)

    def estimate(self, name: str) -> Estimate | None:
        """Return the estimate of a metric, None where a failure withholds it or no trial has it."""
        if self.failure is not None:
            return None
        metric = BY_NAME[name]
        values = list(self.by_round(metric).values())
        return metric.sum_up(values) if values else None


@dataclass(frozen=True)
class Row:
    """One regime of one scenario over all columns."""

    scenario: Description
    regime: RegimeDescription
    cells: dict[Column, CellSummary]

    @property
    def label(self) -> str:
        return label(self.scenario.name, self.regime.name)

    @property
    def idle(self) -> list[Column]:
        """The columns in which a model that has something to learn did not change its loss."""
        return [column for column, cell in self.cells.items() if self.scenario.learnable and not cell.learned]


@dataclass(frozen=True)
class Summary:
    """What the tables of a run are drawn from."""

    record: Record
    columns: list[Column]
    rows: list[Row]
    phases_s: dict[str, dict[Column, float]]
    terms: dict[Column, list[str]]

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
    columns = sorted({(trial.backend, trial.device.label) for trial in record.trials})
    rows = [
        Row(scenario.description, regime, cells)
        for scenario in record.scenarios
        for regime in scenario.description.regimes
        if (cells := _cells(record, scenario.description.name, regime.name))
    ]
    return Summary(record, columns, rows, _phases_s(record, columns), _terms(record))


def _without_open_round(record: Record) -> Record:
    """Leave out what a round that was not completed has measured, unless there is no other."""
    if not record.rounds_completed:
        return record
    kept = [trial for trial in record.trials if trial.failure is not None or trial.round <= record.rounds_completed]
    return dataclasses.replace(record, trials=kept)


def _cells(record: Record, scenario: str, regime: str) -> dict[Column, CellSummary]:
    grouped: dict[Column, list[TrialRecord]] = {}
    for trial in record.trials:
        if (trial.scenario, trial.regime) == (scenario, regime):
            grouped.setdefault((trial.backend, trial.device.label), []).append(trial)
    return {column: summarize_cell(trials) for column, trials in sorted(grouped.items())}


def summarize_cell(trials: Iterable[TrialRecord]) -> CellSummary:
    """Sum up one cell's trials."""
    trials = list(trials)
    failures = [trial.failure for trial in trials if trial.failure is not None]
    good = [(trial, trial.measurement) for trial in trials if trial.measurement is not None]
    return CellSummary(good, failures[-1] if failures else None)


def _terms(record: Record) -> dict[Column, list[str]]:
    """Return on which terms each column was measured, in the words of what the children found: all different ones."""
    found: dict[Column, dict[str, None]] = {}
    for trial in record.trials:
        if trial.measurement is not None:
            resolved = trial.measurement.resolved
            terms = [
                *([trial.device.name] if trial.device.name else []),
                "compiled" if resolved.jit else "not jit-compiled",
                resolved.dtype_policy,
                f"{resolved.threads} threads",
            ]
            found.setdefault((trial.backend, trial.device.label), {})[", ".join(terms)] = None
    return {column: list(terms) for column, terms in sorted(found.items())}


def _phases_s(record: Record, columns: list[Column]) -> dict[str, dict[Column, float]]:
    """Return each phase's mean duration by column, in s, in the order of a trial."""
    durations: dict[str, dict[Column, list[float]]] = {}
    for trial in record.trials:
        if trial.measurement is not None:
            for phase in trial.phases:
                by_column = durations.setdefault(phase.name, {})
                by_column.setdefault((trial.backend, trial.device.label), []).append(phase.duration_ns / NS_PER_S)
    return {
        name: {column: statistics.fmean(by_column[column]) for column in columns if column in by_column}
        for name, by_column in durations.items()
    }


@dataclass(frozen=True)
class Standing:
    """Who is fastest in a row: one winner, or the first of several that cannot be told apart.

    Nobody is, where there is nobody to be compared with. ``proven`` is False where there are too few rounds.
    """

    fastest: Column | None
    level: list[Column]
    proven: bool


def standing(row: Row, metric_name: str) -> Standing:
    """Compare the fastest cell of a row with each of the others, paired by round. The metric is a time."""
    metric = BY_NAME[metric_name]
    values = {column: found.value for column, cell in row.cells.items() if (found := cell.estimate(metric_name))}
    if len(values) < 2:
        return Standing(None, [], False)
    fastest = min(values, key=lambda column: values[column])
    first = row.cells[fastest].by_round(metric)
    rivals = {column: ratio(first, row.cells[column].by_round(metric)) for column in values if column != fastest}
    proven = len(first) >= MIN_TRIALS_FOR_INTERVAL
    level = [column for column, found in rivals.items() if proven and judge(found) is not Verdict.FASTER]
    return Standing(fastest, level, proven)
