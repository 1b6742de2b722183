"""Real trials in real children, as short as they can be, by themselves or side by side."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from kerasbench.plan import catalog
from kerasbench.processes import block
from kerasbench.processes.block import BlockMember, BlockPolicy
from kerasbench.processes.outcome import Limits, Outcome
from kerasbench.processes.variables import NOTHING
from kerasbench.protocol.columns import DEFAULT, Device, Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import DataKind, ModelConfig, Protocol, TrialRequest
from kerasbench.runs import schedule, sizes
from kerasbench.scenario import source_hash
from tests import made

# Two slices of at least a millisecond in each stage: enough to go through every phase, and to measure nothing.
SHORTEST = Protocol(
    slice_ns=1_000_000,
    warmup_min_ns=0,
    warmup_max_ns=1,
    predict_warmup_ns=0,
    slices_max_ns=1,
    min_cycles=2,
)
STEPS_ALONE = dataclasses.replace(SHORTEST, kind="sweep")


def run(
    file: Path,
    backend: str,
    workload: str = "default",
    device: Device | None = None,
    timeout_s: float = 120,
    compile_s: float | None = None,
    protocol: Protocol = SHORTEST,
    data: DataKind = "synthetic",
    options: Options = DEFAULT,
    memory_bytes: int | None = None,
    python: str = sys.executable,
    kept: Mapping[str, str] = NOTHING,
    model_config: ModelConfig | None = None,
    caches: str = "",
    fills_caches: bool = False,
) -> Outcome:
    """Run one trial: a block of a single column. ``model_config`` is said of a saved model, which has one workload."""
    said = model_config or ModelConfig()
    request = TrialRequest(
        scenario=file.stem,
        file=str(file),
        file_hash=source_hash(file, said),
        workload=workload if model_config is None else model_config.workload,
        backend=backend,
        device=device or Device("cpu"),
        seed=0,
        data=data,
        protocol=protocol,
        options=options,
        twin_hash=catalog.twins(file)[backend] if options.native else "",
        model_config=said,
        caches=caches,
        fills_caches=fills_caches,
    )
    limits = Limits(timeout_s, f"--timeout {timeout_s:g} s", memory_bytes, compile_s=compile_s)
    (outcome,) = together([BlockMember(python, request, limits)], kept=kept)
    return outcome


def together(entrants: Sequence[BlockMember], alone: bool = True, kept: Mapping[str, str] = NOTHING) -> list[Outcome]:
    """Run a block that fits into memory."""
    enough = partial(schedule.enough, entrants[0].request.protocol, {})
    sized = partial(sizes.sizes_of, entrants[0].request.protocol, made.workload())
    rules = BlockPolicy(schedule.draw_orders("real"), enough, sized, lambda: True)
    outcomes = block.measure(entrants, rules, lambda event: None, alone, kept)
    assert all(outcome is not None for outcome in outcomes)
    return [outcome for outcome in outcomes if outcome is not None]


def builtin(
    scenario: str, workload: str, backend: str, options: Options = DEFAULT, protocol: Protocol = SHORTEST
) -> Outcome:
    """Run a built-in workload."""
    return run(catalog.builtin_folder() / f"{scenario}.py", backend, workload, options=options, protocol=protocol)


def measured(outcome: Outcome) -> Measurement:
    assert outcome.failure is None, outcome.failure
    assert outcome.measurement is not None
    return outcome.measurement
