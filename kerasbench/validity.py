"""Can these values be? A file may have been edited: what types cannot say is checked once, when it is read."""

import math
from collections.abc import Iterator

from kerasbench import metrics
from kerasbench.results import Record, TrialRecord
from kerasbench.wire import Measurement, Training

MAX_NS = 10**18  # thirty years


def complaint(record: Record) -> str:
    """Return what cannot be in a record, empty where everything can."""
    for index, trial in enumerate(record.trials, start=1):
        for what in _of_trial(trial):
            return f"trial {index} ({trial.scenario}, {trial.backend}): {what}"
    known = {one.description.name for one in record.scenarios}
    strangers = sorted({trial.scenario for trial in record.trials} - known)
    if strangers:
        return f"trials of {', '.join(strangers)}, which is none of its scenarios"
    return "" if 0 < record.minimal_effect < 1 else f"a minimal effect of {record.minimal_effect}"


def _of_trial(trial: TrialRecord) -> Iterator[str]:
    if (trial.measurement is None) == (trial.failure is None):
        yield "a trial has either a measurement or a failure"
    if not 0 <= trial.wall_ns <= MAX_NS or any(abs(phase.duration_ns) > MAX_NS for phase in trial.phases):
        yield "a duration that cannot be"
    if trial.measurement is not None:
        yield from _of_measurement(trial.measurement)


def _of_measurement(m: Measurement) -> Iterator[str]:
    yield from _of_training(m.training)
    durations: list[int] = []
    for latency in m.prediction:
        durations += latency.calls_ns
    if m.throughput is not None:
        durations += m.throughput.passes_ns or [0]
    if m.published is not None:
        durations += [m.published.total_ns, *(m.published.epochs_ns or [0]), *m.published.predict_ns]
    if not _durations([*durations, m.usage.wall_ns]):
        yield "a duration that cannot be"
    counts = [m.steps_per_epoch, m.train_samples, *(latency.batch for latency in m.prediction)]
    counts += [m.throughput.samples] if m.throughput else []
    if not all(0 < count < MAX_NS for count in counts) or not 0 <= m.full_steps_per_epoch <= m.steps_per_epoch:
        yield "a count that cannot be"
    losses = [m.learning.batch_loss_before, m.learning.batch_loss_after, m.learning.loss]
    losses += m.parity.losses if m.parity else []
    if not all(math.isfinite(loss) for loss in losses):
        yield "a loss that is not finite"
    elif not metrics.epoch_ns(m) > 0:
        yield "an epoch that takes no time"


def _of_training(training: Training) -> Iterator[str]:
    blocks = [*training.blocks, *training.warmup]
    if not training.blocks or not all(0 < one.count < MAX_NS and 0 < one.ns <= MAX_NS for one in blocks):
        yield "blocks that cannot be"
    if training.first_step_ns is not None and not 0 < training.first_step_ns <= MAX_NS:
        yield "a first step that cannot be"
    if training.unit == "step" and not training.epochs_ns:
        yield "no epochs beside its steps"
    if not _durations([*training.epochs_ns, *training.again_ns, 1]) or training.epoch_steps < 0:
        yield "epochs that cannot be"


def _durations(found_ns: list[int]) -> bool:
    """Tell whether all can be durations; a trial has thousands, and a report a million."""
    return min(found_ns) > 0 and max(found_ns) <= MAX_NS
