"""A case of a table: what its trials amount to."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from kerasbench import facts
from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.stages import EPOCH
from kerasbench.results.run import Trial

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
            return PREDICTED if any(calls.batch > 1 for calls in trial.measurement.calls.values()) else PREDICTED_ONE
    return HEADLINE


@dataclass(frozen=True)
class Measured:
    trials: list[tuple[Trial, Measurement]]
    failure: Failure | None  # the last one; a case that failed may hold earlier trials
    _estimates: dict[str, Estimate | None] = field(default_factory=dict, compare=False, repr=False)
    was_ranked: bool | None = None  # what its trials said, where they were dropped (``abreast.light``)

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
    def facts(self) -> dict[str, str]:
        """Which code ran, by the newest trial that has facts; empty: none has, as of what is not a Keras model."""
        return next(filter(None, (facts.of(measurement) for _, measurement in reversed(self.trials))), {})

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
        if name not in self._estimates:
            self._estimates[name] = BY_NAME[name].estimate(self.trials)
        return self._estimates[name]

    @property
    def steps_ms(self) -> list[float]:
        return self.values(headline_of(trial for trial, _ in self.trials))


def summarize_case(trials: Iterable[Trial]) -> Measured:
    """Sum up one case's trials. One that ran out of memory beside others counts only where the case has no other."""
    trials = list(trials)
    counting = [trial for trial in trials if not trial.crowded] or trials
    failures = [trial.failure for trial in counting if trial.failure is not None]
    measured = [(trial, trial.measurement) for trial in counting if trial.measurement is not None]
    return Measured(_with_epochs(measured), failures[-1] if failures else None)


def _with_epochs(trials: Sequence[tuple[Trial, Measurement]]) -> list[tuple[Trial, Measurement]]:
    """Lend trials that left out short epochs the newest before them: all columns of a block did, and stay pairs."""
    lender: Measurement | None = None
    whole = []
    for trial, measurement in trials:
        training = measurement.training
        if EPOCH in measurement.samples:
            lender = measurement
        elif training is not None and training.unit == "step" and not trial.agenda.sized and lender is not None:
            samples = measurement.samples | {EPOCH: lender.samples[EPOCH]}
            measurement = replace(measurement, samples=samples, short_epoch=lender.short_epoch)  # noqa: PLW2901
        whole.append((trial, measurement))
    return whole
