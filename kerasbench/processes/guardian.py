"""Outlives its parent and kills what that has left: children that are stopped do not see that their parent has ended.

Run by ``python -I -S guardian.py KERASBENCH_CHILD``, with the standard library alone. Lines of its input: ``+NUMBER``
of a process group, ``+MARK`` for what processes have in that variable, ``-NUMBER`` or ``-MARK`` when nothing is left.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # it leaves with its parent and not before
SWEEPS = 3  # what was just being forked is found the next time


def main(name: str) -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    print(flush=True)  # it stands by
    left: set[str] = set()
    for line in sys.stdin:
        change = left.add if line.startswith("+") else left.discard
        change(line[1:].strip())
    for group in filter(str.isdigit, left):
        with suppress(OSError):  # it has gone by itself
            os.killpg(int(group), signal.SIGKILL)
    marks = {f"{name}={mark}".encode() for mark in left if not mark.isdigit()}
    for _ in range(SWEEPS if marks else 0):
        sweep(marks)


def sweep(marks: set[bytes]) -> None:
    """Kill what carries a mark, wherever it has gone; only Linux shows that without further libraries."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone meanwhile, or another user's
            if not marks.isdisjoint(environment.read_bytes().split(b"\0")):
                os.kill(int(environment.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
