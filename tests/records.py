"""Made runs of each mode, and what is found in them."""

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kerasbench import variants
from kerasbench.analysis.contrasts import CaseInRow, Contrast
from kerasbench.analysis.estimates import LogEstimate, Verdict, judge
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.modes import fastest, soak, versus
from kerasbench.modes.fastest.plan import EFFORT
from kerasbench.modes.versus import pairs
from kerasbench.modes.versus.bisect import Probe
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.protocol.measurement import Measurement, Samples, Slice
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import TrialPlan
from kerasbench.results.run import Effort, Run, RunConfig, Trial
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH

BATCHES = (1, 8, 64, 512)
CROSSING = {"jax": (0.2, 0.5, 3.0, 24.0), "torch": (1.0, 1.1, 1.7, 6.0)}


def swept(rounds: int = 3, /, **series: tuple[float, ...]) -> Run:
    """Backends by their steps, in ms, at each of BATCHES, give or take a thousandth."""
    trials = [
        made.trial(
            index, backend=backend, found=made.measurement(step_ms * (1 + index / 1000)), options=Options(batch=batch)
        )
        for backend, steps in series.items()
        for batch, step_ms in zip(BATCHES, steps, strict=False)
        for index in range(1, rounds + 1)
    ]
    return made.record(*trials, rounds=rounds)


def of_backends(rounds: int = 3, workloads: int = 2, **step_ms: float) -> Summary:
    trials = [
        made.trial(index, f"model{number}", backend, found=made.measurement(step + index / 100, overhead_ms=0))
        for index in range(1, rounds + 1)
        for number in range(workloads)
        for backend, step in step_ms.items()
    ]
    return summarize(made.record(*trials, rounds=rounds))


def rivals(step_ms: float, options: Options, device: Device = made.CPU) -> list[Trial]:
    return [made.trial(i, found=made.measurement(step_ms), options=options, device=device) for i in (1, 2, 3)]


def dated(day: int, torch_ms: float, keras: str, jax_ms: float = 2.0) -> Run:
    """A run of that day of January, with that Keras."""
    trials = [
        made.in_block(
            block,
            made.changed(
                made.sliced([ms * (1 + block / 1000)] * 10), resolved={"versions": {"keras": keras, backend: "2.1"}}
            ),
            backend=backend,
        )
        for block in (1, 2, 3)
        for backend, ms in (("jax", jax_ms), ("torch", torch_ms))
    ]
    run = made.record(*trials, rounds=3)
    return dataclasses.replace(run, started=f"2026-01-{day:02d}T03:00:00Z", commit=f"{day:040x}")


DATED = [dated(3, 9.0, "3.15.0"), dated(1, 6.0, "3.9.0"), dated(2, 12.0, "3.10.0", jax_ms=4.0)]


def stored(folder: Path, *steps_ms: float, started: str = "2026-01-02T03:04:05Z", **measured: Any) -> Path:
    """Put a run of so many rounds into a folder of its own; ``measured``: other fields of its measurements."""
    trials = [made.changed(trial, measurement=measured) for trial in made.in_rounds(*steps_ms, code="a")]
    run = made.record(*trials, rounds=len(steps_ms))
    made.stored(folder, made.changed(run, started=started))
    return folder


def stored_by_turns(folder: Path, first: int, *steps_ms: float, **measured: Any) -> Path:
    """Put a run of three rounds for each step into a folder, at every other hour."""
    for index, step in enumerate(steps_ms):
        started = f"2026-01-02T{first + 2 * index:02}:00:00Z"
        stored(folder, step, step * 1.001, step * 0.999, started=started, **measured)
    return folder


OLD, NEW, AGAIN = Options(environment="old"), Options(environment="new"), Options(environment="old", control=True)
NAMES = ("dense", "conv", "deep", "wide")
ALIKE = {OLD: {"step_ms": 2.0}, NEW: {"step_ms": 2.0}, AGAIN: {"step_ms": 2.0}}
SLOWER = ALIKE | {NEW: {"step_ms": 2.2}}


def version(step_ms: float, block: int, first_ms: float = 300, mib: float = 512, rate: float = 1) -> Measurement:
    """A trial whose slices drift, and whose other figures scatter by a thousandth from block to block."""
    off = made.SCATTER[block % 3]
    drifting = made.sliced([step_ms * off * (1 + 0.05 * cycle) for cycle in range(10)])
    return made.changed(
        drifting,
        training={"first_step_ns": int(first_ms * off * made.MS)},
        peak_rss_bytes=int(mib * off * (1 << 20)),
        passes={"passes_ns": [int(ns / rate / off) for ns in made.known(drifting.passes).passes_ns]},
    )


def versions(
    sides: Mapping[Options, Mapping[str, float]], backend: str = "torch", blocks: int = 3, name: str = "dense"
) -> list[Trial]:
    """Columns of one backend in blocks of their own."""
    told: dict[str, Any] = {"backend": backend, "name": name}
    offset = {"torch": 0, "jax": 100}[backend] + 1000 * NAMES.index(name)
    return [
        made.in_block(offset + block, version(block=block, **figures), round_index=block, options=options, **told)
        for block in range(1, blocks + 1)
        for options, figures in sides.items()
    ]


def of_versions(*trials: Trial, threshold: float = 0.03) -> Run:
    asked = versus.MODE.configured(RunConfig(control=True), versus.VersusConfig("old", ["new"], threshold))
    return dataclasses.replace(made.record(*trials, rounds=3), config=asked)


def compared(*trials: Trial, threshold: float = 0.03) -> pairs.Versus:
    (only,) = pairs.versions(summarize(of_versions(*trials, threshold=threshold)))
    return only


def contrast(ratio: LogEstimate, verdict: Verdict | None = None) -> Contrast:
    """A training step over that of the same case: only the ratio matters, and its verdict, by default its own."""
    (row,) = summarize(made.record(made.trial())).rows
    place = CaseInRow(row, *row.cases)
    return Contrast(place, place, row.headline, ratio, verdict=verdict or judge([ratio])[0].verdict)


def exactly(truths: Sequence[float], half_width: float = 0.01, **off: str) -> Callable[[int, object], Probe]:
    """What measures versions without scatter; ``off``: those that say nothing, by v and their number."""

    def probe(index: int, case: object) -> Probe:
        ratio = made.estimate(truths[index], truths[index] * (1 + half_width), trials=6)
        return Probe(index, contrast(ratio), off.get(f"v{index}", ""))

    return probe


EIGHT = Options(steps_per_execution=8)
FAST = Column("jax", "cpu", EIGHT)


def candidate(column: Column, ms: float) -> Measurement:
    sliced = made.sliced([ms * (1 + 0.01 * cycle) for cycle in range(6)], [2 * ms] * 6)
    batch = variants.batch(column.options)
    return dataclasses.replace(sliced, train_samples=batch * sliced.steps_per_epoch) if batch else sliced


def raced(
    *rounds: Mapping[Column, float], failed: Column | None = None, baseline: str = "tensorflow", tries: str = "jit"
) -> Run:
    """A race whose candidates had these times in each round, in ms."""
    trials = [
        made.in_block(number, candidate(column, ms), backend=column.backend, options=column.options)
        for number, times in enumerate(rounds, start=1)
        for column, ms in times.items()
    ]
    if failed:
        failure = Failure(Code.OOM, "out of memory", "")
        trials.append(made.trial(1, backend=failed.backend, options=failed.options, failure=failure))
    asked = fastest.MODE.configured(RunConfig(effort=EFFORT), fastest.RaceConfig(baseline=baseline, tries=[tries]))
    return made.changed(made.record(*trials, rounds=len(rounds)), config=asked)


RACED = raced({JAX: 1.04, FAST: 1.0, TENSORFLOW: 4.0, TORCH: 9.0}, {JAX: 1.04, FAST: 1.0, TENSORFLOW: 4.1})
SLICE_STEPS = 50
MIB = 1 << 20


def soaking(
    slower: float, leak_bytes: float, turns: int, rng: random.Random, on_device: float | None = None
) -> Measurement:
    """A column of 1 ms a step that becomes so much slower over its run, and holds so much more with each step.

    ``on_device``: how many bytes more there with each step; None: the device does not tell.
    """
    slices, steps = [], 0
    for index in range(turns):
        steps += SLICE_STEPS + 5  # some are not measured
        factor = (1 + slower * index / turns) * rng.gauss(1, 0.02)
        held = int(500 * MIB + leak_bytes * steps + rng.uniform(0, 64 << 10))
        cycle = index // 9 if turns > 1_000 else index
        slice_ = Slice(SLICE_STEPS, int(SLICE_STEPS * made.MS * factor), cycle, 0, done=steps, rss_bytes=held)
        there = None if on_device is None else int(90 * MIB + on_device * steps)
        slices.append(dataclasses.replace(slice_, device_bytes=there))
    return made.with_samples(made.measurement(), train=Samples.of(slices))


def soaked(slower: float, leak_bytes: float, rng: random.Random) -> Run:
    """A soak of a minute, with its control; the machine becomes 30 % slower for both."""
    turns = 60_000_000_000 // (SLICE_STEPS * made.MS)
    trials = [
        made.in_block(1, soaking(slower, leak_bytes, turns, rng), backend="torch"),
        made.in_block(1, soaking(0, 0, turns // 9, rng), backend="torch", options=Options(control=True)),
    ]
    config = RunConfig(effort=Effort(plan=TrialPlan(fixed_time=True)))
    asked = soak.MODE.configured(config, soak.SoakConfig(minutes=1.0))
    return dataclasses.replace(made.record(*trials, rounds=1), config=asked)
