"""Outlives its parent, however that ends, and kills what the parent has left: children that are stopped see no end.

Run by ``python -I -S guardian.py KERASBENCH_CHILD``, so by the standard library alone. A line of its input is
``+NUMBER`` for a process group or ``+MARK`` for what processes carry in their environment under that name, and
``-NUMBER`` or ``-MARK`` when nothing is left of it. It sleeps until its input ends. Where its parent has ended in
order, nothing is left then.
"""

import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # it leaves with its parent and not before
SWEEPS = 3  # what was just being forked is found the next time


def main(name: str) -> None:
    """Stand by until the input ends, and then end what is left."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    print(flush=True)  # it stands by
    known = heard(sys.stdin)
    for group in filter(str.isdigit, known):
        with suppress(OSError):  # it has gone by itself
            os.killpg(int(group), signal.SIGKILL)
    marks = {f"{name}={mark}".encode() for mark in known if not mark.isdigit()}
    for _ in range(SWEEPS if marks else 0):
        sweep(marks)


def heard(lines: Iterable[str]) -> set[str]:
    """Listen to the end and return what was there then."""
    known: set[str] = set()
    for line in lines:
        (known.add if line.startswith("+") else known.discard)(line[1:].strip())
    return known


def sweep(marks: set[bytes]) -> None:
    """Kill what carries a mark, wherever it has gone; only Linux shows that without further libraries."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone meanwhile, or another user's
            if not marks.isdisjoint(environment.read_bytes().split(b"\0")):
                os.kill(int(environment.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
