"""The cells of a table and their trials, row by row."""

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Estimate, mean_interval
from kerasbench.analysis.metrics import BY_NAME, Metric
from kerasbench.analysis.verdicts import learned
from kerasbench.exchange.descriptions import Description, RegimeDescription
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.options import Size
from kerasbench.results.keys import CellKey, Column
from kerasbench.results.record import Origin, TrialRecord
from kerasbench.text import label

HEADLINE, STEADY = "train_step_ms", "steady_step_ms"
PREDICTS = " (predict)"  # behind the name of a row whose model is not trained
PREDICTED, PREDICTED_ONE = "predict_batch_p50_ms", "predict_p50_ms"


def headline(size: Size | None) -> str:
    """Return the metric that stands for a cell: in a sweep, which measures no epochs, the step inside of them."""
    return HEADLINE if size is None else STEADY


def headline_of(trials: Iterable[TrialRecord]) -> str:
    """Return the metric that stands for these trials: of a model that is not trained, a prediction of its batch."""
    trial = next((one for one in trials if one.measurement is not None), None)
    if trial is None or trial.measurement is None:
        return HEADLINE
    if trial.measurement.training is None:
        return PREDICTED if any(one.batch > 1 for one in trial.measurement.prediction) else PREDICTED_ONE
    return headline(trial.options.size)


@dataclass(frozen=True)
class CellSummary:
    """What a cell's trials amount to (see ``summarize_cell``).

    ``failure`` is the last one; a cell that failed may hold earlier trials. ``noisy`` are the rounds in which it was
    disturbed.
    """

    trials: list[tuple[TrialRecord, Measurement]]
    failure: Failure | None
    _known: dict[str, Estimate | None] = field(default_factory=dict, compare=False, repr=False)

    def by_round(self, metric: Metric) -> dict[int, float]:
        """Return the metric's value in each round that has one; the mean where a round had several bouts."""
        found: dict[int, list[float]] = {}
        for trial, measurement in self.trials:
            value = metric.read(trial, measurement)
            if value is not None:
                found.setdefault(trial.round, []).append(value)
        return {index: statistics.fmean(values) for index, values in found.items()}

    def values(self, metric: Metric) -> list[float]:
        """Return the metric's value of each trial that has one."""
        found = [metric.read(trial, measurement) for trial, measurement in self.trials]
        return [value for value in found if value is not None]

    @property
    def learned(self) -> bool:
        """Whether training changed the loss in every trial."""
        found = [m.learning for _, m in self.trials if m.learning is not None]
        return all(learned(one.batch_loss_before, one.batch_loss_after) for one in found)

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
        return mean_interval(self.values(BY_NAME[name])).sign

    @property
    def steps_ms(self) -> list[float]:
        """The training step of each trial, by the metric that stands for the cell."""
        return self.values(BY_NAME[headline_of(trial for trial, _ in self.trials)])

    @property
    def scatter(self) -> float | None:
        """Coefficient of variation of the training step over trials; None for fewer than three."""
        values = self.steps_ms
        return statistics.stdev(values) / statistics.fmean(values) if len(values) >= MIN_TRIALS_FOR_INTERVAL else None


@dataclass(frozen=True)
class Row:
    """One regime of one scenario, at one size where it was swept, over all columns; ``origin`` tells of its run.

    ``own``: the scenario is the user's own, not a built-in one of the same name.
    """

    scenario: Description
    regime: RegimeDescription
    cells: dict[Column, CellSummary]
    origin: Origin
    size: Size | None = None
    own: bool = False

    @property
    def label(self) -> str:
        name = label(self.scenario.name, self.regime.name) + (PREDICTS if self.regime.predicts_only else "")
        return f"{name} {self.size.label}" if self.size else name

    @property
    def headline(self) -> str:
        if self.regime.predicts_only:
            return PREDICTED if self.regime.predicts_batches else PREDICTED_ONE
        return headline(self.size)

    def key(self, column: Column) -> CellKey:
        """Return what tells a cell from all others, as TrialRecord.cell does."""
        options = " ".join(part for part in (column[2], self.size.label if self.size else "") if part)
        return (self.scenario.name, self.regime.name, *column[:2], options)

    @property
    def in_turn(self) -> bool:
        """Whether columns were measured side by side, in slices."""
        bouts = Counter(trial.bout for cell in self.cells.values() for trial, _ in cell.trials if trial.bout)
        return any(columns > 1 for columns in bouts.values())

    @property
    def rounds(self) -> int:
        """How many rounds it had: its own number where columns took turns, else that of its run."""
        if not self.in_turn:
            return self.origin.rounds
        return len({trial.round for cell in self.cells.values() for trial, _ in cell.trials})

    @property
    def idle(self) -> list[Column]:
        """The columns in which a model that has something to learn did not change its loss."""
        return [column for column, cell in self.cells.items() if self.scenario.learnable and not cell.learned]


def summarize_cell(trials: Iterable[TrialRecord]) -> CellSummary:
    """Sum up one cell's trials. One that ran out of memory beside others counts only where the cell has no other."""
    found = list(trials)
    chosen = [one for one in found if not one.crowded] or found
    failures = [trial.failure for trial in chosen if trial.failure is not None]
    good = [(trial, trial.measurement) for trial in chosen if trial.measurement is not None]
    return CellSummary(good, failures[-1] if failures else None)
