"""Which logical processors a trial runs on: of N that were asked for, each a core of its own while there are any.

Two threads of one core share its units for computing: their numbers may be neighbours (0 and 1), or lie half the
machine apart (0 and 64). Linux alone; macOS knows no affinity.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


def limit(count: int, root: Path = CPUS) -> None:
    """Keep this process on so many processors; where there is no affinity, on all."""
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, spread(allowed, {cpu: siblings(cpu, root) for cpu in allowed})[:count])


def in_use() -> str:
    """Return the processors that this process may run on, as Linux writes lists; empty where there is no affinity."""
    return ranges(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ""


def spread(allowed: Collection[int], cores: Mapping[int, Collection[int]]) -> list[int]:
    """Return these processors in an order whose first N are on as many cores as N can be on.

    ``cores`` has for each processor all of its core's, itself included. The first of each core come first, by number,
    then the second of each.
    """
    place = {cpu: sum(other < cpu for other in cores[cpu] if other in allowed) for cpu in allowed}
    return sorted(allowed, key=lambda cpu: (place[cpu], cpu))


def siblings(cpu: int, root: Path = CPUS) -> set[int]:
    """Return a core's processors by the number of one; that one alone where the kernel does not tell."""
    try:
        return {cpu} | parse_list((root / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text("ascii"))
    except (OSError, ValueError):
        return {cpu}


def parse_list(text: str) -> set[int]:
    """Return the numbers of Linux's lists, ``0-3,8``; raise ValueError for anything else."""
    found: set[int] = set()
    for part in text.strip().split(","):
        low, dash, high = part.partition("-")
        found |= set(range(int(low), int(high if dash else low) + 1))
    return found


def ranges(cpus: Collection[int]) -> str:
    """Return numbers as Linux writes them, ``0-3,8``."""
    found: list[list[int]] = []
    for cpu in sorted(cpus):
        if found and cpu == found[-1][-1] + 1:
            found[-1].append(cpu)
        else:
            found.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found)
