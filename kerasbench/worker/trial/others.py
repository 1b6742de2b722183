"""What other processes use of this machine while a slice is measured, by the kernel's own counters.

They are read at both ends of a slice, so that takes some ten microseconds (benchmarks/others_cost.py).
"""

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

NS_PER_S = 1_000_000_000
STAT = "/proc/stat"
FREE, STEAL = (4, 5), 8  # the fields of a line there: idle and waiting for a disk; kept by a hypervisor
STAT_BYTES = 1 << 20  # more than a thousand processors need
HEAT = Path("/sys/devices/system/cpu/cpu0/thermal_throttle")
PROCESSES = Path("/proc")
CPU_TIMES = slice(11, 13)  # of /proc/PID/stat behind the program's name, which may have blanks: utime and stime
HOST_CPU_LOAD_INFO, IDLE_STATE, STATES = 3, 2, 4  # macOS: mach/host_info.h, mach/machine.h

# A slice is disturbed where others took more than this: of one processor, or of all that the process may run on.
# On a quiet machine it is up to 0.08 of one in nineteen of twenty slices. Bursts of 0.2 make convolutions 1.35 times as
# long on torch and 1.17 times on TensorFlow (docs/method.md, "Other processes"). Linux counts in ticks of 10 ms.
OF_ONE, OF_ALL = 0.12, 0.06
LEAST_NS = 12_000_000  # in a slice that is shorter than the others, which a short epoch makes


class Taken(NamedTuple):
    """What others took while a slice was measured, as a ``Block`` keeps it."""

    others_ns: int | None = None
    steal_ns: int | None = None
    throttled: int | None = None
    disturbed: bool = False


@dataclass(frozen=True)
class Counters:
    """What the processors that this process may run on have done so far; only differences mean something.

    ``free_ns`` is the time in which none of the machine's processes ran, summed over the processors, ``steal_ns`` what
    a hypervisor kept. ``throttled`` counts how often heat slowed the first one down. None: the system does not tell.
    """

    processors: int = 0
    free_ns: int | None = None
    steal_ns: int | None = None
    throttled: int | None = None

    def taken(self, began: "Counters", ns: int, cpu_ns: int) -> Taken:
        """Return what others took since ``began``, in ``ns`` of which this process used ``cpu_ns``."""
        free_ns, steal_ns = _since(self.free_ns, began.free_ns), _since(self.steal_ns, began.steal_ns)
        if free_ns is None:
            return Taken()
        others_ns = max(0, self.processors * ns - free_ns - (steal_ns or 0) - cpu_ns)
        return Taken(
            others_ns,
            steal_ns,
            _since(self.throttled, began.throttled),
            is_disturbed(others_ns + (steal_ns or 0), ns, self.processors),
        )


UNKNOWN = Counters()


def is_disturbed(taken_ns: int, ns: int, processors: int) -> bool:
    """Tell whether others took so much of a slice of ``ns`` that it does not count."""
    return taken_ns > max(LEAST_NS, min(OF_ONE, OF_ALL * processors) * ns)


def _since(later: int | None, earlier: int | None) -> int | None:
    return None if later is None or earlier is None else later - earlier


def counters() -> Callable[[], Counters]:
    """Return what reads them, made once for a process: it keeps the files open."""
    if sys.platform == "darwin":
        return _apple()
    confined = sorted(os.sched_getaffinity(0))
    try:
        return _linux(confined if len(confined) < (os.cpu_count() or 1) else [], STAT, HEAT)
    except OSError:
        return lambda: UNKNOWN


def _linux(confined: list[int], stat: str, heat: Path) -> Callable[[], Counters]:
    """Return what reads /proc/stat: its first line for all processors, or the lines of those of ``confined``."""
    tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
    source = os.open(stat, os.O_RDONLY)
    hot = [os.open(file, os.O_RDONLY) for file in sorted(heat.glob("*_throttle_count"))]
    names = {b"cpu%d" % number for number in confined} or {b"cpu"}
    last = confined[-1] + 1 if confined else 0
    processors = len(confined) or os.cpu_count() or 1

    def read() -> Counters:
        lines = [line.split() for line in os.pread(source, STAT_BYTES, 0).split(b"\n", last + 1)[: last + 1]]
        own = [fields for fields in lines if fields[0] in names]
        free, steal = (sum(int(fields[one]) for fields in own for one in wanted) for wanted in (FREE, (STEAL,)))
        throttled = sum(int(os.pread(one, 32, 0)) for one in hot) if hot else None
        return Counters(processors, free * tick_ns, steal * tick_ns, throttled)

    read()
    return read


def _apple() -> Callable[[], Counters]:
    """Return what asks macOS for its ticks, as top does; it tells neither of a hypervisor nor of heat there."""
    system = ctypes.CDLL(None)
    host, tick_ns, processors = system.mach_host_self(), NS_PER_S // os.sysconf("SC_CLK_TCK"), os.cpu_count() or 1
    ticks = (ctypes.c_uint * STATES)()

    def read() -> Counters:
        size = ctypes.c_uint(STATES)
        if system.host_statistics(host, HOST_CPU_LOAD_INFO, ctypes.byref(ticks), ctypes.byref(size)):
            return UNKNOWN
        return Counters(processors, ticks[IDLE_STATE] * tick_ns)

    return read


def helpers_of(process: str = "self", root: Path = PROCESSES) -> list[str]:
    """Return the processes that a process has started, and those that they have: what feeds a model, for instance."""
    found: list[str] = []
    for children in sorted(root.glob(f"{process}/task/*/children")):
        for child in _text(children).split():
            found += [child, *helpers_of(child, root)]
    return found


def cpu_ns_of(processes: list[str], root: Path = PROCESSES) -> int:
    """Return the processor time that they have used so far; 0 for those that are gone."""
    if not processes:
        return 0
    behind = [_text(root / one / "stat").rpartition(")")[2].split() for one in processes]
    return sum(int(ticks) for fields in behind for ticks in fields[CPU_TIMES]) * (NS_PER_S // os.sysconf("SC_CLK_TCK"))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
