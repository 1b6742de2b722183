"""A parent that runs hundreds of trials holds what they have measured, and nothing else."""

import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from kerasbench.processes import block
from kerasbench.processes.block import BlockMember, BlockPolicy, OnBlockEvent
from kerasbench.processes.outcome import Outcome
from kerasbench.report.progress import ConsoleProgress
from kerasbench.results.run import exactly
from kerasbench.results.store import Store
from kerasbench.runs.machine import MachineMonitor
from kerasbench.runs.rounds import Rounds
from tests import made, stand_in

pytestmark = pytest.mark.processes

SETTLED = 0.2  # of the trials: by then everything that is imported late has been
TRIAL_BYTES = 64 << 10  # what is kept of a trial takes about 10 KiB; the rest is the allocator's


@dataclass
class Counting:
    """Measures blocks of stand-ins, and notes what this process holds before each: descriptors, threads, memory."""

    held: list[tuple[int, int]] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)

    def __call__(
        self, entrants: Sequence[BlockMember], rules: BlockPolicy, on_event: OnBlockEvent, alone: bool, /
    ) -> list[Outcome | None]:
        here = psutil.Process()
        self.held.append((here.num_fds(), threading.active_count()))
        self.memory_bytes.append(here.memory_info().rss)
        return block.measure(entrants, rules, on_event, alone)


@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.weekly)])
def test_trials_leave_no_descriptor_no_thread_and_no_memory_behind(tmp_path: Path, count: int) -> None:
    stand_in.furnish(tmp_path)
    cases = [made.case(f"s{number}", backend) for number in range(5) for backend in stand_in.BACKENDS]
    planned = made.plan(*cases, effort=exactly(count // len(cases)))
    store = Store.create(tmp_path / "results", "2026-01-02T03:04:05Z")
    monitor = MachineMonitor(look=lambda sample_s: made.state())
    launch = Counting()
    progress = ConsoleProgress(Console(file=io.StringIO()))
    python = str(tmp_path / "python")
    record = Rounds(
        planned, store, launch, monitor, progress, made.state(), interpreter=lambda backend: python
    ).execute()
    assert len(record.trials) == count
    assert all(one.failure is None for one in record.trials)
    blocks = len(launch.held)
    settled = int(SETTLED * blocks)
    assert set(launch.held[settled:]) == {launch.held[settled]}
    grown_bytes = launch.memory_bytes[-1] - launch.memory_bytes[settled]
    assert grown_bytes < TRIAL_BYTES * (1 - SETTLED) * count
