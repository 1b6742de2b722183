"""What this process uses: processor time, how often the kernel took a processor away from it, and memory."""

import re
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kerasbench.exchange.measurement import Block
from kerasbench.exchange.turns import Turn
from kerasbench.worker.trial.others import UNKNOWN, Counters, counters, cpu_ns_of, helpers_of

STATUS = Path("/proc/self/status")
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Reading:
    """What the clock says, what this process has used so far, and what the machine has done for anybody.

    ``cpu_ns`` is of all its threads and of the processes that it has started; ``switches`` count how often the kernel
    took a processor away from it.
    """

    ns: int
    cpu_ns: int
    switches: int
    machine: Counters = UNKNOWN

    def since(self, began: "Reading", count: int, turn: Turn) -> Block:
        """Return the slice of so many units that began there and ends here."""
        ns, cpu_ns = self.ns - began.ns, self.cpu_ns - began.cpu_ns
        return Block(count, ns, turn.cycle, turn.position, cpu_ns, *self.machine.taken(began.machine, ns, cpu_ns))


@dataclass
class Meter:
    """Reads the clock and the counters. ``helpers`` are the processes that this one has started, as last looked for."""

    machine: Callable[[], Counters] = field(default_factory=counters)
    helpers: list[str] = field(default_factory=list)

    def look_for_helpers(self) -> None:
        """Look which processes this one has started. That takes too long to be done within a slice."""
        self.helpers = helpers_of()

    def read(self) -> Reading:
        """Read the clock and the counters, now."""
        now_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
        return Reading(now_ns, cpu_ns + cpu_ns_of(self.helpers), _involuntary_switches(), self.machine())


def _involuntary_switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def peak_rss_bytes(status: Path = STATUS) -> int:
    """Return the most memory that this process has held, its parent's left out.

    Linux starts ru_maxrss with what the parent held when it made the child (exec in the kernel's fs/exec.c keeps it),
    so VmHWM comes first: it belongs to the program that runs.
    """
    if sys.platform != "darwin" and (found := PEAK.search(_text(status))):
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii", "replace")
    except OSError:
        return ""
