"""What is read off a trial: one line for each metric, with its unit and how its trials are summed up."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Estimate, estimate, mean
from kerasbench.analysis.generation import Growth, typical
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import FIRST_STEP
from kerasbench.protocol.stages import (
    CALLS,
    COMPILED_CALL,
    FEED,
    GROWS,
    ON_BATCH,
    PREDICTIONS,
    STAGES,
    TRAIN,
    stage_of,
    text_stage,
)
from kerasbench.results.run import Trial
from kerasbench.results.times import epoch_ns, epoch_overhead_ns, leaves_out, steady_epoch_ns, steady_step_ns, step_ns
from kerasbench.text import MIB

NS_PER_MS = 1e6
NS_PER_S = 1e9
RATE = "/s"  # the unit of metrics that are better the larger they are
MEDIAN = 0.5
MIN_CALLS_FOR_P99 = 1_000  # ten calls beyond it
STARTUP_PHASES = ("spawn", "worker", "import", "keras", "feeder", "device")  # older files have one for imports
Read = Callable[[Trial, Measurement], float | None]
SIZES = {"ms": NS_PER_MS, "s": NS_PER_S, "MiB": MIB}  # of units, in ns or bytes


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    title: str
    raw: Read  # in ns and bytes, else in the unit; None where a trial has no value
    sum_up: Callable[[list[float]], Estimate] = estimate
    difference: bool = False  # of two readings, which noise can make negative
    cold: bool = False  # of the start: of those trials alone beside which nothing else was started
    whole: bool = False  # a peak of those trials alone that left nothing out

    def read(self, trial: Trial, measurement: Measurement) -> float | None:
        predicts = bool(measurement.calls) or measurement.passes is not None
        is_whole = predicts or trial.agenda.sized or leaves_out(measurement, "predict_all")
        if (self.cold and not trial.started_alone) or (self.whole and not is_whole):
            return None
        value = self.raw(trial, measurement)
        return value if value is None or self.unit not in SIZES else value / SIZES[self.unit]

    def estimate(self, trials: Sequence[tuple[Trial, Measurement]]) -> Estimate | None:
        """Sum up a case's trials, or the means of three sessions or more; None where no trial has a value."""
        read = ((trial.session, self.read(trial, measurement)) for trial, measurement in trials)
        pairs = [(session, value) for session, value in read if value is not None]
        if not pairs:
            return None
        values, sessions = [value for _, value in pairs], dict.fromkeys(session for session, _ in pairs)
        if len(sessions) >= MIN_TRIALS_FOR_INTERVAL:
            values = [self._mean([value for day, value in pairs if day == session]).value for session in sessions]
        return replace(self._mean(values), trials=len(pairs))

    def _mean(self, values: list[float]) -> Estimate:
        return self.sum_up(values) if min(values) > 0 else mean(values)  # a duration of 0 has no logarithm


def _later_epoch_ns(measurement: Measurement) -> float | None:
    # The mean, as a slice's time is one: of epochs under a millisecond the median leaves out what some cost.
    published = measurement.published
    return statistics.fmean(published.epochs_ns[1:] or published.epochs_ns) if published else None


def _prediction(measurement: Measurement) -> float | None:
    truth_ns, predicted_ns = _later_epoch_ns(measurement), steady_epoch_ns(measurement)
    return None if truth_ns is None or predicted_ns is None else predicted_ns / truth_ns


def _last_log(measurement: Measurement, name: str) -> float | None:
    history = measurement.published.history if measurement.published else {}
    return history[name][-1] if name in history else None


def _predict_ns(measurement: Measurement) -> int | None:
    published = measurement.published
    return published.predict_ns[-1] if published and published.predict_ns else None  # the first pass compiles


def _phases_ns(trial: Trial, *names: str) -> int | None:
    durations = [phase.duration_ns for phase in trial.phases if phase.name in names]
    return sum(durations) if durations else None


def _feeder_bytes(trial: Trial) -> int | None:
    """Return by how much the import of what feeds raised the most memory that the process has held."""
    peaks = [(phase.name, phase.peak_rss_bytes or 0) for phase in trial.phases]
    grown = [after - before for (_, before), (name, after) in pairwise(peaks) if name == "feeder"]
    return grown[0] if grown else None


def _waiting(measurement: Measurement) -> float | None:
    """Return which share of a step waits for its batch, in %: beyond one whose batch lies ready."""
    step, alone = steady_step_ns(measurement), measurement.feed
    if step is None or alone is None or not alone.ready_ns:
        return None
    return 100 * max(0.0, 1 - statistics.median(alone.ready_ns) / step)


def _import_ns(trial: Trial) -> int | None:
    return _phases_ns(trial, "import") if _phases_ns(trial, "keras") else None  # where Keras was imported by itself


def _compile_ns(measurement: Measurement) -> float | None:
    """Return what the first `fit` of one batch took beyond the same call when it is warm."""
    training = measurement.training
    if training is None or training.first_step_ns is None or not training.again_ns:
        return None
    return training.first_step_ns - statistics.median(training.again_ns)


def _samples_per_s(measurement: Measurement) -> float | None:
    passes = measurement.passes
    return passes.samples * NS_PER_S / statistics.median(passes.passes_ns) if passes else None


def _trained_per_s(measurement: Measurement) -> float | None:
    if measurement.training is None:
        return None
    return measurement.train_samples * NS_PER_S / (measurement.steps_per_epoch * step_ns(measurement))


def _peak_after(name: str, title: str, phases: tuple[str, ...], on_device: bool) -> Metric:
    def read(trial: Trial, measurement: Measurement) -> float | None:
        ended = [phase for phase in trial.phases if phase.name in phases]
        peaks_bytes = [phase.peak_device_bytes if on_device else phase.peak_rss_bytes for phase in ended]
        return (peaks_bytes[-1] or None) if peaks_bytes else None

    of, where = ("Device memory", "device") if on_device else ("Peak memory", "rss")
    return Metric(f"{where}_{name}_mib", "MiB", f"{of} after {title}", read)


# The most memory that a process has held, or used of its device, up to the last of these phases.
AFTER: dict[str, tuple[str, tuple[str, ...]]] = {
    "start": ("start-up", ("device",)),
    "build": ("building", ("build",)),
    "train": ("training", ("published", "train", "epoch")),
}


# Phases whose memory is told, with what a page calls them; all but those of NAMES_OF_PHASES are stages.
MEMORY_PHASES = {
    "import": "import",
    "build": "build",
    "first_step": "the first step",
    TRAIN: "training",
    **{stage: STAGES[stage].left_out for stage in (*PREDICTIONS, *CALLS)},
}
NAMES_OF_PHASES = {"import": ("import", "keras", "device"), "build": ("load", "build"), "first_step": (FIRST_STEP,)}


# Of each, what is read: its metric's names and title begin so.
MEMORY_KINDS = {
    ("rss_held", "rss_bytes"): "Memory held after",
    ("rss_most", "most_rss_bytes"): "Most memory in",
    ("device_held", "device_bytes"): "Device memory held after",
    ("device_most", "most_device_bytes"): "Most device memory in",
}


def _memory(phase: str, kind: str, field: str, title: str) -> Metric:
    def read(trial: Trial, measurement: Measurement) -> float | None:
        names = NAMES_OF_PHASES.get(phase, ())
        passed = [part for part in trial.phases if part.stage == phase or part.name in names]
        bytes_ = [figure for part in passed if (figure := getattr(part, field))]
        return (max(bytes_) if "most" in kind else bytes_[-1]) if bytes_ else None

    return Metric(f"{kind}_{phase}_mib", "MiB", f"{title} {MEMORY_PHASES[phase]}", read)


# In the order of the phases, kind by kind.
OF_MEMORY = [
    _memory(phase, kind, field, title) for (kind, field), title in MEMORY_KINDS.items() for phase in MEMORY_PHASES
]
MEMORY_BY_PHASE = [metric.name for metric in OF_MEMORY]


# What is called, by the beginning of its metrics' names: what a table calls it, its way, and whether it takes a batch.
NAMED = {"call": "model(x)", "compiled_call": "model(x) compiled", "predict": ON_BATCH, "predict_call": "predict"}
CALLED = {
    f"{name}{'_batch' if batched else ''}": (ON_BATCH if name == "predict" else name, batched)
    for name in NAMED
    for batched in (False, True)
}


def _first_call_ns(measurement: Measurement) -> int | None:
    calls = measurement.calls.get(stage_of(COMPILED_CALL, batched=False))
    return calls.first_ns if calls else None


def _latency(called: str, share: float, least: int = 2) -> Metric:
    """Return the metric of a percentile of calls, of trials with at least so many; it lies between neighbours."""
    way, batched = CALLED[called]
    stage = stage_of(way, batched)
    title = f"{NAMED[called.removesuffix('_batch')]}, one {'batch' if batched else 'sample'}"
    if share != MEDIAN:
        title += f", {share * 100:.0f}th percentile"

    def read(trial: Trial, measurement: Measurement) -> float | None:
        calls = measurement.calls.get(stage)
        if calls is None or len(calls.calls_ns) < least:
            return None
        place = share * (len(calls.calls_ns) - 1)
        below, above = calls.ordered_ns[math.floor(place)], calls.ordered_ns[math.ceil(place)]
        return below + (above - below) * (place % 1)

    return Metric(f"{called}_p{share * 100:.0f}_ms", "ms", title, read)


WRITES = {"call": NAMED["call"], "compiled_call": NAMED["compiled_call"], "own": "generate"}  # what a table calls GROWS
PER_TOKEN = tuple(f"generate_{way}_{figure}_ms" for way in GROWS for figure in ("ttft", "tpot"))
A_CALL = (*(f"{called}_p50_ms" for called in CALLED), *PER_TOKEN)  # metrics of calls, of which a token is one


def _growing(way: str) -> Iterator[Metric]:
    def metric(name: str, unit: str, title: str, read: Callable[[Growth, int], float]) -> Metric:
        def of_trial(trial: Trial, measurement: Measurement) -> float | None:
            texts = measurement.texts.get(text_stage(way))
            line = typical(texts) if texts else None
            return read(line, texts.batch) if texts and line else None

        return Metric(f"generate_{way}_{name}", unit, f"{WRITES[way]}, {title}", of_trial)

    yield metric("ttft_ms", "ms", "TTFT", lambda line, batch: line.ttft_ns)
    yield metric("tpot_ms", "ms", "TPOT", lambda line, batch: line.tpot_ns)
    yield metric("tokens_per_s", RATE, "tokens", lambda line, batch: batch * NS_PER_S / line.tpot_ns)
    residual = metric("residual", "%", "residual", lambda line, batch: 100 * line.residual)
    yield replace(residual, sum_up=mean)


METRICS = (
    Metric("train_step_ms", "ms", "Training step", lambda t, m: None if epoch_ns(m) is None else step_ns(m)),
    Metric("steady_step_ms", "ms", "Step inside an epoch", lambda t, m: steady_step_ns(m)),
    Metric(
        "epoch_overhead_ms",
        "ms",
        "Epoch overhead",
        # By its record: where the short epochs of an earlier block were lent to it, the trial tells nothing of them.
        lambda t, m: epoch_overhead_ns(t.measurement) if t.measurement else None,
        mean,
        difference=True,
    ),
    Metric("epoch_s", "s", "Epoch of the workload's length", lambda t, m: epoch_ns(m)),
    Metric("train_samples_per_s", RATE, "Training throughput", lambda t, m: _trained_per_s(m)),
    Metric("total_s", "s", "All epochs of the workload", lambda t, m: m.published.total_ns if m.published else None),
    Metric("later_epoch_s", "s", "Mean epoch after the first", lambda t, m: _later_epoch_ns(m)),
    Metric(
        "predicted_epoch_s", "s", "The same by a + b · steps", lambda t, m: steady_epoch_ns(m) if m.published else None
    ),
    Metric("prediction_ratio", "", "Prediction / truth", lambda t, m: _prediction(m)),
    Metric("train_loss", "", "Training loss of the last epoch", lambda t, m: _last_log(m, "loss"), mean),
    Metric("train_accuracy", "", "Training accuracy of the last epoch", lambda t, m: _last_log(m, "accuracy"), mean),
    Metric(
        "val_accuracy", "", "Validation accuracy of the last epoch", lambda t, m: _last_log(m, "val_accuracy"), mean
    ),
    Metric("predict_s", "s", "predict over the test set", lambda t, m: _predict_ns(m)),
    Metric("startup_ms", "ms", "Start-up", lambda t, m: _phases_ns(t, *STARTUP_PHASES), cold=True),
    Metric("backend_import_ms", "ms", "Import of the backend", lambda t, m: _import_ns(t), cold=True),
    Metric("feed_batch_ms", "ms", "A batch from the feed alone", lambda t, m: m.median_ns.get(FEED)),
    Metric("feed_waiting", "%", "Of a step, waiting for its batch", lambda t, m: _waiting(m), mean),
    Metric("feed_import_ms", "ms", "Import of what feeds", lambda t, m: _phases_ns(t, "feeder"), cold=True),
    Metric("feed_import_mib", "MiB", "Memory that this import takes", lambda t, m: _feeder_bytes(t), mean),
    Metric(
        "build_ms",
        "ms",
        "Build and compile()",
        lambda t, m: None if m.exported else _phases_ns(t, "load", "build"),
        cold=True,
    ),
    Metric(
        "first_step_ms", "ms", "First step", lambda t, m: m.training.first_step_ns if m.training else None, cold=True
    ),
    Metric("compile_ms", "ms", "Of which tracing and compiling", lambda t, m: _compile_ns(m), mean, True, cold=True),
    *(_latency(called, share) for called in CALLED for share in (MEDIAN, 0.9)),
    _latency("predict", 0.99, MIN_CALLS_FOR_P99),
    Metric("exported_mib", "MiB", "Exported file", lambda t, m: m.exported.bytes if m.exported else None),
    Metric("export_s", "s", "Export", lambda t, m: m.exported.seconds * NS_PER_S if m.exported else None),
    Metric("load_ms", "ms", "Load the file", lambda t, m: _phases_ns(t, "load") if m.exported else None),
    Metric("loaded_first_ms", "ms", "First call of it", lambda t, m: m.exported.first_ns if m.exported else None),
    Metric("compiled_call_first_ms", "ms", "First compiled call", lambda t, m: _first_call_ns(m)),
    *(metric for way in GROWS for metric in _growing(way)),
    Metric("predict_samples_per_s", RATE, "predict, throughput", lambda t, m: _samples_per_s(m)),
    *(_peak_after(name, *after, on_device) for on_device in (False, True) for name, after in AFTER.items()),
    *OF_MEMORY,
    Metric("peak_rss_mib", "MiB", "Peak memory of the process", lambda t, m: m.peak_rss_bytes, whole=True),
    # A plug-in that counts nothing says 0.
    Metric("peak_device_mib", "MiB", "Peak memory on the device", lambda t, m: m.peak_device_bytes or None, whole=True),
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
