"""The whole command, as a user types it. tests/cli/test_interrupts.py has what happens to runs that are killed."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from kerasbench.results.store import load
from tests import whole_command

pytestmark = pytest.mark.real


def kerasbench(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = whole_command.command(folder, *arguments, "--results", str(folder))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)


def heed_ctrl_c() -> None:
    """Undo what a shell does to a test run in the background: SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _leave_nothing_running() -> Iterator[None]:
    yield
    for child in psutil.Process().children(recursive=True):
        child.kill()


def _is_alive(child: psutil.Process) -> bool:
    """Tell whether it runs; one that has ended stays a zombie until somebody asks for its status."""
    try:
        return child.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_ctrl_c_prints_the_table_keeps_the_file_and_gives_exit_code_130(faults: Path, tmp_path: Path) -> None:
    process = kerasbench(tmp_path, "--scenario", str(faults / "fine.py"), "--backend", "jax", "--rounds", "50")
    wait_for(lambda: any(_trials(file) for file in tmp_path.glob("*.jsonl")))
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGINT)
    tables, progress = process.communicate(timeout=60)
    assert process.returncode == 130, progress
    assert "go on: python -m kerasbench run --resume --results" in progress
    (data,) = tmp_path.glob("*.json")
    assert load(data).stopped_because == "interrupted"
    assert "| fine " in tables
    wait_for(lambda: not any(_is_alive(child) for child in children))


def test_ctrl_c_in_a_first_block_tells_what_is_known_and_keeps_nothing_of_it(faults: Path, tmp_path: Path) -> None:
    process = kerasbench(tmp_path, "--scenario", str(faults / "fine.py"), "--backend", "jax,torch", "--rounds", "3")
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith("fine: step: "))
    os.kill(process.pid, signal.SIGINT)
    _, progress = process.communicate(timeout=60)
    assert process.returncode == 130, progress
    said = progress[progress.index("interrupted in the first block of a row.") :]
    for known in ("\nfine: ", " so far\n", "  JAX: ", "  torch: ", " step ", "--resume measures this block again"):
        assert known in said
    (data,) = tmp_path.glob("*.json")
    assert load(data).trials == []


def test_a_child_does_not_outlive_a_parent_that_was_killed(faults: Path, tmp_path: Path) -> None:
    process = kerasbench(tmp_path, "--scenario", str(faults / "hangs_in_build.py"), "--backend", "jax", "--rounds", "1")
    wait_for(lambda: list(tmp_path.glob("*.jsonl")) != [])
    wait_for(lambda: len(psutil.Process(process.pid).children()) == 2)
    children = psutil.Process(process.pid).children()  # a worker, and the guardian that kills it
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not any(_is_alive(child) for child in children))
    (journal,) = tmp_path.iterdir()
    assert load(journal).trials == []


def wait_for(condition: Callable[[], bool], at_most_s: float = 120) -> None:
    deadline = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.1)


def _trials(file: Path) -> int:
    return len(load(file).trials) if file.stat().st_size else 0
