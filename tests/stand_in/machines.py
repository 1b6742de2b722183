"""Machines that are none: this one under several names, each with a lock, a home folder and children of its own.

``ssh`` is a stand-in that starts on this machine what it is to start on another one.
"""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kerasbench.results.run import Run
from kerasbench.results.store import load
from tests import stand_in

ROUNDS = 3
ALL = sorted((index, backend) for index in range(1, ROUNDS + 1) for backend in ("jax", "torch"))
PROJECT = Path(__file__).parents[2]
SSH = """#!/bin/sh
echo "$*" >>"$(dirname "$0")/log"
while [ "$1" != "--" ]; do shift; done
shift 2
exec sh -c "$*"
"""


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def machine(folder: Path, name: str) -> Path:
    """Put a machine into a folder, and return what runs kerasbench there."""
    place = folder / name
    place.mkdir()
    stand_in.furnish(place)
    return script(
        place / "kerasbench",
        f"#!/bin/sh\nexport HOME={place} KERASBENCH_MACHINE={name}\nunset XDG_STATE_HOME\ncd {PROJECT}\n"
        f"exec {sys.executable} -m tests.stand_in.command {place} 1 share\n",
    )


def answering(folder: Path, name: str, text: str) -> Path:
    """Put a machine into a folder that answers with a text, whatever it is told, until nothing more is told."""
    (folder / name).mkdir()
    said = folder / name / "said"
    said.write_text(text)
    return script(folder / name / "kerasbench", f"#!/bin/sh\ncat {said}\nexec cat >{folder / name / 'heard'}\n")


def ssh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in of ssh before the real one; return the file in which each of its command lines is a line."""
    program = script(folder / "bin" / "ssh", SSH)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program.with_name("log")


def shares(machine: Path) -> list[Path]:
    """Return what is left on a machine of shares."""
    return [file for place in machine.rglob("shares") for file in place.iterdir()]


def running(machine: Path) -> str:
    """Return the processes that have a machine's folder in their command line; nothing where they have ended."""
    command = ["pgrep", "-af", f"command {machine} "]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def records(folder: Path) -> dict[str, Run]:
    """Return what has come from each machine, by its name."""
    runs = [load(file) for file in (folder / "results").glob("*.json*")]
    return {run.carried.host: run for run in runs if run.carried}


def arrived(folder: Path) -> int:
    """Return how many lines the journals here have."""
    lines = 0
    for file in (folder / "results").glob("*.jsonl"):
        with suppress(OSError):  # its run has just ended
            lines += len(file.read_bytes().splitlines())
    return lines


def tried(record: Run) -> list[tuple[int, str]]:
    return sorted((trial.round, trial.backend) for trial in record.trials)
