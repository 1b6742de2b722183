"""Each line of input is a folder, a seed and a command line, which is run in a process that is forked for it.

Forked, because importing takes longer than such a run. A line with its process id says that it has begun; an empty line
of input asks for its exit status, negative for a signal, which comes when it has ended. Its output is in the folder's
files out and err. ``python command.py FOLDER SEED ARGUMENTS`` runs one command line itself.
"""

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import scipy.special  # noqa: F401 - before the fork, as all that a run imports late

from kerasbench.cli.main import main
from kerasbench.host import lock
from kerasbench.host.noise import Surroundings
from kerasbench.modes import registry
from kerasbench.pages import files  # noqa: F401
from kerasbench.protocol.columns import Device
from kerasbench.report import progress  # noqa: F401
from kerasbench.runs import run as runs_run
from kerasbench.runs.machine import MachineMonitor, Outcomes
from tests import made

for mode in registry.MODES:
    registry.plan_module(mode.name)
    registry.mode_report(mode.name)

DISTURBED = 0.1  # of the blocks, so that some are marked


class HotNow(MachineMonitor):
    """In place of the machine's counters: a quiet machine, which is hot now and then."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def watch(
        self, devices: Sequence[Device], block: Callable[[], Outcomes], on_wait: Callable[[str], None]
    ) -> tuple[Outcomes, Sequence[Surroundings]]:
        after = made.state(thermal_level=2 if self._rng.random() < DISTURBED else None)
        return block(), [made.surroundings(after=after)] * len(devices)


def furnish(folder: Path, seed: int) -> None:
    sys.executable = str(folder / "python")
    lock.LOCK = folder / "lock"
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    vars(runs_run).update(
        observe=lambda sample_s: made.state(),
        MachineMonitor=partial(HotNow, random.Random(seed)),
    )
    # As kerasbench/__main__.py; a shell that runs the tests in the background has SIGINT ignored, nohup SIGHUP.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run(folder: Path, seed: int, arguments: list[str]) -> int:
    """Run one command line with its output in files."""
    furnish(folder, seed)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    code = main(arguments)
    sys.stdout.flush()
    return code


def serve() -> None:
    for line in sys.stdin:
        process = os.fork()
        if not process:
            folder, seed, *arguments = json.loads(line)
            os._exit(run(Path(folder), seed, arguments))
        print(process, flush=True)
        sys.stdin.readline()  # nobody sends it signals any more: only now may its number become another's
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        furnish(Path(sys.argv[1]), int(sys.argv[2]))
        sys.exit(main(sys.argv[3:]))
    serve()
