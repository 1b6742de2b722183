"""Machines that are none: this one under several names, each with a lock, a home folder and children of its own.

``ssh`` is a stand-in that starts on this machine what it is to start on another one.
"""

import os
import subprocess
import sys
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
export HOME="{folder}/$2"
unset XDG_STATE_HOME
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
    home = folder / name
    home.mkdir()
    stand_in.furnish(home)
    return script(
        home / "kerasbench",
        f"#!/bin/sh\nexport HOME={home} KERASBENCH_MACHINE={name}\nunset XDG_STATE_HOME\ncd {PROJECT}\nshift 2\n"
        f'exec {sys.executable} -m tests.stand_in.command {home} 1 "$@"\n',
    )


def ssh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in of ssh before the real one; return the file in which each of its command lines is a line."""
    program = script(folder / "bin" / "ssh", SSH.format(folder=folder))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return program.with_name("log")


def left(home: Path) -> list[Path]:
    return [file for place in home.rglob("asked") for file in place.rglob("*")]


def there(home: Path) -> list[Run]:
    files = [file for file in left(home) if file.suffix in (".json", ".jsonl") and file.stat().st_size]
    return [load(file) for file in files]


def hangs_in_round_2(home: Path) -> None:
    """Wait until a child of a machine's second round hangs."""
    stand_in.wait_for(lambda: any(run.trials for run in there(home)))
    stand_in.hang(home, "trial-jax")
    stand_in.wait_for(lambda: stand_in.hung(home) != [])


def running(home: Path) -> str:
    """Return the processes that have a machine's folder in their command line; nothing where they have ended."""
    command = ["pgrep", "-af", f"command {home} "]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def records(folder: Path) -> dict[str, Run]:
    """Return what has come from each machine, by its name."""
    runs = [load(file) for file in (folder / "results").glob("*.json*")]
    return {run.carried.host: run for run in runs if run.carried}


def tried(record: Run) -> list[tuple[int, str]]:
    return sorted((trial.round, trial.backend) for trial in record.trials)
