"""Made rows, each with one warning, for the catalogue of golden files."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from kerasbench.host.noise import Signal
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Batch, Compiler, EpochEnds, Samples, Slice
from kerasbench.results.run import Trial
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH

TORCH_CONTROL = Column("torch", "cpu", Options(control=True))


def bare(trials: Sequence[Trial]) -> list[Trial]:
    """The same trials without their phases, of which the longest runs tell."""
    return [made.changed(trial, phases=[]) for trial in trials]


def noisy(trials: Sequence[Trial], *signals: Signal) -> list[Trial]:
    """The same trials; the first has these signals."""
    return [dataclasses.replace(trials[0], noise=list(signals)), *trials[1:]]


def pair(name: str, torch_ms: float = 3.0, rounds: Sequence[int] = (1, 2, 3), **of_torch: Any) -> list[Trial]:
    """A row of two backends; of torch's trials something else is told."""
    trials = bare(made.in_blocks({JAX: 2.0, TORCH: torch_ms}, made.steps, rounds, name=name))
    return [made.changed(trial, measurement=of_torch) if trial.backend == "torch" else trial for trial in trials]


def disturbed(share: float, stolen: bool = False) -> Samples:
    """Slices in so many of which others took a processor, or a hypervisor did."""
    slices = [Slice(50, 100 * made.MS, cycle, 0) for cycle in range(8)]
    taken = {"steal_ns" if stolen else "others_ns": 100 * made.MS}
    hit = [dataclasses.replace(slice_, disturbed=True, **taken) for slice_ in slices[: int(share * 8)]]
    return Samples.of([*hit, *slices[len(hit) :]])


def warned_rows() -> list[Trial]:
    ten = [Slice(50, 150 * made.MS, cycle, 0, 150 * made.MS, page_faults=60_000) for cycle in range(8)]
    waited = [
        dataclasses.replace(slice_, page_faults=0, cpu_ns=slice_.ns // (1 + 3 * (slice_.cycle == 1))) for slice_ in ten
    ]
    moved = {"jax": made.movement(), "torch": made.movement([1e-3, 2e-3, 1e-3, 0.0])}
    growing = [
        dataclasses.replace(slice_, ns=slice_.ns * (2 + number), page_faults=0) for number, slice_ in enumerate(ten)
    ]
    rare = [dataclasses.replace(slice_, ns=slice_.ns * (1 + 7 * (slice_.cycle == 3)), page_faults=0) for slice_ in ten]
    slow = dataclasses.replace(made.SIZES, step_ns=5_200 * made.MS, silenced_steps=0, left_out=["epoch"])
    flushed = {"versions": {"keras": "3.15.1"}, "subnormals": "flushed"}
    learned = made.taught(made.whole())
    scattered = [made.trial(index, "scattered", found=made.steps(ms)) for index, ms in ((1, 2.0), (2, 3.0), (3, 4.0))]
    undecided = [made.disturbed(trial) for trial in pair("undecided")]
    mostly = [made.disturbed(trial) if trial.round <= 3 else trial for trial in pair("mostly", rounds=range(1, 6))]
    sessions = [*pair("sittings"), *pair("sittings", 6.0, (4, 5, 6))]
    apart = [
        trial
        for number in (1, 2, 3)
        for first, columns in ((0, {JAX: 2.0, TORCH: 3.0}), (3, {TENSORFLOW: 2.5, TORCH: 3.0}))
        for trial in bare(made.in_blocks(columns, made.steps, [number], first, name="apart"))
    ]
    return [
        *pair("idle", learning=dataclasses.replace(learned, batch_loss_after=learned.batch_loss_before)),
        *(made.changed(trial, measurement={"movement": moved[trial.backend]}) for trial in pair("still")),
        *pair("growing", samples={"train": Samples.of(growing)}),
        *pair("late", training={"epoch_ends": EpochEnds(2, 900 * made.MS, 200)}),
        *pair("rare", samples={"train": Samples.of(rare)}),
        *pair("unjudged", parity=None),
        *(made.changed(trial, measurement={"batch": Batch("", "", trial.backend)}) for trial in pair("other_data")),
        *bare(scattered),
        *pair("deviates", parity={"losses": [2.305, 2.2, 2.1], "sensitive": ["BatchNormalization"]}),
        *pair("slow", parity=None, sizes=slow),
        *pair("lost", lost=["Keras 3.99.0 has no get_device where kerasbench looks for it: it is learned otherwise"]),
        *pair("fallback", fallbacks={"Resize": 2}),
        *pair("emulated", facts={"products": "float16, emulated on this processor and float32"}),
        *pair("recompiled", compiler=Compiler(programs=5, while_measured=3)),
        *pair("eager", compiler=Compiler(programs=5, eager="a graph ended early", breaks={"print": 2})),
        *pair("subnormals", vanishing=0.5, parameters=200_000, resolved=flushed),
        *pair("pages", samples={"train": Samples.of(ten)}),
        *pair("waited", samples={"train": Samples.of(waited)}),
        *pair("slices", rounds=[1, 2]),
        *bare(made.in_blocks({JAX: 2.0, TORCH: 3.0}, lambda ms, seed: made.epochs_measurement(ms), [1, 2], name="few")),
        *bare(made.in_blocks({JAX: 2.0, TORCH: 3.0, TORCH_CONTROL: 3.5}, made.steps, name="control")),
        *undecided,
        *mostly,
        *(dataclasses.replace(trial, session=1 + (trial.round > 3)) for trial in sessions),
        *apart,
        *pair("versions", resolved={"versions": {"keras": "3.14.0"}}),
    ]
