"""From trials to what a table says: an estimate for each cell and metric, and who is fastest."""

import dataclasses
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress

from kerasbench.analysis import parity
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Estimate, LogEstimate, mean_interval
from kerasbench.analysis.metrics import BY_NAME, NS_PER_S, Metric
from kerasbench.analysis.verdicts import Verdict, judge_all, learned, ratio, rounds_to_decide
from kerasbench.exchange.descriptions import Description, RegimeDescription
from kerasbench.exchange.measurement import Measurement, Resolved
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.options import Size, is_native
from kerasbench.results.keys import CellKey, Column
from kerasbench.results.record import Group, Origin, Record, ScenarioRecord, TrialRecord
from kerasbench.text import count, label

HEADLINE, STEADY = "train_step_ms", "steady_step_ms"


def headline(size: Size | None) -> str:
    """Return the metric that stands for a cell: in a sweep, which measures no epochs, the step inside of them."""
    return HEADLINE if size is None else STEADY


@dataclass(frozen=True)
class CellSummary:
    """What a cell's trials amount to: one for each round, an undisturbed one where the round has one.

    ``failure`` is the last one; a cell that failed may hold earlier trials. ``noisy`` are the rounds whose every trial
    was invalid.
    """

    trials: list[tuple[TrialRecord, Measurement]]
    failure: Failure | None
    _known: dict[str, Estimate | None] = field(default_factory=dict, compare=False, repr=False)

    def by_round(self, metric: Metric) -> dict[int, float]:
        """Return the metric's value in each round that has one."""
        values = {trial.round: metric.read(trial, measurement) for trial, measurement in self.trials}
        return {index: value for index, value in values.items() if value is not None}

    @property
    def learned(self) -> bool:
        """Whether training changed the loss in every trial."""
        return all(learned(m.learning.batch_loss_before, m.learning.batch_loss_after) for _, m in self.trials)

    @property
    def device_title(self) -> str:
        """The GPU's name as a trial found it, empty for a CPU and for a cell without a trial that succeeded."""
        return next((trial.device.title for trial, _ in self.trials), "")

    @property
    def noisy(self) -> list[int]:
        return [trial.round for trial, _ in self.trials if trial.disturbed]

    def estimate(self, name: str) -> Estimate | None:
        """Return the estimate of a metric, None where a failure withholds it or no trial has it."""
        if self.failure is not None:
            return None
        if name not in self._known:
            self._known[name] = BY_NAME[name].estimate(self.trials)
        return self._known[name]

    def sign(self, name: str) -> int:
        """Return 1 for a difference of readings that is above zero, -1 for one below, 0 for one not told from it."""
        return mean_interval(list(self.by_round(BY_NAME[name]).values())).sign

    @property
    def steps_ms(self) -> list[float]:
        """The training step of each trial, by the metric that stands for the cell."""
        size = next((trial.options.size for trial, _ in self.trials), None)
        return list(self.by_round(BY_NAME[headline(size)]).values())

    @property
    def scatter(self) -> float | None:
        """Coefficient of variation of the training step over trials; None for fewer than three."""
        values = self.steps_ms
        return statistics.stdev(values) / statistics.fmean(values) if len(values) >= MIN_TRIALS_FOR_INTERVAL else None


@dataclass(frozen=True)
class Row:
    """One regime of one scenario, at one size where it was swept, over all columns; ``origin`` tells of its run."""

    scenario: Description
    regime: RegimeDescription
    cells: dict[Column, CellSummary]
    origin: Origin
    size: Size | None = None

    @property
    def label(self) -> str:
        name = label(self.scenario.name, self.regime.name)
        return f"{name} {self.size.label}" if self.size else name

    @property
    def headline(self) -> str:
        return headline(self.size)

    def key(self, column: Column) -> CellKey:
        """Return what tells a cell from all others, as TrialRecord.cell does."""
        options = " ".join(part for part in (column[2], self.size.label if self.size else "") if part)
        return (self.scenario.name, self.regime.name, *column[:2], options)

    @property
    def idle(self) -> list[Column]:
        """The columns in which a model that has something to learn did not change its loss."""
        return [column for column, cell in self.cells.items() if self.scenario.learnable and not cell.learned]


@dataclass(frozen=True)
class Comparison:
    """The fastest cell of a row against one of the others: the ratio of their times, and what it means.

    ``decides``: about how many rounds in all would decide it by itself; None where no number would.
    """

    rival: Column
    ratio: LogEstimate
    verdict: Verdict
    decides: int | None


@dataclass(frozen=True)
class Standing:
    """Who is fastest in a row: one winner, or the first of several that cannot be told apart.

    Nobody is, where there is nobody to be compared with. ``proven`` is False where there are too few rounds; where no
    row of the table has enough, it is ``tentative``.
    """

    fastest: Column | None
    comparisons: list[Comparison]
    proven: bool
    tentative: bool = False

    @property
    def first(self) -> Column | None:
        """The fastest where none is level with it: beyond doubt, or of a tentative table."""
        return self.fastest if (self.proven or self.tentative) and not self.level else None

    @property
    def level(self) -> list[Column]:
        """Those that cannot be told from the fastest."""
        return [one.rival for one in self.comparisons if self.proven and one.verdict is not Verdict.FASTER]


@dataclass(frozen=True)
class Summary:
    """What the tables of a run are drawn from. ``standings`` are of the training step, one for each row."""

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
    columns = sorted({trial.column for trial in record.trials})
    rows = [
        Row(scenario.description, regime, _with_parity(cells), _origin(record, scenario, regime, size), size)
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
    """Leave out what a round that was not completed has measured, unless there is no other."""

    def counts(trial: TrialRecord) -> bool:
        rounds = record.origin(trial.group).rounds
        return not rounds or trial.failure is not None or trial.round <= rounds

    return dataclasses.replace(record, trials=[trial for trial in record.trials if counts(trial)])


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


def summarize_cell(trials: Iterable[TrialRecord]) -> CellSummary:
    """Sum up one cell's trials; in each round the last undisturbed one counts, or the last where there is none."""
    chosen: dict[int, TrialRecord] = {}
    for trial in trials:
        held = chosen.get(trial.round)
        if held is None or held.disturbed or not trial.disturbed:
            chosen[trial.round] = trial
    failures = [trial.failure for trial in chosen.values() if trial.failure is not None]
    good = [(trial, trial.measurement) for trial in chosen.values() if trial.measurement is not None]
    return CellSummary(good, failures[-1] if failures else None)


def _with_parity(cells: dict[Column, CellSummary]) -> dict[Column, CellSummary]:
    """Fail the cells of a row that compute something else than the others. One trial tells: all begin alike."""
    compared = {
        column: (trial.device.kind, measurement)
        for column, cell in cells.items()
        if cell.failure is None
        for trial, measurement in cell.trials
        if measurement.parity is not None
    }
    failures = parity.judge(compared)
    return {column: CellSummary(cell.trials, failures.get(column, cell.failure)) for column, cell in cells.items()}


def stand(rows: list[Row], effect: float) -> list[Standing]:
    """Compare the fastest cell of each row with each of its others, paired by round.

    All verdicts of the table are judged together, because their number matters.
    """
    pairs = [_pairs(row, BY_NAME[row.headline]) for row in rows]
    verdicts = judge_all([ratio for _, ratios in pairs for ratio in ratios.values()], effect)
    tentative = all(row.origin.rounds < MIN_TRIALS_FOR_INTERVAL for row in rows)
    standings = []
    for fastest, ratios in pairs:
        judged, verdicts = verdicts[: len(ratios)], verdicts[len(ratios) :]
        comparisons = [
            Comparison(rival, found, verdict, rounds_to_decide(found, effect))
            for (rival, found), verdict in zip(ratios.items(), judged, strict=True)
        ]
        proven = bool(comparisons) and all(one.ratio.has_interval for one in comparisons)
        standings.append(Standing(fastest, comparisons, proven, tentative))
    return standings


def _pairs(row: Row, metric: Metric) -> tuple[Column | None, dict[Column, LogEstimate]]:
    """Return the fastest column of a row and the ratio of its times to those of each other.

    Native twins do not compete: what they are compared with is their own backend with Keras (keras_cost.py).
    """
    competing = {column: cell for column, cell in row.cells.items() if not is_native(column[2])}
    values = {column: found.value for column, cell in competing.items() if (found := cell.estimate(metric.name))}
    if len(values) < 2:
        return None, {}
    fastest = min(values, key=lambda column: values[column])
    first = row.cells[fastest].by_round(metric)
    ratios = {column: ratio(first, row.cells[column].by_round(metric)) for column in values if column != fastest}
    return fastest, {column: found for column, found in ratios.items() if found is not None}


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


def _phases_s(record: Record, columns: list[Column]) -> dict[str, dict[Column, float]]:
    """Return each phase's mean duration by column, in s, in the order of a trial."""
    durations: dict[str, dict[Column, list[float]]] = {}
    for trial in record.trials:
        if trial.measurement is not None:
            for phase in trial.phases:
                by_column = durations.setdefault(phase.name, {})
                by_column.setdefault(trial.column, []).append(phase.duration_ns / NS_PER_S)
    return {
        name: {column: statistics.fmean(by_column[column]) for column in columns if column in by_column}
        for name, by_column in durations.items()
    }
