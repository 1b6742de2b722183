"""What is read off a trial: one line for each metric, with its unit and how its trials are summed up."""

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Estimate, estimate, mean, percentile
from kerasbench.analysis.generation import Growth, typical
from kerasbench.protocol.measurement import (
    Generation,
    Latency,
    Measurement,
)
from kerasbench.protocol.stages import GROWS
from kerasbench.results.run import Trial
from kerasbench.results.times import epoch_ns, epoch_overhead_ns, leaves_out, steady_epoch_ns, steady_step_ns, step_ns
from kerasbench.text import MIB

NS_PER_MS = 1e6
NS_PER_S = 1e9
RATE = "/s"  # the unit of metrics that are better the larger they are
ON_BATCH, MEDIAN = "predict_on_batch", 0.5
MIN_CALLS_FOR_P99 = 1_000  # ten calls beyond it
IMPORT, KERAS = "import", "keras"  # of the backend, of Keras; older files have both in the first
TRAINING = ("published", "train", "epoch")  # phases
STARTUP_PHASES = ("spawn", "worker", IMPORT, KERAS, "device")
Read = Callable[[Trial, Measurement], float | None]


@dataclass(frozen=True)
class Metric:
    """What is read off a trial."""

    name: str
    unit: str
    title: str
    read: Read  # a trial's value in the unit, None where it has none
    sum_up: Callable[[list[float]], Estimate] = estimate
    difference: bool = False  # of two readings, which noise can make negative

    def estimate(self, trials: Sequence[tuple[Trial, Measurement]]) -> Estimate | None:
        """Sum up a case's trials; None where none has a value. One trial has no interval."""
        found = self._found(trials)
        if not found:
            return None
        estimate = self._mean(self._by_sitting(found))
        return estimate if estimate.trials == len(found) else dataclasses.replace(estimate, trials=len(found))

    def counted(self, trials: Sequence[tuple[Trial, Measurement]]) -> list[float]:
        """Return the values of a case: its trials', or one for each sitting where a run had three or more."""
        return self._by_sitting(self._found(trials))

    def _found(self, trials: Sequence[tuple[Trial, Measurement]]) -> list[tuple[int, float]]:
        read = ((trial.sitting, self.read(trial, measurement)) for trial, measurement in trials)
        return [(sitting, value) for sitting, value in read if value is not None]

    def _by_sitting(self, found: Sequence[tuple[int, float]]) -> list[float]:
        sittings = dict.fromkeys(sitting for sitting, _ in found)
        if len(sittings) < MIN_TRIALS_FOR_INTERVAL:
            return [value for _, value in found]
        return [self._mean([value for own, value in found if own == sitting]).value for sitting in sittings]

    def _mean(self, values: list[float]) -> Estimate:
        return self.sum_up(values) if min(values) > 0 else mean(values)  # a duration of 0 has no logarithm


def _later_epoch_ns(measurement: Measurement) -> float | None:
    """Return the mean of the epochs that were run in full, without the first, which compiles.

    The mean, because a slice's time is a mean as well: of epochs under a millisecond the median leaves out what some
    cost.
    """
    published = measurement.published
    return statistics.fmean(published.epochs_ns[1:] or published.epochs_ns) if published else None


def _prediction(measurement: Measurement) -> float | None:
    truth_ns, predicted_ns = _later_epoch_ns(measurement), steady_epoch_ns(measurement)
    return None if truth_ns is None or predicted_ns is None else predicted_ns / truth_ns


def _predicted_s(measurement: Measurement) -> float | None:
    return _seconds(steady_epoch_ns(measurement)) if measurement.published else None


def _last_log(measurement: Measurement, name: str) -> float | None:
    """Return what the last epoch logged, as Keras' progress bar would show it; None where it did not."""
    history = measurement.published.history if measurement.published else {}
    return history[name][-1] if name in history else None


def _predict_s(measurement: Measurement) -> float | None:
    """Return the time of the second pass of `predict` over the test set, in s; the first one compiles."""
    published = measurement.published
    return published.predict_ns[-1] / NS_PER_S if published and published.predict_ns else None


def _overhead_ms(trial: Trial) -> float | None:
    """Return what the trial's own short epochs say, and nothing where those of an earlier block were taken."""
    return _ms(epoch_overhead_ns(trial.measurement)) if trial.measurement else None


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def _phases_ms(trial: Trial, names: tuple[str, ...]) -> float | None:
    durations = [phase.duration_ns for phase in trial.phases if phase.name in names]
    return _ms(sum(durations)) if durations else None


def _import_ms(trial: Trial) -> float | None:
    """Return what importing the backend took, where Keras was imported by itself."""
    return _phases_ms(trial, (IMPORT,)) if any(phase.name == KERAS for phase in trial.phases) else None


def _peak_after(title: str, name: str, phases: tuple[str, ...], on_device: bool = False) -> Metric:
    """Return the metric of the most memory that a process has held, or used of its device, up to the last of these."""

    def read(trial: Trial, measurement: Measurement) -> float | None:
        ended = [phase for phase in trial.phases if phase.name in phases]
        peaks_bytes = [phase.peak_device_bytes if on_device else phase.peak_rss_bytes for phase in ended]
        return _mib(peaks_bytes[-1]) if peaks_bytes else None

    return Metric(name, "MiB", title, read)


AFTER = {"start": ("start-up", ("device",)), "build": ("building", ("build",)), "train": ("training", TRAINING)}


def _first_step_ns(measurement: Measurement) -> int | None:
    return measurement.training.first_step_ns if measurement.training else None


def compile_ms(measurement: Measurement) -> float | None:
    """Return what the first `fit` of one batch took beyond the same call when it is warm."""
    first_ns = _first_step_ns(measurement)
    again_ns = measurement.training.again_ns if measurement.training else []
    return None if first_ns is None or not again_ns else _ms(first_ns - statistics.median(again_ns))


def _samples_per_s(measurement: Measurement) -> float | None:
    """Return the throughput of `predict` by the median of its passes."""
    throughput = measurement.throughput
    return throughput.samples * NS_PER_S / statistics.median(throughput.passes_ns) if throughput else None


def calls_of(way: str, batched: bool) -> Callable[[Measurement], Latency | None]:
    """Return what finds a trial's calls of one way to predict, with one sample or with a batch of several."""
    return lambda measurement: next(
        (one for one in measurement.prediction if one.way == way and (one.batch > 1) == batched), None
    )


# What is called, by the beginning of its metrics' names, and what a table calls it.
NAMED = {"call": "model(x)", "compiled_call": "model(x) compiled", "predict": ON_BATCH, "predict_call": "predict"}
CALLED = {
    f"{name}{'_batch' if batched else ''}": calls_of(ON_BATCH if name == "predict" else name, batched)
    for name in NAMED
    for batched in (False, True)
}


def _latency(called: str, share: float, least: int = 2) -> Metric:
    """Return the metric of a percentile of calls, for trials with at least that many."""
    of, name = CALLED[called], called.removesuffix("_batch")
    title = f"{NAMED[name]}, one {'sample' if called == name else 'batch'}"
    if share != MEDIAN:
        title += f", {share * 100:.0f}th percentile"

    def read(trial: Trial, measurement: Measurement) -> float | None:
        latency = of(measurement)
        if latency is None or len(latency.calls_ns) < least:
            return None
        return percentile(latency.ordered_ns, share) / NS_PER_MS

    return Metric(f"{called}_p{share * 100:.0f}_ms", "ms", title, read)


def _first_call_ms(measurement: Measurement) -> float | None:
    latency = CALLED["compiled_call"](measurement)
    return _ms(latency.first_ns) if latency else None


def generation_of(way: str) -> Callable[[Measurement], Generation | None]:
    """Return what finds how a trial's texts grew by one of GROWS."""
    return lambda measurement: next((one for one in measurement.generations if one.way == way), None)


WRITES = {"call": NAMED["call"], "compiled_call": NAMED["compiled_call"], "own": "generate"}  # what a table calls GROWS


PER_TOKEN = tuple(f"generate_{way}_{figure}_ms" for way in GROWS for figure in ("ttft", "tpot"))


def _growing(way: str) -> Iterator[Metric]:
    """Yield the metrics of one way in which texts grow."""
    of = generation_of(way)

    def metric(name: str, unit: str, title: str, read: Callable[[Growth, int], float]) -> Metric:
        def of_trial(trial: Trial, measurement: Measurement) -> float | None:
            found = of(measurement)
            line = typical(found) if found else None
            return read(line, found.batch) if found and line else None

        return Metric(f"generate_{way}_{name}", unit, f"{WRITES[way]}, {title}", of_trial)

    yield metric("ttft_ms", "ms", "TTFT", lambda line, batch: line.ttft_ns / NS_PER_MS)
    yield metric("tpot_ms", "ms", "TPOT", lambda line, batch: line.tpot_ns / NS_PER_MS)
    yield metric("tokens_per_s", RATE, "tokens", lambda line, batch: batch * NS_PER_S / line.tpot_ns)
    residual = metric("residual", "%", "residual", lambda line, batch: 100 * line.residual)
    yield dataclasses.replace(residual, sum_up=mean)


def _mib(peak_bytes: int | None) -> float | None:
    return peak_bytes / MIB if peak_bytes else None  # a plug-in that counts nothing says 0


def _trained_per_s(measurement: Measurement) -> float | None:
    if measurement.training is None:
        return None
    return measurement.train_samples * NS_PER_S / (measurement.steps_per_epoch * step_ns(measurement))


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_S


def _cold(read: Read) -> Read:
    """Return what reads a figure of the start of those trials alone beside which nothing else was started."""
    return lambda trial, measurement: read(trial, measurement) if trial.started_alone else None


def _whole(read: Read) -> Read:
    """Return what reads a peak of those trials alone that left nothing out."""
    return lambda trial, measurement: read(trial, measurement) if _is_whole(trial, measurement) else None


def _is_whole(trial: Trial, measurement: Measurement) -> bool:
    predicts = bool(measurement.prediction) or measurement.throughput is not None
    return predicts or not trial.measures_epochs or leaves_out(measurement, "predict_all")


METRICS = (
    Metric("train_step_ms", "ms", "Training step", lambda t, m: None if epoch_ns(m) is None else _ms(step_ns(m))),
    Metric("steady_step_ms", "ms", "Step inside an epoch", lambda t, m: _ms(steady_step_ns(m))),
    Metric("epoch_overhead_ms", "ms", "Epoch overhead", lambda t, m: _overhead_ms(t), mean, difference=True),
    Metric("epoch_s", "s", "Epoch of the published length", lambda t, m: _seconds(epoch_ns(m))),
    Metric("train_samples_per_s", RATE, "Training throughput", lambda t, m: _trained_per_s(m)),
    Metric(
        "total_s", "s", "All published epochs", lambda t, m: _seconds(m.published.total_ns) if m.published else None
    ),
    Metric("later_epoch_s", "s", "Mean epoch after the first", lambda t, m: _seconds(_later_epoch_ns(m))),
    Metric("predicted_epoch_s", "s", "The same by a + b · steps", lambda t, m: _predicted_s(m)),
    Metric("prediction_ratio", "", "Prediction / truth", lambda t, m: _prediction(m)),
    Metric("train_loss", "", "Training loss of the last epoch", lambda t, m: _last_log(m, "loss"), mean),
    Metric("train_accuracy", "", "Training accuracy of the last epoch", lambda t, m: _last_log(m, "accuracy"), mean),
    Metric(
        "val_accuracy", "", "Validation accuracy of the last epoch", lambda t, m: _last_log(m, "val_accuracy"), mean
    ),
    Metric("predict_s", "s", "predict over the test set", lambda t, m: _predict_s(m)),
    Metric("startup_ms", "ms", "Start-up", _cold(lambda t, m: _phases_ms(t, STARTUP_PHASES))),
    Metric("backend_import_ms", "ms", "Import of the backend", _cold(lambda t, m: _import_ms(t))),
    Metric("build_ms", "ms", "Build and compile()", _cold(lambda t, m: _phases_ms(t, ("load", "build")))),
    Metric("first_step_ms", "ms", "First step", _cold(lambda t, m: _ms(_first_step_ns(m)))),
    Metric(
        "compile_ms", "ms", "Of which tracing and compiling", _cold(lambda t, m: compile_ms(m)), mean, difference=True
    ),
    *(_latency(called, share) for called in CALLED for share in (MEDIAN, 0.9)),
    _latency("predict", 0.99, MIN_CALLS_FOR_P99),
    Metric("compiled_call_first_ms", "ms", "First compiled call", lambda t, m: _first_call_ms(m)),
    *(metric for way in GROWS for metric in _growing(way)),
    Metric("predict_samples_per_s", RATE, "predict, throughput", lambda t, m: _samples_per_s(m)),
    *(_peak_after(f"Peak memory after {what}", f"rss_{name}_mib", phases) for name, (what, phases) in AFTER.items()),
    *(
        _peak_after(f"Device memory after {what}", f"device_{name}_mib", phases, on_device=True)
        for name, (what, phases) in AFTER.items()
    ),
    Metric("peak_rss_mib", "MiB", "Peak memory of the process", _whole(lambda t, m: m.peak_rss_bytes / MIB)),
    Metric("peak_device_mib", "MiB", "Peak memory on the device", _whole(lambda t, m: _mib(m.peak_device_bytes))),
    Metric("final_loss", "", "Loss after these steps", lambda t, m: m.learning.loss if m.learning else None, mean),
    Metric(
        "final_accuracy",
        "",
        "Accuracy after these steps",
        lambda t, m: m.learning.accuracy if m.learning else None,
        mean,
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}
