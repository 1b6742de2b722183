"""kerasbench as a user starts it, with a lock of its own, so that tests run side by side, and with short trials.

``python -P tests/whole_command.py LOCK ARGUMENT…`` is ``python -m kerasbench ARGUMENT…`` that takes the file LOCK for
the machine's lock, goes through every phase, and stays in none for longer than it must: a test asks what is measured,
and not how exactly.
"""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

from kerasbench import __main__ as program
from kerasbench.host import lock
from kerasbench.plan import configure
from kerasbench.results.run import Effort
from kerasbench.runs import run

SHORT: dict[str, Any] = {
    "slice_ns": 10_000_000,
    "warmup_min_ns": 0,
    "warmup_max_ns": 200_000_000,
    "predict_warmup_ns": 10_000_000,
    "slices_max_ns": 300_000_000,
}


def command(folder: Path, *arguments: str) -> list[str]:
    """Return the command line; the lock is a file beside ``folder``, so that it is none of its results."""
    return [sys.executable, "-P", os.path.abspath(__file__), f"{folder}.lock", *arguments]


def prepare(own_lock: Path) -> None:
    """Have this process take its own lock, and look at the machine and measure shortly."""
    usual = configure.effort_of

    def short(*given: Any, **named: Any) -> Effort:
        effort = usual(*given, **named)
        return dataclasses.replace(effort, plan=dataclasses.replace(effort.plan, **SHORT))

    lock.LOCK = own_lock
    run.BEFORE_RUN_S = 0.1
    configure.effort_of = short


if __name__ == "__main__":
    prepare(Path(sys.argv.pop(1)))
    sys.exit(program.main())
