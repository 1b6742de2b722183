"""What the slices of a trial come to: the time of a step, and of an epoch. No child needs it."""

import statistics

from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.stages import EPOCH, TRAIN


def steady_step_ns(measurement: Measurement) -> float | None:
    """Return b, the time of a step inside an epoch: the median over slices; None where slices are epochs."""
    training = measurement.training
    return None if training is None or training.unit == "epoch" else measurement.median_ns[TRAIN]


def epoch_overhead_ns(measurement: Measurement) -> float | None:
    """Return a, what an epoch costs beyond its full steps, with validation. Noise can make it negative."""
    step_ns, short_epoch = steady_step_ns(measurement), measurement.short_epoch
    if step_ns is None or short_epoch is None:
        return None
    return measurement.median_ns[EPOCH] - short_epoch.steps * step_ns


def steady_epoch_ns(measurement: Measurement) -> float | None:
    """Return a + b * full steps, or the measured epoch itself; None in a sweep.

    It is b * all steps where a was left out, or of a stream, which has none.
    """
    if measurement.training is not None and measurement.training.unit == "epoch":
        return measurement.median_ns[TRAIN]
    step_ns, overhead_ns = steady_step_ns(measurement), epoch_overhead_ns(measurement)
    if step_ns is not None and has_steps_alone(measurement):
        return step_ns * measurement.steps_per_epoch
    if step_ns is None or overhead_ns is None:
        return None
    return overhead_ns + step_ns * measurement.full_steps_per_epoch


def has_steps_alone(measurement: Measurement) -> bool:
    """Whether no short epochs were measured: they would take too long, or its model was given a stream."""
    streamed = measurement.training is not None and measurement.training.streamed
    return streamed or leaves_out(measurement, EPOCH)


def leaves_out(measurement: Measurement, stage: str) -> bool:
    return measurement.sizes is not None and stage in measurement.sizes.left_out


def epoch_ns(measurement: Measurement) -> float | None:
    """Return the time of a published epoch: the mean of those run in full, or a + b * steps; None in a sweep."""
    published = measurement.published
    return published.total_ns / len(published.epochs_ns) if published else steady_epoch_ns(measurement)


def step_ns(measurement: Measurement) -> float:
    """Return what stands for a trial: a published epoch over its steps, a sweep's step, or a prediction of a batch."""
    whole_ns = epoch_ns(measurement)
    if whole_ns is not None:
        return whole_ns / measurement.steps_per_epoch
    return statistics.median(measurement.slices.units_ns)
