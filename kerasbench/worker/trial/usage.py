"""What this process uses: processor time, how often the kernel took a processor away from it, and memory."""

import re
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from kerasbench.exchange.measurement import Block
from kerasbench.exchange.turns import Turn

STATUS = Path("/proc/self/status")
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Reading:
    """What the clock says, and what this process has used so far.

    ``cpu_ns`` is of all its threads; ``switches`` count how often the kernel took a processor away from it.
    """

    ns: int
    cpu_ns: int
    switches: int

    def since(self, began: "Reading", count: int, turn: Turn) -> Block:
        """Return the slice of so many units that began there and ends here."""
        return Block(count, self.ns - began.ns, turn.cycle, turn.position, self.cpu_ns - began.cpu_ns)


def read() -> Reading:
    """Read the clock and the counters, now."""
    return Reading(time.perf_counter_ns(), time.process_time_ns(), _involuntary_switches())


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
