"""Real trials in real children, as short as they can be."""

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path

from kerasbench.children import trial
from kerasbench.children.limits import Limits
from kerasbench.children.trial import Outcome
from kerasbench.children.variables import NOTHING
from kerasbench.exchange.devices import Device
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.options import DEFAULT, Options
from kerasbench.exchange.requests import DataKind, Protocol, TrialRequest
from kerasbench.plan import catalog
from kerasbench.scenario import content_hash

# Two blocks of at least a millisecond: enough to go through every phase, and to measure nothing.
SHORTEST = Protocol(
    blocks=2,
    block_ns=1_000_000,
    warmup_min_ns=0,
    warmup_max_ns=1,
    measure_max_ns=1,
    epochs_max_ns=1,
    predict_min_calls=10,
    predict_min_ns=0,
    predict_warmup_ns=0,
    predict_max_ns=100_000_000,
)
STEPS_ALONE = dataclasses.replace(SHORTEST, kind="sweep")


def run(
    file: Path,
    backend: str,
    regime: str = "default",
    device: Device | None = None,
    timeout_s: float = 120,
    protocol: Protocol = SHORTEST,
    data: DataKind = "synthetic",
    options: Options = DEFAULT,
    memory_bytes: int | None = None,
    python: str = sys.executable,
    kept: Mapping[str, str] = NOTHING,
) -> Outcome:
    request = TrialRequest(
        scenario=file.stem,
        file=str(file),
        file_hash=content_hash(file),
        regime=regime,
        backend=backend,
        device=device or Device("cpu"),
        seed=0,
        data=data,
        protocol=protocol,
        options=options,
        twin_hash=catalog.twins(file)[backend] if options.native else "",
    )
    limits = Limits(timeout_s, f"--timeout {timeout_s:g} s", memory_bytes)
    return trial.launch(python, request, limits, kept=kept)


def builtin(
    scenario: str, regime: str, backend: str, options: Options = DEFAULT, protocol: Protocol = SHORTEST
) -> Outcome:
    """Run a built-in regime."""
    return run(catalog.builtin_folder() / f"{scenario}.py", backend, regime, options=options, protocol=protocol)


def measured(outcome: Outcome) -> Measurement:
    assert outcome.failure is None, outcome.failure
    assert outcome.measurement is not None
    return outcome.measurement
