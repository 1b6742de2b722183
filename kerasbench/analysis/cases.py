"""The cases of a table, row by row."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from kerasbench.analysis import movement, parity
from kerasbench.analysis.estimates import Estimate, LogEstimate
from kerasbench.analysis.families import Priors
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.protocol.columns import CaseKey, Column, Size
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.measurement import Measurement, Training
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import Origin, Trial
from kerasbench.text import label

HEADLINE, STEADY, FIRST_STEP = "train_step_ms", "steady_step_ms", "first_step_ms"
TRAINED_RATE, PREDICTED_RATE = "train_samples_per_s", "predict_samples_per_s"
PREDICTS = " (predict)"  # behind the name of a row whose model is not trained
PREDICTED, PREDICTED_ONE = "predict_batch_p50_ms", "predict_p50_ms"


def headline_of(trials: Iterable[Trial]) -> str:
    """Return what stands for these trials: in a sweep, which measures no epochs, the step inside of them."""
    for trial in trials:
        if trial.measurement is not None:
            if trial.measurement.training is not None:
                return HEADLINE if trial.options.size is None else STEADY
            return PREDICTED if any(latency.batch > 1 for latency in trial.measurement.prediction) else PREDICTED_ONE
    return HEADLINE


Key = TypeVar("Key")
Value = TypeVar("Value")


class Once(Generic[Key, Value]):
    def __init__(self) -> None:
        self._known: dict[Key, Value] = {}

    def __call__(self, key: Key, compute: Callable[[], Value]) -> Value:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]


@dataclass(frozen=True)
class Measured:
    trials: list[tuple[Trial, Measurement]]
    failure: Failure | None  # the last one; a case that failed may hold earlier trials
    _known: Once[str, Estimate | None] = field(default_factory=Once, compare=False, repr=False)
    beside: dict[tuple[int, str], Any] = field(default_factory=dict, compare=False, repr=False)  # what ratios remembers
    was_ranked: bool | None = None  # what its trials said, where they were dropped (findings.light)

    @cached_property
    def by_block(self) -> dict[int, tuple[Trial, Measurement]]:
        return {trial.block: (trial, measurement) for trial, measurement in self.trials if trial.block}

    def by_round(self, name: str) -> dict[int, float]:
        """Return the metric's value in each round that has one; the mean where a round had several blocks."""
        rounds: dict[int, list[float]] = {}
        for trial, measurement in self.trials:
            value = BY_NAME[name].read(trial, measurement)
            if value is not None:
                rounds.setdefault(trial.round, []).append(value)
        return {index: statistics.fmean(values) for index, values in rounds.items()}

    def values(self, name: str) -> list[float]:
        values = [BY_NAME[name].read(trial, measurement) for trial, measurement in self.trials]
        return [value for value in values if value is not None]

    @property
    def is_ranked(self) -> bool:
        """Whether it may be the fastest: not what compiled while it was measured, or ran eagerly and was not to."""
        if self.was_ranked is not None:
            return self.was_ranked
        return not any(m.compiler and (m.compiler.while_measured or m.compiler.eager) for _, m in self.trials)

    @property
    def digest(self) -> str:
        """Of what a script gave it first; empty: it is of a scenario, or has no trial that compared it."""
        return next((measurement.batch.digest for _, measurement in self.trials if measurement.batch.digest), "")

    @property
    def device_title(self) -> str:
        return next((trial.device.title for trial, _ in self.trials), "")

    def estimate(self, name: str) -> Estimate | None:
        """Return the estimate of a metric, None where a failure withholds it or no trial has it."""
        if self.failure is not None:
            return None
        return self._known(name, lambda: BY_NAME[name].estimate(self.trials))

    @property
    def steps_ms(self) -> list[float]:
        return self.values(headline_of(trial for trial, _ in self.trials))


@dataclass(frozen=True)
class Row:
    """One workload of one scenario, at one size where it was swept, over all columns."""

    scenario: Description
    workload: WorkloadDescription
    cases: dict[Column, Measured]
    origin: Origin  # its run
    size: Size | None = None
    of_user: bool = False  # the scenario is the user's own, not a built-in one of the same name
    priors: Priors | None = field(default=None, compare=False, repr=False)  # how the ratios of its run scatter
    ratios: Once[tuple[Column, Column, str], LogEstimate | None] = field(  # of two columns (ratios.in_row)
        init=False, default_factory=Once, compare=False, repr=False
    )

    @property
    def run(self) -> str:
        return self.origin.started

    @property
    def name(self) -> str:
        return label(self.scenario.name, self.workload.name) + (PREDICTS if self.workload.predicts_only else "")

    @property
    def label(self) -> str:
        return f"{self.name} {self.size.label}" if self.size else self.name

    @property
    def headline(self) -> str:
        if self.workload.predicts_only:
            return PREDICTED if self.workload.predicts_batches else PREDICTED_ONE
        return HEADLINE if self.size is None else STEADY

    def key(self, column: Column) -> CaseKey:
        return CaseKey(self.scenario.name, self.workload.name, column, self.size)

    @property
    def in_turn(self) -> bool:
        blocks = Counter(trial.block for case in self.cases.values() for trial, _ in case.trials if trial.block)
        return any(columns > 1 for columns in blocks.values())

    @property
    def rounds(self) -> int:
        """How many rounds it had: its own number where columns took turns, else that of its run."""
        if not self.in_turn:
            return self.origin.rounds
        return len({trial.round for case in self.cases.values() for trial, _ in case.trials})

    @cached_property
    def deviating(self) -> dict[Column, parity.Deviation]:
        return parity.deviations(_first_trials(self.cases, "parity"))

    @cached_property
    def standstills(self) -> dict[Column, movement.Standstill]:
        return movement.standstills(_first_trials(self.cases, "movement"))


def judge_cases(cases: Mapping[Column, Measured]) -> dict[Column, Failure]:
    """Return those that compute, or train, something else than the others: by the first trial, which alone tells."""
    moved = movement.judge_movement(_first_trials(cases, "movement"))
    return moved | parity.judge_parity(_first_trials(cases, "parity"))


def _first_trials(cases: Mapping[Column, Measured], fact: str) -> dict[Column, tuple[str, Measurement]]:
    """Return the first trial of each case that has this fact of a ``Measurement``."""
    compared: dict[Column, tuple[str, Measurement]] = {}
    for column, case in cases.items():
        if case.failure is None or case.failure.code is Code.PARITY:  # judged again, so that the verdict stays the same
            for trial, measurement in case.trials:
                if getattr(measurement, fact) is not None:
                    compared.setdefault(column, (trial.device.kind, measurement))
    return compared


def summarize_case(trials: Iterable[Trial]) -> Measured:
    """Sum up one case's trials. One that ran out of memory beside others counts only where the case has no other."""
    trials = list(trials)
    counting = [trial for trial in trials if not trial.crowded] or trials
    failures = [trial.failure for trial in counting if trial.failure is not None]
    measured = [(trial, trial.measurement) for trial in counting if trial.measurement is not None]
    return Measured(_with_epochs(measured), failures[-1] if failures else None)


def _with_epochs(trials: Sequence[tuple[Trial, Measurement]]) -> list[tuple[Trial, Measurement]]:
    """Lend trials that left out short epochs the newest before them: all columns of a block did, and stay pairs."""
    known: Training | None = None
    whole = []
    for trial, measurement in trials:
        training = measurement.training
        if training is not None and training.epochs:
            known = training
        elif training is not None and training.unit == "step" and not trial.agenda.sized and known is not None:
            lent = replace(training, epochs=known.epochs, epoch_steps=known.epoch_steps)
            measurement = replace(measurement, training=lent)  # noqa: PLW2901
        whole.append((trial, measurement))
    return whole
