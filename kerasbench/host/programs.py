"""Which other programs used the CPU during a block, by the names of their processes."""

import time
from collections.abc import Mapping
from typing import NamedTuple

MOST_PROGRAMS = 3
LEAST_CPUS = 0.1  # logical CPUs on average, about what makes a turn not count (``load.OF_ONE``)


class CpuTimes(NamedTuple):
    """What each process has used so far. One that this user may not look at is missing."""

    at_s: float
    used_s: Mapping[tuple[int, float], tuple[str, float]]  # by number and start: its name, and its time on CPUs


def cpu_times() -> CpuTimes:
    """Return the times of all processes but this one and its children."""
    import psutil  # which nothing needs that only reads results

    here = psutil.Process()
    own = {here.pid, *(child.pid for child in here.children(recursive=True))}
    used_s = {}
    for process in psutil.process_iter(["name", "create_time", "cpu_times"]):
        name, times = process.info["name"], process.info["cpu_times"]
        if process.pid not in own and name and times is not None:
            used_s[process.pid, process.info["create_time"]] = (name, times.user + times.system)
    return CpuTimes(time.monotonic(), used_s)


def busiest(before: CpuTimes, after: CpuTimes) -> list[str]:
    """Return the names of those that kept a CPU busy in between, the busiest first; what has ended is not known."""
    passed_s = after.at_s - before.at_s
    used_s: dict[str, float] = {}
    for process, (name, total_s) in after.used_s.items():
        _, earlier_s = before.used_s.get(process, (name, 0.0))
        used_s[name] = used_s.get(name, 0.0) + total_s - earlier_s
    busy = [name for name, spent_s in used_s.items() if spent_s > LEAST_CPUS * passed_s]
    return sorted(busy, key=used_s.__getitem__, reverse=True)[:MOST_PROGRAMS]
