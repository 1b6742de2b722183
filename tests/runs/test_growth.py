"""A parent that runs hundreds of trials holds what they have measured, and nothing else."""

import io
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from kerasbench.processes import block
from kerasbench.processes.block import BlockMember
from kerasbench.processes.outcome import Outcome
from kerasbench.report.progress import ConsoleProgress
from kerasbench.results.run import exactly
from kerasbench.results.store import Store
from kerasbench.runs.machine import MachineMonitor
from tests import made, stand_in
from tests.scripted import run

SETTLED = 0.2  # of the trials: by then everything that is imported late has been
TRIAL_BYTES = 64 << 10  # what is kept of a trial takes about 10 KiB; the rest is the allocator's


@pytest.mark.processes
@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.weekly)])
def test_trials_leave_no_descriptor_no_thread_and_no_memory_behind(store: Store, tmp_path: Path, count: int) -> None:
    held: list[tuple[int, int]] = []  # by this process before each block: descriptors, threads
    memory_bytes: list[int] = []

    def launch(entrants: Sequence[BlockMember], *rest: Any) -> list[Outcome | None]:
        here = psutil.Process()
        held.append((here.num_fds(), threading.active_count()))
        memory_bytes.append(here.memory_info().rss)
        return block.measure(entrants, *rest)

    stand_in.furnish(tmp_path)
    cases = [made.case(f"s{number}", backend) for number in range(5) for backend in stand_in.BACKENDS]
    record = run(
        store,
        launch,
        *cases,
        effort=exactly(count // len(cases)),
        events=ConsoleProgress(Console(file=io.StringIO())),
        monitor=MachineMonitor(look=lambda sample_s: made.state()),
        interpreter=lambda backend: str(tmp_path / "python"),
    )
    assert [trial.failure for trial in record.trials] == [None] * count
    settled = int(SETTLED * len(held))
    assert set(held[settled:]) == {held[settled]}
    assert memory_bytes[-1] - memory_bytes[settled] < TRIAL_BYTES * (1 - SETTLED) * count
