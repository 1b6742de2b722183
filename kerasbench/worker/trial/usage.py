"""What this process uses: processor time, how often the kernel took a processor away from it, and memory."""

import re
import resource
import sys
import time
from pathlib import Path

from kerasbench.exchange.measurement import Usage

STATUS = Path("/proc/self/status")
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class Meter:
    """Count from now on."""

    def __init__(self) -> None:
        self._began_cpu_ns, self._began_wall_ns = time.process_time_ns(), time.perf_counter_ns()
        self._began_switches = _involuntary_switches()

    def read(self) -> Usage:
        return Usage(
            cpu_ns=time.process_time_ns() - self._began_cpu_ns,
            wall_ns=time.perf_counter_ns() - self._began_wall_ns,
            involuntary_switches=_involuntary_switches() - self._began_switches,
        )


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
