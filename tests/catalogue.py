"""A made run of every mode, variant, warning and failure, and of what becomes of runs, for the golden files."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kerasbench.host.noise import of_machine, of_slices, of_surroundings
from kerasbench.host.nvidia import Sample
from kerasbench.modes import explain as explain_mode
from kerasbench.modes import fastest as fastest_mode
from kerasbench.modes import soak as soak_mode
from kerasbench.modes import sweep as sweep_mode
from kerasbench.modes import versus as versus_mode
from kerasbench.modes.fastest.plan import EFFORT
from kerasbench.protocol.columns import Column, Device, Options, Size
from kerasbench.protocol.measurement import (
    Exported,
    FeedAlone,
    Measurement,
    Published,
    Samples,
    Slice,
    Texts,
)
from kerasbench.protocol.messages import Code, Failure, Phase
from kerasbench.protocol.requests import TrialPlan
from kerasbench.protocol.stages import EPOCH, FEED, text_stage
from kerasbench.results import run as results
from kerasbench.results.run import Run, RunConfig, Trial, exactly
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH
from tests.warned import bare, disturbed, noisy, pair, warned_rows

Runs = list[Run]
JAX_GPU, TORCH_GPU, TORCH_SECOND_GPU = Column("jax", "gpu"), Column("torch", "gpu"), Column("torch", "gpu:1")


HERE = {"finished": "2026-01-02T04:05:06Z", "kerasbench": "1.0", "commit": "1" * 40, "machine": {"identifier": "m1"}}


def run(*trials: Trial, rounds: int = 3, **different: Any) -> Run:
    """A run of them, in which nothing is of this day, this machine or this version."""
    return made.changed(made.record(*trials, rounds=rounds), **(HERE | different))


def torch(**options: Any) -> Column:
    return Column("torch", "cpu", Options(**options))


def steady() -> Runs:
    dense = made.in_blocks({JAX: 2.0, TENSORFLOW: 3.0, TORCH: 2.02})
    return [run(*dense, *made.in_blocks({JAX: 9.0, TORCH: 5.0}, made.steps, name="conv", first=3))]


def run_quick() -> Runs:
    asked = {"scenarios": ["my model.keras"], "effort": results.QUICK}  # a name that a shell would take apart
    return [run(*bare(made.in_blocks({JAX: 2.0, TORCH: 3.0}, rounds=[1])), rounds=1, config=asked)]


def run_one_round() -> Runs:
    """One after another, so that one round has no interval."""
    alone = [made.trial(backend=backend, found=made.steps(ms)) for backend, ms in (("jax", 2.0), ("torch", 3.0))]
    return [run(*alone, rounds=1, config={"effort": exactly(1)})]


def run_published() -> Runs:
    def measured(step_ms: float, seed: int) -> Measurement:
        epochs_ns = [int(ms * 100 * made.MS) for ms in (4 * step_ms, *made.wobbling(step_ms, seed, 2))]
        history = {"loss": [2.0, 1.0, 0.5], "accuracy": [0.5, 0.7, 0.9], "val_accuracy": [0.5, 0.6, 0.8]}
        epochs = Published(sum(epochs_ns), epochs_ns, history, [90 * made.MS, 30 * made.MS])
        return dataclasses.replace(made.whole(step_ms, seed), published=epochs)

    trials = made.in_blocks({JAX: 2.0, TORCH: 3.0}, measured, [1])
    trials = [dataclasses.replace(trial, block=0, protocol="published") for trial in trials]
    return [run(*trials, rounds=1, config={"effort": results.PUBLISHED})]


def run_calls() -> Runs:
    """Calls in every way, and texts of which each token takes a little longer than the one before."""

    def texts(ms: float, prompt_ms: float, seed: int) -> tuple[Texts, Samples]:
        grown, slices = made.growing(made.wobbling(ms, seed), prompt_ms=prompt_ms)
        more_ns = [count * count * made.MS // 100 for count in grown.counts]
        times_ns = [[ns + more for ns, more in zip(times, more_ns, strict=True)] for times in grown.times_ns]
        return dataclasses.replace(grown, times_ns=times_ns), slices

    def measured(ms: float, seed: int) -> Measurement:
        called = [
            made.latency(batch, made.wobbling(ms * (1 + place) * (1 if batch == 1 else 1.5), seed + place), way)
            for place, way in enumerate(("predict_on_batch", "call", "compiled_call", "predict_call"))
            for batch in (1, 32)
        ]
        grows = (("call", 2.0), ("compiled_call", 1.0), ("own", 0.5))
        written = {text_stage(way): texts(ms * factor, ms, seed) for way, factor in grows}
        predicting = made.with_samples(made.predicting(), **{stage: slices for stage, (_, slices) in written.items()})
        whole = made.with_predictions(predicting, *called)
        return dataclasses.replace(whole, parity=None, texts={stage: texts for stage, (texts, _) in written.items()})

    columns, effort = (
        {TORCH: 3.0, torch(native=True): 2.0, torch(warm_cache=True): 2.9},
        exactly(3, TrialPlan().of_kind("calls")),
    )
    return [made.untrained(run(*bare(made.in_blocks(columns, measured)), config={"effort": effort}))]


def run_prediction_only() -> Runs:
    def measured(ms: float, seed: int) -> Measurement:
        calls = [made.latency(1, made.wobbling(ms / 2, seed)), made.latency(32, made.wobbling(ms, seed + 1))]
        return made.with_predictions(made.predicting(), *calls)

    def one_at_a_time(ms: float, seed: int) -> Measurement:
        return made.with_predictions(made.predicting(batch=1), made.latency(1, made.wobbling(ms, seed)))

    single = made.in_blocks({JAX: 2.0, TORCH: 1.0}, one_at_a_time, name="single", first=3)
    both = made.untrained(run(*bare([*made.in_blocks({JAX: 2.0, TORCH: 3.0}, measured), *single])))
    single_rows = made.described(dataclasses.replace(both, scenarios=both.scenarios[1:]), batch=1)
    return [dataclasses.replace(both, scenarios=[both.scenarios[0], *single_rows.scenarios])]


def run_exported() -> Runs:
    """Models that Keras has exported beside Keras itself; one could not be."""

    def measured(ms: float, seed: int) -> Measurement:
        calls = [made.latency(1, made.wobbling(ms / 4, seed)), made.latency(32, made.wobbling(ms, seed + 1))]
        return dataclasses.replace(
            made.with_predictions(made.predicting(), *calls), exported=EXPORTED if ms < 2.5 else None
        )

    columns = {TORCH: 3.0, torch(runtime="pt2"): 2.0}
    cause = "the model cannot be exported to saved_model: ValueError: no endpoint"
    failed = made.trial(
        backend="tensorflow",
        options=Options(runtime="saved_model"),
        failure=Failure(Code.UNSUPPORTED, cause, "leave saved_model out", "export"),
    )
    loads = [Phase("load", 0, 12 * made.MS)]
    trials = [made.changed(trial, phases=loads) for trial in made.in_blocks(columns, measured)]
    trials = [*trials, dataclasses.replace(failed, protocol="predictions")]
    return [made.untrained(run(*trials, config={"effort": exactly(3, TrialPlan().of_kind("predictions"))}))]


EXPORTED = Exported(
    "torch.export 2.13.0",
    843_820,
    0.9,
    [1, 32],
    42_442,
    "channels_last",
    {"keras": "3.15.1"},
    first_ns=24 * made.MS,
)


BEFORE = made.state(throttle_count=3)
HOT = of_surroundings(made.surroundings(BEFORE, made.state(thermal_level=1, throttle_count=7)), None)
THROTTLED = of_surroundings(made.surroundings(BEFORE, made.state(throttle_count=7)), None)


def stepped(step_ms: float, seed: int) -> Measurement:
    return made.without(made.steps(step_ms, seed), EPOCH)


def sweep() -> Runs:
    trials: list[Trial] = []
    times = {1: (0.2, 1.0, 0.8), 8: (0.5, 1.1, 0.85), 64: (3.0, 1.7, 0.9), 512: (24.0, 6.0)}
    for place, (batch, steps_ms) in enumerate(times.items()):
        columns = dict(zip((JAX, TORCH, TORCH_GPU), steps_ms, strict=False))
        trials += bare(made.in_blocks(columns, stepped, first=3 * place, size=Size(batch=batch)))
    too_large = Failure(Code.OOM, "the GPU has no memory left", "take a smaller batch", "train")
    trials.append(made.trial(failure=too_large, device=made.GPU, options=Options(batch=512)))
    for place, (width, jax_ms, torch_ms) in enumerate(((0.5, 1.0, 2.0), (1.0, 2.0, 2.5), (2.0, 6.0, 3.0))):
        columns, size = {JAX: jax_ms, TORCH: torch_ms}, Size(width=width)
        trials += bare(made.in_blocks(columns, stepped, first=20 + 3 * place, size=size, name="conv"))
    trials = [*noisy(trials[:1], *HOT), *trials[1:-1], *noisy(trials[-1:], *HOT)]
    return [run(*trials, config=sweep_mode.MODE.configured(RunConfig(effort=exactly(3, results.SWEEP))))]


def sweep_exported() -> Runs:
    """Predictions of one model and of what it was exported to, which it overtakes."""
    trials: list[Trial] = []
    for place, (batch, times_ms) in enumerate({1: (2.0, 0.5), 8: (2.4, 1.5), 64: (5.0, 9.0)}.items()):

        def measured(ms: float, seed: int, batch: int = batch) -> Measurement:
            return made.with_predictions(made.predicting(), made.latency(batch, made.wobbling(ms, seed)))

        columns = dict(zip((TORCH, torch(runtime="onnxruntime")), times_ms, strict=True))
        trials += made.in_blocks(columns, measured, first=3 * place, size=Size(batch=batch))
    effort = exactly(3, results.SWEEP.of_kind("sweep_predictions"))
    trials = [dataclasses.replace(trial, protocol="sweep_predictions") for trial in trials]
    return [made.untrained(run(*trials, config=sweep_mode.MODE.configured(RunConfig(effort=effort))))]


def explain() -> Runs:
    def taken_apart(step_ms: float, seed: int) -> Measurement:
        arrays_ms, *_ = made.wobbling(2 * step_ms, seed)
        parted = made.with_parts(arrays_ms, 0.75 * arrays_ms, 0.5 * arrays_ms, steady_ms=arrays_ms / 2)
        return made.changed(parted, training={"warmup": Samples.of([Slice(25, int(25 * arrays_ms * made.MS))])})

    mine = made.in_blocks({TORCH: 2.0}, taken_apart)
    rivals = made.in_blocks({torch(jit=True): 1.5, TORCH_GPU: 0.4})
    rivals += made.in_blocks({torch(without_pooling_copy=True): 1.2, torch(without_returned_memory=True): 2.0})
    rivals += made.in_blocks({torch(without_last_channels=True): 2.4})
    other = Failure(Code.UNSUPPORTED, "Keras 3.16.0 has another _compute_attention", "compare with another version")
    rivals.append(made.trial(0, failure=other, options=torch(without_attention_dropout=True).options))
    larger = made.in_blocks({TORCH: 4.0}, stepped, size=Size(batch=128), first=3)
    flops = [results.OperationCount("dense", "default", 1e6)]
    config = explain_mode.MODE.configured(RunConfig(), explain_mode.ExplainConfig(causes=True))
    return [run(*mine, *rivals, *larger, config=config, flops=flops)]


def holding(trial: Trial, more_mib: int = 0) -> Trial:
    """A trial that tells its memory by phase; from building on it holds so much more."""
    names = [phase.name for phase in trial.phases]
    held = [
        made.with_memory(phase, (100 + 50 * index + more_mib * (index >= names.index("build"))) << 20)
        for index, phase in enumerate(trial.phases)
    ]
    return made.changed(trial, phases=held)


def hoarding(trial: Trial) -> Trial:
    return holding(trial, more_mib=200)


def versus() -> Runs:
    old, new, again = (
        torch(environment=name, control=again) for name, again in (("old", None), ("new", None), ("old", True))
    )

    def versions(trials: list[Trial]) -> list[Trial]:
        """The head has another Keras, and nothing else."""
        keras = {"old": "3.15.0", "new": "3.16.0"}
        known = [{"versions": {"keras": keras[trial.options.environment], "torch": "2.1"}} for trial in trials]
        pairs = zip(trials, known, strict=True)
        return [made.changed(trial, measurement={"resolved": resolved}) for trial, resolved in pairs]

    slower = versions(made.in_blocks({old: 2.0, new: 2.4, again: 2.0}))
    slower = [hoarding(trial) if trial.options == new.options else trial for trial in map(holding, slower)]
    same = bare(versions(made.in_blocks({old: 5.0, new: 5.0, again: 5.0}, made.steps, name="conv", first=3)))
    ran = {"old": {"attention": "flash", "recurrent": "LSTM: cuDNN"}, "new": {"attention": "flash"}}
    ran["new"]["recurrent"] = "LSTM: loop"  # and it takes as long
    same = [made.changed(trial, measurement={"facts": ran[trial.options.environment]}) for trial in same]
    broken = bare(versions(made.in_blocks({old: 1.0, again: 1.0}, made.steps, name="deep", first=6)))
    failure = Failure(Code.ERROR, "AttributeError: no attribute 'ops'", "look at the lines above", "build", "a trace")
    broken.append(made.trial(name="deep", failure=failure, options=new.options))
    asked = versus_mode.MODE.configured(RunConfig(control=True), versus_mode.VersusConfig("old", ["new"], 0.03))
    return [run(*slower, *same, *broken, config=asked)]


def versus_heads() -> Runs:
    base, broken, newest, again = (
        torch(environment=name, control=again)
        for name, again in (("2.13", None), ("2.14", None), ("2.15", None), ("2.13", True))
    )
    dense = made.in_blocks({base: 2.0, broken: 2.4, newest: 2.0, again: 2.0})
    conv = bare(made.in_blocks({base: 5.0, newest: 4.0, again: 5.0}, made.steps, name="conv", first=3))
    failure = Failure(Code.ERROR, "RuntimeError: no kernel", "look at the lines above", "build", "a trace")
    conv.append(made.trial(name="conv", failure=failure, options=broken.options))
    config = versus_mode.VersusConfig("2.13", ["2.14", "2.15"], 0.03)
    return [run(*dense, *conv, config=versus_mode.MODE.configured(RunConfig(control=True), config))]


def with_first_step(ms: float, seed: int) -> Measurement:
    return made.changed(made.steps(ms, seed), training={"first_step_ns": int(100 * ms * made.MS)})


def fastest() -> Runs:
    fast, even = (Column("jax", "cpu", Options(steps_per_execution=count)) for count in (8, 32))
    larger, bfloat = torch(batch_size=128), torch(dtype="mixed_bfloat16", threads=1)

    first = made.in_blocks({fast: 1.0, even: 1.004, TENSORFLOW: 4.0, TORCH: 9.0, bfloat: 8.0}, with_first_step, [1])
    trials = [*first, *made.in_blocks({fast: 1.0, even: 1.004, TENSORFLOW: 4.0}, with_first_step, [2, 3, 4])]
    failure = Failure(Code.OOM, "out of memory", "take a smaller batch")
    trials.append(made.trial(backend="torch", options=larger.options, failure=failure))
    own = fastest_mode.RaceConfig(baseline="tensorflow", tries=["jit", "steps-per-execution", "batch-size"])
    return [run(*bare(trials), rounds=4, config=fastest_mode.MODE.configured(RunConfig(effort=EFFORT), own))]


def fastest_open() -> Runs:
    """Ended after a round, in which two are nearly alike."""
    (over,) = fastest()
    first = [trial for trial in over.trials if trial.round == 1]
    return [dataclasses.replace(over, trials=first, rounds_completed=1, stopped_because=results.INTERRUPTED)]


def going_on(slower: float, leak_bytes: int, turns: int, on_gpu: bool = False, step_ms: float = 1.0) -> Samples:
    """Fifty steps in each turn, which get slower, and leave more memory behind with each."""
    slices = []
    for cycle, ms in enumerate(made.wobbling(step_ms, 0, turns)):
        done = 55 * (cycle + 1)
        ns, held = int(50 * ms * (1 + slower * cycle / turns) * made.MS), (500 << 20) + leak_bytes * done
        slices.append(Slice(50, ns, cycle, 0, done=done, rss_bytes=held, device_bytes=held // 4 if on_gpu else None))
    return Samples.of(slices)


def soak() -> Runs:
    """Training for a minute, and building for two seconds, of which nothing is judged."""
    goes_on, rests = (
        made.with_samples(made.steps(1.0), train=going_on(slower, leak_bytes, 40, True, 40.0))
        for slower, leak_bytes in ((0.2, 64 << 10), (0.0, 0))
    )
    control = made.in_block(1, rests, device=made.GPU, options=Options(control=True))
    trials = [made.in_block(1, goes_on, device=made.GPU), control]
    builds = made.with_samples(made.with_predictions(made.predicting()), build=going_on(0.0, 4 << 10, 40))
    minute, of_builds = soak_mode.SoakConfig(minutes=1.0), soak_mode.SoakConfig("build", 1.0)
    training, building = (
        soak_mode.MODE.configured(RunConfig(effort=exactly(1, dataclasses.replace(plan, fixed_time=True))), own)
        for own, plan in ((minute, TrialPlan()), (of_builds, TrialPlan("builds", ("build",))))
    )
    return [
        run(*trials, rounds=1, config=training),
        run(made.in_block(1, builds, name="conv"), rounds=1, config=building, started="2026-01-03T03:04:05Z"),
    ]


def run_variants() -> Runs:
    columns = {
        TORCH: 3.0,
        torch(jit=True): 2.0,
        torch(jit=False): 3.0,
        torch(dtype="bfloat16"): 1.5,
        torch(threads=1): 4.0,
        torch(malloc="keep"): 2.5,
        torch(env="OMP_WAIT_POLICY=passive"): 2.7,
        torch(steps_per_execution=8): 2.9,
        torch(layout="channels_first"): 2.2,
        torch(steps_per_execution=8, unrolled_steps=8): 2.8,
        torch(feed="dataloader", workers=2): 2.75,
        torch(native=True): 2.8,
        torch(warm_cache=True): 3.0,
        torch(control=True): 3.0,
    }
    return [run(*bare(made.in_blocks(columns, with_first_step)), config={"control": True})]


def run_feeds() -> Runs:
    columns = {TORCH: 2.0, torch(feed="tf.data"): 4.0}
    columns |= {torch(feed="pydataset"): 3.0, torch(feed="pydataset", workers=2): 2.5}
    imported = [Phase("keras", 0, 9 * made.MS, 0, 300 << 20), Phase("feeder", 0, 900 * made.MS, 0, 500 << 20)]
    trials = [
        dataclasses.replace(trial, phases=imported) if "feed" in trial.options else trial
        for trial in bare(made.in_blocks(columns, with_feed))
    ]
    return [run(*trials)]


def with_feed(step_ms: float, seed: int = 0) -> Measurement:
    """A step of which half is the feed's."""
    whole = made.steps(step_ms, seed)
    samples = {**whole.samples, FEED: Samples.of([Slice(50, round(50 * step_ms / 2 * made.MS))] * 6)}
    return dataclasses.replace(whole, samples=samples, feed=FeedAlone([step_ms / 2 * made.MS] * 6))


def run_devices() -> Runs:
    tf32 = Column("torch", "gpu", Options(fp32="tf32"))
    columns = {TORCH: 9.0, TORCH_GPU: 1.0, TORCH_SECOND_GPU: 1.1, tf32: 0.8, JAX: 6.0, JAX_GPU: 1.02}
    trials = made.in_blocks(columns, made.steps)
    silent = of_surroundings(made.surroundings(gpu=()), None)  # a driver that tells nothing
    return [run(*noisy(trials, *silent), machine={"identifier": "m1", "gpus": ["NVIDIA H200", "NVIDIA H200"]})]


def run_mac() -> Runs:
    """The four ways to the GPU of a Mac, made up: no Mac has run kerasbench yet. MLX needs a newer Keras."""
    platforms = {"jax": "mps", "mlx": "metal", "tensorflow": "metal", "torch": "mps"}
    columns = {Column(name, "gpu"): ms for name, ms in zip(platforms, (4.0, 3.0, 6.0, 5.0), strict=True)}
    chip, keras = "Apple M1", {"mlx": {"keras": "3.16.0"}}
    trials = []
    for name, first in (("dense", 0), ("conv", 3)):
        for trial in made.in_blocks(columns, made.steps, name=name, first=first):
            device = Device(platforms[trial.backend], 0, chip)
            versions = trial.measurement.resolved.versions if trial.measurement else {}
            known = {"resolved": {"versions": versions | keras.get(trial.backend, {})}}
            trials.append(made.changed(trial, device=device, measurement=known))
    machine = {"chip": chip, "cores": 8, "system": "macOS 15.1", "gpus": [chip], "identifier": "m1"}
    cause = "NotImplementedError: Argument synchronized=True is not supported with MLX."
    lacks = Failure(Code.ERROR, cause, "leave it out of the model", "build")
    failed = dataclasses.replace(trials[1], scenario="synchronized", block=7, measurement=None, failure=lacks)
    return [run(*trials, failed, machine=machine)]


def run_environments() -> Runs:
    """Interpreters with labels, that nobody compares as versions."""
    labelled = [Column(backend, "cpu", Options(environment=name)) for backend in ("jax", "torch") for name in "ab"]
    return [run(*bare(made.in_blocks(dict(zip(labelled, (2.0, 2.1, 3.0, 3.3), strict=True)), made.steps)))]


def noisy_rows() -> list[Trial]:
    throttled = made.surroundings(made.state(quota_throttled=1), made.state(quota_throttled=2))
    gpu = made.surroundings(gpu=(Sample(900, ["hw_slowdown"]),), neighbours=(4321,))
    on_gpu = bare(made.in_blocks({JAX_GPU: 2.0, TORCH_GPU: 3.0}, made.steps, name="gpu"))
    return [
        *noisy(pair("heat"), *HOT),
        *noisy(pair("quota"), *of_surroundings(throttled, None)),
        *noisy(pair("others"), *of_slices(disturbed(0.5))),
        *noisy(pair("steal"), *of_slices(disturbed(0.25, stolen=True))),
        *noisy(on_gpu, *of_surroundings(gpu, top_clock_mhz=1980)),
    ]


def warnings() -> Runs:
    machine = made.state(busy_share=0.6, on_battery=True, low_power=True, governors=["powersave"], quota_cores=1.0)
    return [run(*warned_rows(), *noisy_rows(), noise=of_machine(machine, made.MACHINE.cores))]


FAILED = {
    Code.UNAVAILABLE: ("torch is not installed", "pip install torch", "import"),
    Code.UNSUPPORTED: ("the backend cannot compile on this device", "leave out --jit", "build"),
    Code.OOM: ("it needs more memory than the machine has", "take a smaller batch", "train"),
    Code.SLOW: ("a step takes 16.9 s, more than 10 times as long as on jax cpu", "leave --quick out", "pilot"),
    Code.TIMEOUT: ("no answer in 300 s", "--timeout gives it longer", "first step"),
    Code.CRASH: (made.FAILURE.cause, made.FAILURE.remedy, made.FAILURE.phase),
    Code.WRONG_DEVICE: ("the weights lie on the CPU", "python -m kerasbench doctor", "checks"),
    Code.NONFINITE: ("the loss of step 3 is nan", "take a smaller learning rate", "train"),
    Code.INVALID: ("model() returned no model", "return a compiled keras.Model", "load"),
    Code.ERROR: ("ValueError: no such layer", "look at the last lines", "build"),
}


def failures() -> Runs:
    """A row for each code, in which one column fails and the other does not."""
    trials = []
    for code, (cause, remedy, phase) in FAILED.items():
        failure = Failure(code, cause, remedy, phase, "the last line of the child")
        trials += bare(made.in_blocks({JAX: 2.0}, made.steps, [1], name=code))
        trials.append(made.trial(name=code, failure=failure))
    parity = made.in_blocks({JAX: 2.0, TENSORFLOW: 2.0, TORCH: 3.0}, made.steps, [1], name=Code.PARITY)
    wrong = made.changed(parity[-1], measurement={"parity": {"losses": [2.3, 2.9, 2.1]}})
    return [run(*trials, *bare([*parity[:-1], wrong]), rounds=1)]


def all_failed() -> Runs:
    crashed = [made.trial(backend=backend, failure=made.FAILURE) for backend in ("jax", "torch")]
    return [run(*crashed, rounds=0, stopped_because="every case has failed")]


def interrupted() -> Runs:
    """In the third round, of which nothing counts."""
    trials = [*made.in_blocks({JAX: 2.0, TORCH: 3.0}, made.steps, [1, 2])]
    trials += made.in_blocks({JAX: 99.0}, made.steps, [3])
    return [run(*bare(trials), rounds=2, stopped_because=results.INTERRUPTED, finished="")]


def resumed() -> Runs:
    """On another day, which is another session."""
    later = [dataclasses.replace(trial, session=2) for trial in pair("dense", 3.6, (4, 5, 6))]
    return [run(*noisy(pair("dense"), *THROTTLED), *later, rounds=6, resumed=["2026-01-03T03:04:05Z"])]


def merged() -> Runs:
    """Runs of one machine: a newer one of a row, a sweep of it, and an explanation that stands behind both."""
    older = run(*pair("dense"), *pair("conv"))
    newer = run(*pair("dense", 3.1), started="2026-01-03T03:04:05Z", commit="2" * 40)
    (swept,), (explained,) = sweep(), explain()
    first = [trial for trial in swept.trials if trial.scenario == "dense" and trial.options.get("batch") in (1, 512)]
    swept = made.changed(swept, trials=first, scenarios=swept.scenarios[:1], started="2026-01-04T03:04:05Z")
    return [older, newer, swept, dataclasses.replace(explained, started="2026-01-05T03:04:05Z")]


def machines() -> Runs:
    slow = run(*pair("dense"), *pair("conv"))
    trials = made.in_blocks({JAX: 1.0, TORCH: 1.5, TORCH_GPU: 0.2}, made.steps)
    other = run(*bare(trials), machine={"identifier": "m2", "chip": "Chip 10", "gpus": ["NVIDIA H200"]})
    return [slow, dataclasses.replace(other, started="2026-01-03T03:04:05Z")]


def over_time(torch_ms: Sequence[float], first_day: int = 1, keras: str = "", **different: Any) -> Runs:
    """Runs on every second day, each of its commit, and with its Keras."""
    runs = []
    for place, ms in enumerate(torch_ms):
        known = {"resolved": {"versions": {"keras": keras or f"3.1{place}.0", "torch": "2.1", "jax": "0.9"}}}
        trials = [made.changed(trial, code="c0de", measurement=known) for trial in pair("dense", ms)]
        day = first_day + 2 * place
        runs.append(run(*trials, started=f"2026-02-{day:02d}T03:00:00Z", commit=f"{day:040x}", **different))
    return runs


MADE: Sequence[Callable[[], Runs]] = (
    *(run_quick, run_one_round, run_published, run_calls, run_prediction_only, run_exported, run_variants, run_feeds),
    *(
        run_devices,
        run_mac,
        run_environments,
        sweep,
        sweep_exported,
        explain,
        versus,
        versus_heads,
        fastest,
        fastest_open,
        soak,
        warnings,
        failures,
        all_failed,
    ),
    *(interrupted, resumed, merged, machines),
)
RUNS: Mapping[str, Callable[[], Runs]] = {"run": steady} | {runs.__name__: runs for runs in MADE}
