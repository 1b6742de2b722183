"""Can these values be? A file may have been edited: what types cannot say is checked once, when it is read."""

from collections.abc import Iterator

from kerasbench.exchange import measurement
from kerasbench.exchange.measurement import Block, Measurement, Parts, Published, Training
from kerasbench.results.record import Record, TrialRecord

MAX_NS = 10**18  # thirty years
MAX_COUNT = 10**18  # of samples, steps or bytes: what a float still tells from its neighbours, by and large
MAX_VALUE = 1e300  # of a loss: a sum of as many as a file can hold is still a number


def complaint(record: Record) -> str:
    """Return what cannot be in a record, empty where everything can."""
    for index, trial in enumerate(record.trials, start=1):
        for what in _of_trial(trial):
            return f"trial {index} ({trial.scenario}, {trial.backend}): {what}"
    known = {one.description.name for one in record.scenarios}
    strangers = sorted({trial.scenario for trial in record.trials} - known)
    if strangers:
        return f"trials of {', '.join(strangers[:3])}, which is none of its scenarios"
    regimes = (regime for one in record.scenarios for regime in one.description.regimes)
    if not all(0 < regime.steps < MAX_COUNT for regime in regimes):
        return "a regime of so many steps that it cannot be"
    if not all(0 <= one.operations < MAX_COUNT for one in record.flops):
        return "so many operations that it cannot be"
    if not 0 <= record.machine.memory_bytes < MAX_COUNT:
        return "a machine with a memory that cannot be"
    return "" if 0 < record.minimal_effect < 1 else f"a minimal effect of {record.minimal_effect}"


def _of_trial(trial: TrialRecord) -> Iterator[str]:
    if (trial.measurement is None) == (trial.failure is None):
        yield "a trial has either a measurement or a failure"
    if not 0 <= trial.wall_ns <= MAX_NS or any(abs(phase.duration_ns) > MAX_NS for phase in trial.phases):
        yield "a duration that cannot be"
    if trial.measurement is not None:
        yield from _of_measurement(trial.measurement)
        training = trial.measurement.training
        if training is not None and training.unit == "step" and not training.epochs and trial.measures_epochs:
            yield "no epochs beside its steps"


def _of_measurement(m: Measurement) -> Iterator[str]:
    if m.training is not None:
        yield from _of_training(m.training)
    elif not m.prediction or not all(one.slices for one in m.prediction):
        yield "neither steps nor predictions"
        return
    yield from _of_predictions(m)
    yield from _of_published(m.published)
    if not _are_durations([m.usage.wall_ns]):
        yield "a duration that cannot be"
    counts = [m.steps_per_epoch, m.train_samples]
    if not all(0 < count < MAX_COUNT for count in counts) or not 0 <= m.full_steps_per_epoch <= m.steps_per_epoch:
        yield "a count that cannot be"
    if not all(0 <= size < MAX_COUNT for size in (m.peak_rss_bytes, m.peak_device_bytes or 0)):
        yield "a memory that cannot be"
    losses = [*(m.parity.losses if m.parity else []), *(one for output in _outputs(m) for one in output)]
    if m.learning is not None:
        own = m.learning
        losses += [own.batch_loss_before, own.batch_loss_after, own.loss, own.accuracy or 0.0]
    if not _are_values(losses):
        yield "a loss that is not finite"
    elif not measurement.step_ns(m) > 0:
        yield "an epoch that takes no time"


def _of_predictions(m: Measurement) -> Iterator[str]:
    passes = [m.throughput] if m.throughput else []
    durations_ns = [*(one.calls_ns for one in m.prediction), *(one.passes_ns or [0] for one in passes)]
    if not all(map(_are_durations, durations_ns)):
        yield "a duration that cannot be"
    if not all(map(_are_blocks, [*(one.slices for one in m.prediction), *(one.slices for one in passes)])):
        yield "slices that cannot be"
    counts = [*(one.batch for one in m.prediction), *(one.samples for one in passes)]
    if not all(0 < count < MAX_COUNT for count in counts):
        yield "a count that cannot be"


def _outputs(m: Measurement) -> list[list[float]]:
    return m.parity.outputs if m.parity else []


def _of_training(training: Training) -> Iterator[str]:
    if not training.blocks or not all(map(_are_blocks, (training.blocks, training.warmup, training.epochs))):
        yield "blocks that cannot be"
    if training.first_step_ns is not None and not 0 < training.first_step_ns <= MAX_NS:
        yield "a first step that cannot be"
    if not 0 <= training.epoch_steps < MAX_COUNT:
        yield "epochs that cannot be"
    if not _are_durations(training.again_ns):
        yield "steps that cannot be"
    if training.parts is not None and not (training.epochs and _are_parts(training.parts)):
        yield "parts of a step that cannot be"


def _of_published(published: Published | None) -> Iterator[str]:
    if published is None:
        return
    durations_ns = ([published.total_ns], published.epochs_ns or [0], published.predict_ns)
    if not all(map(_are_durations, durations_ns)):
        yield "published epochs that cannot be"
    if not all(logs and _are_values(logs) for logs in published.history.values()):
        yield "a history that cannot be"


def _are_parts(parts: Parts) -> bool:
    found = (parts.arrays, parts.ready, parts.bare)
    return all(found) and all(map(_are_blocks, found)) and 1 <= parts.peak_flops < MAX_COUNT


def _are_blocks(found: list[Block]) -> bool:
    """Tell whether all can have been measured; there may be none."""
    return all(0 < one.count < MAX_COUNT and 0 < one.ns <= MAX_NS for one in found)


def _are_durations(found_ns: list[int]) -> bool:
    """Tell whether all can be durations; a trial has thousands, and a report a million."""
    return not found_ns or (min(found_ns) > 0 and max(found_ns) <= MAX_NS)


def _are_values(found: list[float]) -> bool:
    """Tell whether all can be losses or accuracies; a comparison with what is not a number is False."""
    return all(abs(value) <= MAX_VALUE for value in found)
