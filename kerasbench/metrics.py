"""What is read off a trial: one line for each metric, with its unit and how its trials are summed up."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from kerasbench.results import TrialRecord
from kerasbench.stats import Estimate, estimate, mean
from kerasbench.wire import Latency, Measurement

NS_PER_MS = 1e6
NS_PER_S = 1e9
BYTES_PER_MIB = 1 << 20
STARTUP_PHASES = ("spawn", "worker", "import", "device")


@dataclass(frozen=True)
class Metric:
    """``read`` returns a trial's value in ``unit``, None where it has none; ``sum_up`` makes an estimate of several."""

    name: str
    unit: str
    title: str
    read: Callable[[TrialRecord, Measurement], float | None]
    sum_up: Callable[[list[float]], Estimate] = estimate


def steady_step_ns(measurement: Measurement) -> float | None:
    """Return b, the time of a step inside an epoch: the median over blocks; None where blocks are epochs."""
    training = measurement.training
    return None if training.unit == "epoch" else _median_of_blocks(measurement)


def epoch_overhead_ns(measurement: Measurement) -> float | None:
    """Return a, what an epoch costs beyond its full steps (validation and a partial last batch are part of it).

    The median short epoch less its full steps. Where a is far smaller than a step, noise can make it negative.
    """
    step_ns, training = steady_step_ns(measurement), measurement.training
    if step_ns is None or not training.epochs_ns:
        return None
    return statistics.median(training.epochs_ns) - training.epoch_steps * step_ns


def steady_epoch_ns(measurement: Measurement) -> float:
    """Return what an epoch of the published length takes by a + b * full steps, or the measured epoch itself."""
    if measurement.training.unit == "epoch":
        return _median_of_blocks(measurement)
    step_ns, overhead_ns = steady_step_ns(measurement), epoch_overhead_ns(measurement)
    assert step_ns is not None and overhead_ns is not None  # the worker sends no measurement without
    return overhead_ns + step_ns * measurement.full_steps_per_epoch


def epoch_ns(measurement: Measurement) -> float:
    """Return the time of a published epoch: the mean of those run in full, or a + b * steps."""
    published = measurement.published
    if published is None:
        return steady_epoch_ns(measurement)
    return published.total_ns / len(published.epochs_ns)


def _later_epoch_ns(measurement: Measurement) -> float | None:
    """Return the median of the epochs that were run in full, without the first, which compiles."""
    published = measurement.published
    return statistics.median(published.epochs_ns[1:] or published.epochs_ns) if published else None


def _prediction(measurement: Measurement) -> float | None:
    truth_ns = _later_epoch_ns(measurement)
    return None if truth_ns is None else steady_epoch_ns(measurement) / truth_ns


def _predicted_s(measurement: Measurement) -> float | None:
    return steady_epoch_ns(measurement) / NS_PER_S if measurement.published else None


def _total_s(measurement: Measurement) -> float | None:
    return measurement.published.total_ns / NS_PER_S if measurement.published else None


def _last_log(measurement: Measurement, name: str) -> float | None:
    """Return what the last epoch logged, as Keras' progress bar would show it; None where it did not."""
    history = measurement.published.history if measurement.published else {}
    return history[name][-1] if name in history else None


def _predict_s(measurement: Measurement) -> float | None:
    """Return the time of the second pass of `predict` over the test set, in s; the first one compiles."""
    published = measurement.published
    return published.predict_ns[-1] / NS_PER_S if published and published.predict_ns else None


def _median_of_blocks(measurement: Measurement) -> float:
    return statistics.median(block.ns / block.count for block in measurement.training.blocks)


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def _phases_ms(trial: TrialRecord, names: tuple[str, ...]) -> float | None:
    durations = [phase.duration_ns for phase in trial.phases if phase.name in names]
    return _ms(sum(durations)) if durations else None


def _percentile_ms(latency: Latency | None, tenths: int) -> float | None:
    if latency is None or len(latency.calls_ns) < 2:
        return None
    return statistics.quantiles(latency.calls_ns, n=10, method="inclusive")[tenths - 1] / NS_PER_MS


def _single(measurement: Measurement) -> Latency | None:
    return next((latency for latency in measurement.prediction if latency.batch == 1), None)


def _batched(measurement: Measurement) -> Latency | None:
    return next((latency for latency in measurement.prediction if latency.batch > 1), None)


def _device_mib(measurement: Measurement) -> float | None:
    return None if measurement.peak_device_bytes is None else measurement.peak_device_bytes / BYTES_PER_MIB


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_S


METRICS = (
    Metric("train_step_ms", "ms", "Training step", lambda t, m: epoch_ns(m) / m.steps_per_epoch / NS_PER_MS),
    Metric("steady_step_ms", "ms", "Step inside an epoch", lambda t, m: _ms(steady_step_ns(m))),
    Metric("epoch_overhead_ms", "ms", "Epoch overhead", lambda t, m: _ms(epoch_overhead_ns(m)), mean),
    Metric("epoch_s", "s", "Epoch of the published length", lambda t, m: epoch_ns(m) / NS_PER_S),
    Metric("train_samples_per_s", "/s", "Training throughput", lambda t, m: m.train_samples * NS_PER_S / epoch_ns(m)),
    Metric("total_s", "s", "All published epochs", lambda t, m: _total_s(m)),
    Metric("later_epoch_s", "s", "Median epoch after the first", lambda t, m: _seconds(_later_epoch_ns(m))),
    Metric("predicted_epoch_s", "s", "The same by a + b · steps", lambda t, m: _predicted_s(m)),
    Metric("prediction_ratio", "", "Prediction / truth", lambda t, m: _prediction(m)),
    Metric("train_loss", "", "Training loss of the last epoch", lambda t, m: _last_log(m, "loss"), mean),
    Metric("train_accuracy", "", "Training accuracy of the last epoch", lambda t, m: _last_log(m, "accuracy"), mean),
    Metric(
        "val_accuracy", "", "Validation accuracy of the last epoch", lambda t, m: _last_log(m, "val_accuracy"), mean
    ),
    Metric("predict_s", "s", "`predict` over the test set", lambda t, m: _predict_s(m)),
    Metric("startup_ms", "ms", "Start-up", lambda t, m: _phases_ms(t, STARTUP_PHASES)),
    Metric("build_ms", "ms", "Build and compile()", lambda t, m: _phases_ms(t, ("build",))),
    Metric("first_step_ms", "ms", "First step", lambda t, m: _ms(m.training.first_step_ns)),
    Metric("predict_p50_ms", "ms", "One sample, median", lambda t, m: _percentile_ms(_single(m), 5)),
    Metric("predict_p90_ms", "ms", "One sample, 90th percentile", lambda t, m: _percentile_ms(_single(m), 9)),
    Metric("predict_batch_p50_ms", "ms", "One batch, median", lambda t, m: _percentile_ms(_batched(m), 5)),
    Metric("peak_rss_mib", "MiB", "Peak memory of the process", lambda t, m: m.peak_rss_bytes / BYTES_PER_MIB),
    Metric("peak_device_mib", "MiB", "Peak memory on the device", lambda t, m: _device_mib(m)),
    Metric("final_loss", "", "Loss after these steps", lambda t, m: m.learning.loss, mean),
    Metric("final_accuracy", "", "Accuracy after these steps", lambda t, m: m.learning.accuracy, mean),
)
BY_NAME = {metric.name: metric for metric in METRICS}
