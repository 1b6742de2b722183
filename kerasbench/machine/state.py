"""How quiet this machine is."""

import os
import sys
import time
from dataclasses import dataclass

import psutil

from kerasbench.machine import linux, macos

SAMPLE_S = 0.3  # 60 ticks of the kernel's clock on two processors: the share of time to within 2 %


@dataclass(frozen=True)
class State:
    """A machine at one moment. None: it does not tell.

    ``busy_share`` is the part of all processors' time that was in use over the last moments; ``busy_s`` and
    ``steal_s`` count that time, and what a hypervisor kept for others, since the machine started. ``thermal_level``
    is macOS' own: 0 nominal, 1 moderate, 2 heavy. ``throttle_count`` counts since the start how often heat slowed a
    core down, ``quota_throttled`` how often the control group's quota stopped its processes.
    """

    at_ns: int
    busy_share: float
    load_per_core: float
    busy_s: float
    steal_s: float | None
    thermal_level: int | None
    on_battery: bool | None
    low_power: bool | None
    governors: list[str]
    throttle_count: int | None
    quota_throttled: int | None
    quota_cores: float | None


def observe(sample_s: float = SAMPLE_S) -> State:
    """Look at this machine for so many seconds."""
    busy_share = psutil.cpu_percent(interval=sample_s) / 100
    spent = psutil.cpu_times()
    apple = sys.platform == "darwin"
    return State(
        at_ns=time.monotonic_ns(),
        busy_share=busy_share,
        load_per_core=os.getloadavg()[0] / (psutil.cpu_count() or 1),
        busy_s=busy_seconds(spent._asdict()),
        steal_s=getattr(spent, "steal", None),
        thermal_level=macos.thermal_level() if apple else None,
        on_battery=macos.on_battery() if apple else linux.on_battery(),
        low_power=macos.low_power() if apple else None,
        governors=[] if apple else linux.governors(),
        throttle_count=None if apple else linux.throttle_count(),
        quota_throttled=None if apple else linux.quota_throttled(),
        quota_cores=None if apple else linux.quota_cores(),
    )


def booted_s() -> float:
    """Return when this machine was started, in s since 1970."""
    return psutil.boot_time()


def busy_seconds(times: dict[str, float]) -> float:
    """Return the time in use out of psutil's counters: all but idle, waiting for a disk, and stolen time.

    Linux counts a guest's time in ``user`` already.
    """
    idle = ("idle", "iowait", "steal", "guest", "guest_nice")
    return sum(seconds for name, seconds in times.items() if name not in idle)
