"""A child's process group and what has left it: signal, kill, count, sweep up; and the guardian's other side."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

MARK = "KERASBENCH_CHILD"  # in the environment of a child and of all that it starts, wherever that goes
SWEEPS = 3  # what a sweep has missed because it was just being forked, the next one finds
GUARDIAN = Path(__file__).with_name("guardian.py")


def send(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
        os.killpg(group, number)


def kill(group: int) -> None:
    """Kill all of it, stopped or not, unless its leader has been reaped: then the number may be another's."""
    with suppress(psutil.NoSuchProcess):
        if psutil.Process(group).ppid() == os.getpid():  # where SIGCHLD is ignored, the kernel has reaped it already
            send(group, signal.SIGKILL)


def has_ended(child: int) -> bool:
    """Tell whether a child has ended, without reaping it: until it is reaped, no other process has its number."""
    try:
        return psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def sweep(mark: str) -> None:
    for _ in range(SWEEPS):
        killed = False
        for number in psutil.pids():
            with suppress(OSError, psutil.Error):  # gone meanwhile, or another user's
                process = psutil.Process(number)
                if process.environ().get(MARK) == mark:
                    process.kill()
                    killed = True
        if not killed:
            return


@contextmanager
def guarded(python: str = sys.executable) -> Iterator[Callable[[str], None]]:
    """Return what tells a guardian a line (guardian.py says which); raise OSError if it cannot be started."""
    with subprocess.Popen(
        [python, "-I", "-S", str(GUARDIAN), MARK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,  # a line that reaches nobody is lost, not kept for the end
        start_new_session=True,  # it outlives what ends its parent's
    ) as guardian:
        stdin, stdout = guardian.stdin, guardian.stdout
        assert stdin is not None and stdout is not None
        if not stdout.readline():
            raise OSError("the guardian process ended at once")

        def tell(line: str) -> None:
            with suppress(BrokenPipeError):  # somebody has killed it
                stdin.write(line.encode() + b"\n")

        yield tell
