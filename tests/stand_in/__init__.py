"""Whole runs without Keras: everything is real but the children, which are small scripts, and the machine's noise."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from kerasbench.protocol.messages import Message, Phase, ProbeReport
from kerasbench.protocol.stages import BATCH, ONE
from tests import made
from tests.untraced import untraced

BACKENDS = ("jax", "torch")
HERE = Path(__file__).parent


def furnish(folder: Path, name: str = "mine") -> Path:
    """Put a stand-in for the interpreter and its answers into a folder; return the scenario that it describes."""
    interpreter = folder / "python"
    shutil.copy(HERE / "python.sh", interpreter)
    answer(folder, "describe", Message(descriptions=[made.entry(name).description]))
    for number, backend in enumerate(BACKENDS, start=1):
        answer(
            folder, f"probe-{backend}", Message(probe=ProbeReport(backend, "3.11.7", {"keras": "3.15.1"}, [made.CPU]))
        )
        for kind, measurement in (("trial", made.measurement(number)), ("parts", made.with_parts(steady_ms=number))):
            said = Message(measurement=made.without(measurement, ONE, BATCH))
            answer(folder, f"{kind}-{backend}", Message(begun="train"), phase(), said)
    scenario = folder / f"{name}.py"
    scenario.write_text("from kerasbench import Scenario\nraise SystemExit('never executed')\n")
    return scenario


def hang(folder: Path, name: str) -> None:
    """Have the children that would give this answer hang, whatever they are sent, until they are killed."""
    (folder / f"{name}.hangs").touch()


def existing(numbers: Iterable[int]) -> Iterator[psutil.Process]:
    """Yield those processes that there are; one that ends while it is looked for is not there."""
    for number in numbers:
        with suppress(psutil.NoSuchProcess):
            yield psutil.Process(number)


def hung(folder: Path) -> list[psutil.Process]:
    return list(existing(int(file.suffix.removeprefix(".")) for file in folder.glob("*.hung.*")))


def started(folder: Path) -> list[int]:
    known = folder / "children"
    return [int(number) for number in known.read_text().split()] if known.exists() else []


def children(folder: Path) -> list[psutil.Process]:
    return [process for process in existing(started(folder)) if not is_gone(process)]


def is_gone(process: psutil.Process) -> bool:
    """Tell whether a process has ended; one whose parent has gone too is reaped when init gets round to it."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


def wait_for(condition: Callable[[], bool], at_most_s: float = 60) -> None:
    deadline_s = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline_s, "it never happened"
        time.sleep(0.005)


@contextmanager
def handling(number: signal.Signals, handler: Any) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def forks() -> Iterator["subprocess.Popen[str]"]:
    """Start what command lines are forked from."""
    with untraced():
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.stand_in.command"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parents[1],
            env=os.environ | {"LET_IN": "yes", "OPENBLAS_NUM_THREADS": "1"},  # threads do not outlive a fork
        )
    with process:
        yield process
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()


class Command:
    """kerasbench as a user starts it, with the stand-in that a folder holds; one process for each command line."""

    def __init__(self, folder: Path, forks: "subprocess.Popen[str]", rng: random.Random) -> None:
        self.folder = folder
        self._rng = rng
        self.results = folder / "results"
        self.process = 0
        self._forks = forks

    def start(self, *arguments: str) -> int:
        """Start one command line and return its process."""
        seed = self._rng.getrandbits(32)
        self.process = self._ask(json.dumps([str(self.folder), seed, *arguments, "--results", str(self.results)]))
        return self.process

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run one command line to its end; return its exit status, and what it wrote to stdout and stderr."""
        self.start(*arguments)
        return self.ended(), *self.output()

    def ended(self, ending: signal.Signals | None = None) -> int:
        """Wait for its end, after this signal if there is one, and return its exit status, negative for a signal."""
        if ending is not None:
            os.kill(self.process, ending)  # which finds the right one, if only its remains
        self.process = 0
        return self._ask("")

    def tidy(self) -> None:
        """Leave nothing running, as a test that failed may have."""
        if self.process:
            self.ended(signal.SIGKILL)
        for child in children(self.folder):
            child.kill()

    def output(self) -> tuple[str, str]:
        """Return what the last one wrote to stdout and stderr."""
        return (self.folder / "out").read_text(), (self.folder / "err").read_text()

    def _ask(self, line: str) -> int:
        assert self._forks.stdin is not None and self._forks.stdout is not None
        self._forks.stdin.write(line + "\n")
        self._forks.stdin.flush()
        return int(self._forks.stdout.readline())


def phase() -> Message:
    return Message(phase=Phase("train", 1, 2))


def answer(folder: Path, name: str, *messages: Message) -> None:
    """Have children give an answer: describe, probe-jax, trial-jax, or parts-jax where a step is to be taken apart."""
    (folder / f"{name}.jsonl").write_bytes(b"".join(message.encode() for message in messages))
