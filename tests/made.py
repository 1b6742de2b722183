"""Made-up plans, measurements and records, with numbers that a test chooses."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kerasbench.analysis.estimates import Amount, Estimate, LogEstimate, t_quantile
from kerasbench.host import Machine
from kerasbench.host.noise import MachineState, Signal, Surroundings
from kerasbench.host.nvidia import Sample
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.catalog import Entry, Selected
from kerasbench.protocol.columns import DEFAULT, Column, Device, Environment, Options, parse_label
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.measurement import (
    Batch,
    Calls,
    Learning,
    Measurement,
    Movement,
    Parity,
    Passes,
    Proof,
    Resolved,
    Samples,
    ShortEpoch,
    Slice,
    Texts,
    Training,
)
from kerasbench.protocol.messages import Code, Failure, Phase
from kerasbench.protocol.requests import Sizes
from kerasbench.protocol.stages import ALL, BATCH, EPOCH, ON_BATCH, ONE, PARTS_OF_STEP, TRAIN, stage_of
from kerasbench.results.run import Effort, Run, RunConfig, ScenarioFacts, Trial
from kerasbench.results.store import Store

T = TypeVar("T")
CPU = Device("cpu")
JAX, TENSORFLOW, TORCH = (Column(backend, "cpu") for backend in ("jax", "tensorflow", "torch"))
MS = 1_000_000
MACHINE = Machine("Chip 9", 2, 8 << 30, "Linux 6.1", "x86_64")
FAILURE = Failure(Code.CRASH, "died from SIGSEGV in phase 'train'", "look at the last lines", "train", "Fatal error")
SCATTER = (1.0, 1.001, 0.999)  # of three rounds


def workload(name: str = "default", steps: int = 100) -> WorkloadDescription:
    return WorkloadDescription(name, 32 * steps, 32, steps, 3, 0, 0, "MNIST", True)


def entry(name: str = "dense", workloads: tuple[str, ...] = ("default",)) -> Entry:
    description = Description(name, f"{name} in one line.", "", "", 10, True, list(map(workload, workloads)))
    return Entry(Path(f"{name}.py"), f"hash of {name}", description)


def selected(name: str = "dense", workload_name: str = "default") -> Selected:
    its_entry = entry(name, (workload_name,))
    return Selected(its_entry, its_entry.description.workloads[0])


def case(name: str = "dense", backend: str = "torch", device: Device = CPU, options: Options = DEFAULT) -> Case:
    return Case(selected(name), backend, device, options)


def state(**different: Any) -> MachineState:
    """A quiet machine."""
    return changed(MachineState(0.0, None, None, None, [], None, None, None), **different)


def surroundings(
    before: MachineState | None = None,
    after: MachineState | None = None,
    gpu: tuple[Sample, ...] | None = None,
    neighbours: tuple[int, ...] = (),
) -> Surroundings:
    """A trial on a machine that did nothing else."""
    return Surroundings(0.5, before or state(), after or state(), None if gpu is None else list(gpu), list(neighbours))


def plan(*cases: Case, effort: Effort | None = None, absent: tuple[tuple[Case, Failure], ...] = ()) -> Plan:
    effort = effort or Effort()
    measured = [dataclasses.replace(case, plan=effort.plan) for case in cases]
    return Plan(RunConfig(effort=effort), MACHINE, measured, list(absent))


SIZES = Sizes(
    2 * MS, parity_steps=6, learn_steps=65, silenced_steps=6, evaluated_batches=1000, pass_batches=1000, warmup_calls=8
)


def measurement(
    step_ms: float = 2.0,
    overhead_ms: float = 10.0,
    steps: int = 100,
    losses: tuple[float, ...] = (2.3, 2.2, 2.1, 2.0, 1.9, 1.8),
) -> Measurement:
    """A trial whose steps take exactly ``step_ms`` and whose epochs cost ``overhead_ms`` beyond them."""
    slice_ = Slice(50, int(50 * step_ms * MS))
    versions = {"python": "3.11.7", "keras": "3.15.1"}
    return Measurement(
        samples={
            TRAIN: Samples.of([slice_] * 10),
            EPOCH: Samples.of([Slice(1, int((overhead_ms + 2 * step_ms) * MS))] * 5),
            ONE: Samples.of([Slice(200, 200 * MS)]),
            BATCH: Samples.of([Slice(200, 400 * MS)]),
            ALL: Samples.of([Slice(1, ns * MS) for ns in (100, 50, 50)]),
        },
        training=Training(
            unit="step",
            first_step_ns=300 * MS,
            steps_per_slice=50,
            warmup=Samples.of([Slice(25, int(25 * step_ms * MS)), slice_, slice_]),
            again_ns=[20 * MS] * 5,
        ),
        short_epoch=ShortEpoch(2),
        calls={ONE: Calls(1, [MS] * 200), BATCH: Calls(32, [2 * MS] * 200)},
        passes=Passes(1_000, 32, [100 * MS, 50 * MS, 50 * MS]),
        published=None,
        batch=Batch("float32[32, 4]", "int32[32]"),
        learning=Learning(65, 2.2, 1.4, 1.5, 0.5),
        parity=Parity(list(losses), []),
        proof=Proof(["cpu:0"], ["cpu:0"], ["cpu:0"], ["cpu:0"]),
        resolved=Resolved(False, "float32", ["float32"], ["float32"], "ieee", "channels_last", 2, versions),
        parameters=10,
        train_samples=32 * steps,
        steps_per_epoch=steps,
        full_steps_per_epoch=steps,
        peak_rss_bytes=512 << 20,
        peak_device_bytes=None,
    )


def movement(
    first: Sequence[float] = (1e-3, 2e-3, 1e-3, 1e-3),
    later: Sequence[float] = (1e-2, 2e-2, 1e-2, 1e-2),
    sizes: Sequence[int] = (1_000, 10, 500, 5),
    steps: int = 1_000,
    updates: int | None = 1_000,
) -> Movement:
    """Of two layers, each with a matrix and a vector."""
    weights = ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    return Movement(weights, list(sizes), list(first), list(later), steps, updates)


def with_parts(
    arrays_ms: float = 2.0, ready_ms: float = 1.5, bare_ms: float = 1.0, steady_ms: float = 2.0, peak: float = 1e11
) -> Measurement:
    """A trial that was taken apart: a step fed from arrays, with what lies ready, and by itself takes so long."""
    parts = [Samples.of([Slice(50, int(50 * ms * MS))] * 3) for ms in (arrays_ms, ready_ms, bare_ms)]
    samples = dict(zip(PARTS_OF_STEP, parts, strict=True))
    return changed(with_samples(measurement(steady_ms), **samples), peak_flops=peak)


def with_samples(whole: Measurement, **samples: Samples) -> Measurement:
    """The same with the slices of these stages."""
    return dataclasses.replace(whole, samples=whole.samples | samples)


def without(whole: Measurement, *stages: str) -> Measurement:
    """The same, had it not measured these stages."""
    return dataclasses.replace(
        whole,
        samples={stage: samples for stage, samples in whole.samples.items() if stage not in stages},
        calls={stage: calls for stage, calls in whole.calls.items() if stage not in stages},
        texts={stage: texts for stage, texts in whole.texts.items() if stage not in stages},
        short_epoch=None if EPOCH in stages else whole.short_epoch,
        passes=None if ALL in stages else whole.passes,
        training=None if TRAIN in stages else whole.training,
    )


class Predicted(NamedTuple):
    stage: str
    calls: Calls
    slices: Samples


def predicted(
    batch: int, calls_ns: list[int], slices: Samples | None = None, way: str = ON_BATCH, first_ns: int | None = None
) -> Predicted:
    """What a stage of predictions measured."""
    slices = slices or Samples.of([Slice(len(calls_ns), sum(calls_ns))])
    return Predicted(stage_of(way, batch > 1), Calls(batch, calls_ns, first_ns), slices)


def with_predictions(whole: Measurement, *predictions: Predicted) -> Measurement:
    """The same, of whose predictions of single batches these were measured."""
    others = {stage: samples for stage, samples in whole.samples.items() if stage not in whole.calls}
    return dataclasses.replace(
        whole,
        samples=others | {stage: slices for stage, _, slices in predictions},
        calls={stage: calls for stage, calls, _ in predictions},
    )


def trained(measurement: Measurement) -> Training:
    return known(measurement.training)


def taught(measurement: Measurement) -> Learning:
    return known(measurement.learning)


def predicting(batch_ms: Sequence[float] = (2.0, 2.0), batch: int = 32) -> Measurement:
    """A trial of a model that is not trained: a prediction of its batch takes so long in each cycle."""
    slices = Samples.of(Slice(10, int(10 * ms * MS), cycle, 0, 0) for cycle, ms in enumerate(batch_ms))
    calls = [int(ms * MS) for ms in batch_ms for _ in range(10)]
    single = predicted(1, [MS] * 20, Samples.of(Slice(10, 10 * MS, cycle, 0, 0) for cycle in range(2)))
    predictions = [single, predicted(batch, calls, slices)] if batch > 1 else [single]
    return dataclasses.replace(
        without(with_predictions(measurement(), *predictions), TRAIN, EPOCH),
        learning=None,
        batch=Batch("float32[32, 4]", ""),
        parity=Parity([], [], [[1.0, 0.5]]),
    )


def untrained(record: Run) -> Run:
    return described(record, predicts_only=True)


def growing(
    per_token_ms: Sequence[float], prompt_ms: float = 0, counts: Sequence[int] = (1, 8, 16, 32)
) -> tuple[Texts, Samples]:
    """Texts that grow, four at once: in each cycle a token takes so long, after a prompt that takes as long in all."""
    times_ns = [[int((prompt_ms + count * ms) * MS) for count in counts] for ms in per_token_ms]
    slices = Samples.of(Slice(counts[-1], times[-1], cycle, 0, 0) for cycle, times in enumerate(times_ns))
    return Texts(4, list(counts), times_ns, [[7] * counts[-1]] * 2), slices


def partial(whole: Measurement) -> Measurement:
    steps_alone = without(whole, EPOCH, ONE, BATCH, ALL)
    return changed(steps_alone, training={"again_ns": []}, learning=None, parity=None, peak_rss_bytes=1 << 20)


def epochs_measurement(epoch_ms: float) -> Measurement:
    """A trial of a full-batch workload, whose slices count whole epochs of one step."""
    slice_ = Slice(10, int(10 * epoch_ms * MS))
    training = Training("epoch", 300 * MS, 10, Samples.of([slice_]))
    whole = with_samples(without(measurement(steps=1), EPOCH), train=Samples.of([slice_] * 10))
    return dataclasses.replace(whole, training=training)


def trial(
    round_index: int = 1,
    name: str = "dense",
    backend: str = "torch",
    found: Measurement | None = None,
    failure: Failure | None = None,
    noise: tuple[Signal, ...] = (),
    options: Options = DEFAULT,
    device: Device = CPU,
    **different: Any,
) -> Trial:
    told: dict[str, Any] = {
        "wall_ns": 9 * 10**9,
        "phases": [Phase("spawn", 0, MS), Phase("import", MS, 4 * MS)],
        "options": options,
    }
    told |= {"measurement": None if failure else found or measurement(), "failure": failure, "noise": list(noise)}
    return Trial(round_index, name, "default", backend, device, **told | different)


def record(*trials: Trial, rounds: int = 1) -> Run:
    names = dict.fromkeys(trial.scenario for trial in trials)
    scenarios = [ScenarioFacts(f"hash of {name}", entry(name).description) for name in names]
    run = Run(RunConfig(), MACHINE, "2026-01-02T03:04:05Z", 0.03, scenarios, trials=list(trials))
    return dataclasses.replace(run, rounds_completed=rounds, stopped_because="the test is over")


def estimate(value: float, high: float | None = None, trials: int = 1) -> LogEstimate:
    """An estimate whose interval ends there, and as many times below the value."""
    error = None if high is None else math.log(high / value) / t_quantile(trials - 1)
    return LogEstimate(math.log(value), error, trials - 1, trials)


def amount(value: float, reach: float | None = None, trials: int = 1) -> Amount:
    return Amount(value, None if reach is None else reach / t_quantile(trials - 1), trials - 1, trials)


def sliced(
    steps_ms: Sequence[float], epochs_ms: Sequence[float] = (), steps: int = 100, position: int = 0
) -> Measurement:
    """A trial that was measured in turn: a slice of 50 steps, and of one short epoch of two steps, in each cycle."""
    epochs_ms = epochs_ms or [10 + 2 * ms for ms in steps_ms]
    slices = Samples.of(Slice(50, int(50 * ms * MS), cycle, position, 0) for cycle, ms in enumerate(steps_ms))
    epochs = Samples.of(Slice(1, int(ms * MS), cycle, position, 0) for cycle, ms in enumerate(epochs_ms))
    return with_samples(measurement(steps=steps), train=slices, epoch=epochs)


def in_block(number: int, found: Measurement, alone: bool = True, **different: Any) -> Trial:
    """A trial of that block, which is also its round unless another is given."""
    return trial(different.pop("round_index", number), found=found, block=number, started_alone=alone, **different)


def by_environment(values: Mapping[str, T]) -> dict[Environment, T]:
    return {Environment.parse(text): value for text, value in values.items()}


def in_rounds(*steps_ms: float, overhead_ms: float = 0.0, **different: Any) -> list[Trial]:
    """A trial in each round, whose steps take so long."""
    return [trial(index, found=measurement(ms, overhead_ms), **different) for index, ms in enumerate(steps_ms, start=1)]


def changed(whole: T, **different: Any) -> T:
    """The same with other values; a dict stands for other values of a part: ``samples={TRAIN: slices}``."""
    for name, value in different.items():
        part = getattr(whole, name)
        if isinstance(value, dict) and dataclasses.is_dataclass(part):
            different[name] = changed(part, **value)
        elif name == "samples" and isinstance(part, dict):
            different[name] = part | value
        elif isinstance(value, dict) and isinstance(part, Options):
            different[name] = part.but(**value)
    replace: Callable[..., T] = dataclasses.replace
    return replace(whole, **different)


def known(value: T | None) -> T:
    assert value is not None
    return value


def estimated(value: Estimate | None) -> Estimate:
    """The estimate, where it may be missing; ``known`` has one type, and not two."""
    assert value is not None
    return value


def stored(folder: Path, run: Run | None = None) -> Store:
    run = run or record(trial())
    store = Store.create(folder, run.started)
    store.finish(run)
    return store


def disturbed(quiet: Trial) -> Trial:
    """The same trial, had others used the machine in all its slices."""
    samples = known(quiet.measurement).samples
    marked = {
        stage: dataclasses.replace(samples[stage], disturbed=[True] * len(samples[stage])) for stage in (TRAIN, EPOCH)
    }
    return dataclasses.replace(quiet, measurement=with_samples(known(quiet.measurement), **marked))


def described(run: Run, **different: Any) -> Run:
    """The same run, of whose workloads something else is said."""
    scenarios = []
    for facts in run.scenarios:
        workloads = [changed(workload, **different) for workload in facts.description.workloads]
        scenarios.append(changed(facts, description={"workloads": workloads}))
    return changed(run, scenarios=scenarios)


GPU = Device("cuda", 0, "NVIDIA H200")
PHASES = ("spawn", "worker", "import", "keras", "device", "load", "build", "first step", "train", "epoch")


def wobbling(ms: float, seed: int, cycles: int = 8) -> list[float]:
    """A time in each cycle, the same everywhere: they scatter by a percent or so, as ``seed`` says."""
    level = 1 + (5 * seed % 7 - 3) / 1000
    return [ms * level * (1 + ((37 * cycle + 17 * seed) % 13 - 6) / 1000) for cycle in range(cycles)]


def latency(batch: int, calls_ms: Sequence[float], way: str = ON_BATCH) -> Predicted:
    """A thousand calls in eight cycles, of which some take half as long again; the first of some ways compiles."""
    slices = Samples.of(Slice(125, int(125 * ms * MS), cycle, 0, 0) for cycle, ms in enumerate(calls_ms))
    calls_ns = [int(ms * MS * (1 + call % 25 / 50)) for ms in calls_ms for call in range(125)]
    return predicted(batch, calls_ns, slices, way, 40 * MS if way == "compiled_call" else None)


def steps(step_ms: float = 2.0, seed: int = 0) -> Measurement:
    """A trial of which nothing is told but its steps, its epochs, and that it computed what it should."""
    steps_ms = wobbling(step_ms, seed)
    stepped = without(sliced(steps_ms, [10 + 2 * ms for ms in steps_ms[::-1]]), ONE, BATCH, ALL)
    return changed(stepped, training={"first_step_ns": None, "again_ns": []}, learning=None)


def whole(step_ms: float = 2.0, seed: int = 0) -> Measurement:
    """A trial of which everything is told that a steady run measures."""
    passes = Samples.of(
        Slice(1, int(20 * ms * MS), cycle, 0, 0) for cycle, ms in enumerate(wobbling(step_ms, seed + 1))
    )
    first_ms, again_ms = wobbling(300, seed), wobbling(20, seed)
    single, batch = latency(1, wobbling(step_ms / 2, seed + 2)), latency(32, wobbling(step_ms * 0.8, seed + 3))
    return changed(
        with_predictions(with_samples(steps(step_ms, seed), predict_all=passes), single, batch),
        training={"first_step_ns": int(first_ms[0] * MS), "again_ns": [int(ms * MS) for ms in again_ms]},
        passes=Passes(1_000, 32, passes.ns),
        learning=Learning(65, 2.2, 1.4, 1.5 + seed % 7 / 1000, 0.5 + seed % 5 / 100),
    )


def in_blocks(
    steps_ms: Mapping[Column, float],
    measure: Callable[[float, int], Measurement] = whole,
    rounds: Sequence[int] = (1, 2, 3),
    first: int = 0,
    **different: Any,
) -> list[Trial]:
    """A block of these columns in each round, whose trials have all phases; ``first``: the blocks before these.

    ``measure`` is asked for a trial by the time of its step, and by what it scatters by.
    """
    size = different.pop("size", None)
    trials = []
    for number in rounds:
        for index, (column, ms) in enumerate(steps_ms.items()):
            on_gpu = column.device != "cpu"
            measured = changed(
                measure(ms, 7 * number + 3 * index),
                resolved={"versions": {"python": "3.11.7", "keras": "3.15.1", column.backend: "2.1"}},
                peak_device_bytes=(900 + number) << 20 if on_gpu else None,
            )
            device = dataclasses.replace(GPU, index=parse_label(column.device)[1]) if on_gpu else CPU
            options = column.options.at(size) if size else column.options
            told = different | {"round_index": number, "backend": column.backend, "phases": phases(on_gpu)}
            trials.append(in_block(first + number, measured, device=device, options=options, **told))
    return trials


def with_memory(phase: Phase, rss_bytes: int, device_bytes: int | None = None) -> Phase:
    """A phase that holds so much at its end, and a tenth more in between."""
    more = {"rss_bytes": rss_bytes, "most_rss_bytes": rss_bytes * 11 // 10}
    if device_bytes:
        more |= {"device_bytes": device_bytes, "most_device_bytes": device_bytes * 11 // 10}
    return changed(phase, stage=TRAIN if phase.name == TRAIN else "", **more)


def phases(on_gpu: bool = False) -> list[Phase]:
    """All phases of a trial, each longer than the one before, with ever more memory."""
    passed = []
    for index, name in enumerate(PHASES):
        start_ns, end_ns = (number**2 * 10 * MS for number in (index, index + 1))
        rss_bytes, device_bytes = (100 + 50 * index) << 20, (10 * index) << 20 if on_gpu else None
        phase = Phase(name, start_ns, end_ns, peak_rss_bytes=rss_bytes, peak_device_bytes=device_bytes)
        passed.append(with_memory(phase, rss_bytes, device_bytes) if device_bytes else phase)
    return passed
