"""What a child and its process group hold in memory, and what speaks for its having been killed for that."""

import os
import time
from contextlib import suppress

import psutil

from kerasbench.machine import linux
from kerasbench.machine.linux import Kills

LOOK_S = 1.0  # a look costs a third of a millisecond of one core
# earlyoom kills at 5 % (its -m); the kernel later still, and systemd-oomd by pressure, which comes below that.
SCARCE_SHARE = 0.05


class MemoryWatch:
    """Look once a second at what a child's process group holds, and at what the machine has left."""

    def __init__(self, group: int, limit_bytes: int | None) -> None:
        self._group = group
        self._limit_bytes = limit_bytes
        self._kills = linux.oom_kills()
        self._looked_s: float | None = None
        self._left_share = 1.0
        self.exceeded_bytes: int | None = None

    def exceeds(self) -> bool:
        """Tell whether the child has been seen to hold more than it may, with a new look if a second has passed."""
        now_s = time.monotonic()
        if self._looked_s is None or now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._look()
        return self.exceeded_bytes is not None

    def _look(self) -> None:
        machine = psutil.virtual_memory()
        self._left_share = machine.available / machine.total
        if self._limit_bytes is not None:
            held_bytes = group_bytes(self._group)
            if held_bytes > self._limit_bytes:
                self.exceeded_bytes = held_bytes

    def shortage(self) -> str:
        """Return what speaks for the child's having been killed because memory ran out; empty where nothing does."""
        return shortage(self._kills, linux.oom_kills(), self._left_share)


def available_bytes() -> int:
    """Return how much more memory may be taken: what the machine has, or what a control group leaves of it."""
    left_bytes = linux.memory_left()
    available = psutil.virtual_memory().available
    return available if left_bytes is None else min(available, left_bytes)


def group_bytes(group: int) -> int:
    """Return the resident memory of a process group; pages that its processes share count for each of them."""
    held_bytes = 0
    for number in psutil.pids():
        with suppress(OSError, psutil.Error):  # gone meanwhile
            if os.getpgid(number) == group:
                held_bytes += psutil.Process(number).memory_info().rss
    return held_bytes


def shortage(before: Kills, after: Kills, left_share: float) -> str:
    """Return why memory is to blame for a SIGKILL that nobody admits to; empty where nothing says so.

    ``left_share`` is how much of the machine's memory was available at the last look, at most a second before. It
    stands for the killers that the kernel does not count: earlyoom, systemd-oomd, macOS.
    """
    if _rose(before.group, after.group):
        return "the kernel killed a process of its control group, whose memory was used up"
    if _rose(before.machine, after.machine):
        return "the kernel killed a process of this machine, whose memory was used up"
    if left_share < SCARCE_SHARE:
        return f"{left_share:.1%} of the machine's memory was left just before"
    return ""


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
