"""What a slice used, in readings of some ten microseconds (studies/cost-of-looking.md); host/load.py judges it."""

import ctypes
import dataclasses
import mmap
import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kerasbench.protocol.measurement import Slice, Turn

NS_PER_S = 1_000_000_000
PROC = Path("/proc")
STAT_BYTES = 1 << 20  # of /proc/stat: more than a thousand processors need
FREE, STEAL = (4, 5), 8  # the fields of a line there: idle and waiting for a disk; kept by a hypervisor
CPU_TIMES = slice(11, 15)  # of /proc/PID/stat behind the program's name: its own, and of children that are gone
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)  # in /proc/PID/status
HEAT = Path("/sys/devices/system/cpu/cpu0/thermal_throttle")
HOST_CPU_LOAD_INFO, IDLE_STATE, STATES = 3, 2, 4  # macOS: mach/host_info.h, mach/machine.h
# macOS: rusage_info_v0 of sys/resource.h, in words of 64 bits. Unlike the resident size, the footprint holds what was
# compressed and what Metal has taken.
RUSAGE_WORDS, FOOTPRINT = 12, 9
OF_CARD = 0.05  # of an NVIDIA card's multiprocessors, by the driver's own samples: more disturbs a slice
# What the kernel needs to put one thread in the place of another is nobody's time, and no idle time either: 1.8 to
# 2 us where a model does that 27,000 to 51,000 times a second (TensorFlow and JAX on 4 cores of a virtual machine).
SWITCH_NS = 1_500
NVML = "libnvidia-ml.so.1"  # of the driver
NOT_FOUND = 6  # nvml.h: there is no sample
MOST = 1_024  # samples: a second has six of each process
LOOK_BACK_US = 1_000_000  # the driver samples six times a second, or once: some slices have no sample of their own


@dataclass(frozen=True)
class Counters:
    """What the processors that this process may run on have done so far. None: the system does not say."""

    processors: int = 0
    free_ns: int | None = None  # in which none of the machine's processes ran, summed over the processors
    steal_ns: int | None = None  # kept by a hypervisor
    throttled: int | None = None  # how often heat slowed the machine's first processor down

    def taken(self, began: "Counters", ns: int, cpu_ns: int) -> tuple[int | None, int | None, int | None]:
        """Return what others, a hypervisor and heat took since ``began``; this process had ``cpu_ns`` of ``ns``."""
        pairs = ((self.free_ns, began.free_ns), (self.steal_ns, began.steal_ns), (self.throttled, began.throttled))
        free_ns, steal_ns, throttled = (
            None if later is None or earlier is None else later - earlier for later, earlier in pairs
        )
        if free_ns is None:
            return None, None, None
        return self.processors * ns - free_ns - (steal_ns or 0) - cpu_ns, steal_ns, throttled


UNKNOWN = Counters()


def counters_reader() -> Callable[[], Counters]:
    if sys.platform == "darwin":
        return _macos_reader()
    allowed = sorted(os.sched_getaffinity(0))
    try:
        return _linux_reader(allowed if len(allowed) < (os.cpu_count() or 1) else [], PROC, HEAT)
    except OSError:
        return lambda: UNKNOWN


def _linux_reader(confined: list[int], proc: Path, heat: Path) -> Callable[[], Counters]:
    """Read the first line of /proc/stat, for all processors, or the lines of those that the process is confined to."""
    tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
    stat = os.open(proc / "stat", os.O_RDONLY)
    throttle_counts = [os.open(file, os.O_RDONLY) for file in sorted(heat.glob("*_throttle_count"))]
    names = {b"cpu%d" % number for number in confined} or {b"cpu"}
    last = confined[-1] + 1 if confined else 0
    processors = len(confined) or os.cpu_count() or 1

    def lines() -> list[list[bytes]]:
        first = [line.split() for line in os.pread(stat, STAT_BYTES, 0).split(b"\n", last + 1)[: last + 1]]
        return [fields for fields in first if fields and fields[0] in names]

    def read() -> Counters:
        counted = lines()
        free = sum(int(fields[index]) for fields in counted for index in FREE)
        steal = sum(int(fields[STEAL]) for fields in counted)
        throttled = sum(int(os.pread(file, 32, 0)) for file in throttle_counts) if throttle_counts else None
        return Counters(processors, free * tick_ns, steal * tick_ns, throttled)

    listed = lines()
    tells = len(listed) == len(names) and any(int(field) for fields in listed for field in fields[1:])
    # A container of LXC numbers its processors anew in /proc/stat, and not where a process is confined to.
    mounts = _read_text(proc / "self" / "mountinfo").splitlines() if confined else []
    if not tells or any("lxcfs" in mount and " /proc/stat " in mount for mount in mounts):
        raise OSError(f"{proc / 'stat'} does not list these CPU cores")  # gVisor has zeros in it
    return read


def _macos_reader() -> Callable[[], Counters]:
    """Ask macOS for its ticks, as top does; it says nothing of a hypervisor or of heat there."""
    system = ctypes.CDLL(None)
    host, tick_ns, processors = system.mach_host_self(), NS_PER_S // os.sysconf("SC_CLK_TCK"), os.cpu_count() or 1
    ticks = (ctypes.c_uint * STATES)()

    def read() -> Counters:
        size = ctypes.c_uint(STATES)
        if system.host_statistics(host, HOST_CPU_LOAD_INFO, ctypes.byref(ticks), ctypes.byref(size)):
            return UNKNOWN
        return Counters(processors, ticks[IDLE_STATE] * tick_ns)

    return read


def child_processes(process: str = "self", proc: Path = PROC) -> list[str]:
    ids: list[str] = []
    tasks = proc / process / "task"
    with suppress(OSError):  # it has ended meanwhile
        for thread in sorted(os.listdir(tasks)):
            for child in _read_text(tasks / thread / "children").split():
                ids += [child, *child_processes(child, proc)]
    return ids


def cpu_ns_of(processes: list[str], proc: Path = PROC) -> int:
    """0 for those that are gone."""
    if not processes:
        return 0
    stats = [_read_text(proc / process / "stat").rpartition(")")[2].split() for process in processes]
    return sum(int(ticks) for fields in stats for ticks in fields[CPU_TIMES]) * (NS_PER_S // os.sysconf("SC_CLK_TCK"))


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


CardShare = Callable[[int], float | None]  # the largest that others used in the last so many ns; None: not told


class _Sample(ctypes.Structure):  # nvml.h, nvmlProcessUtilizationSample_t; percent
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("at_us", ctypes.c_ulonglong),
        ("multiprocessors", ctypes.c_uint),
        ("others", 3 * ctypes.c_uint),  # memory, encoder, decoder
    )


def card_share_reader(
    uuid: str, others: Collection[int] | None, open_library: Callable[[str], Any] = ctypes.CDLL
) -> CardShare | None:
    """Return a function that asks the driver (NVML) for others' use of that card; None: it does not say."""
    # Others were on it before the block: in a container nobody learns NVML's number for its own process, so whoever
    # comes later cannot be told from the block's columns. Untested on a GPU.
    if not uuid or others is None:
        return None
    if not others:
        return lambda ns: 0.0
    card = ctypes.c_void_p()
    try:
        nvml = open_library(NVML)
        used = nvml.nvmlDeviceGetProcessUtilization
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(card)):
            return None
    except (OSError, AttributeError):  # AttributeError: the driver is older than the function
        return None
    samples = (_Sample * MOST)()

    def share(ns: int) -> float | None:
        since_us = time.time_ns() // 1_000 - ns // 1_000 - LOOK_BACK_US
        count = ctypes.c_uint(MOST)
        if failed := used(card, samples, ctypes.byref(count), ctypes.c_ulonglong(since_us)):
            return 0.0 if failed == NOT_FOUND else None  # nobody computed, or it is not told, as of a slice (MIG)
        percent_at = Counter[int]()  # samples of one moment are added
        for sample in samples[: count.value]:
            if sample.pid in others and sample.at_us >= since_us:
                percent_at[sample.at_us] += sample.multiprocessors
        return max(percent_at.values(), default=0) / 100

    return share


@dataclass(frozen=True)
class Reading:
    ns: int
    cpu_ns: int  # of all threads, of helpers and of those that are gone
    switches: int  # how often the kernel took a processor away from this process, or it gave one back itself, to wait
    machine: Counters = UNKNOWN
    done: int | None = None
    rss_bytes: int | None = None
    page_faults: int = 0  # those that read nothing from a disk

    def since(self, began: "Reading", count: int, turn: Turn) -> Slice:
        ns, cpu_ns = self.ns - began.ns, self.cpu_ns - began.cpu_ns
        switching_ns = SWITCH_NS * (self.switches - began.switches)
        taken = self.machine.taken(began.machine, ns, cpu_ns + switching_ns)
        slice_ = Slice(count, ns, turn.cycle, turn.position, cpu_ns, *taken, done=self.done, rss_bytes=self.rss_bytes)
        return dataclasses.replace(slice_, page_faults=self.page_faults - began.page_faults)


@dataclass
class Meter:
    machine: Callable[[], Counters] = field(default_factory=counters_reader)
    helpers: list[str] = field(default_factory=list)  # processes that this one has started
    card: CardShare | None = None
    on_device: Callable[[], int | None] | None = None  # the live bytes there, of a long block
    reads_memory: bool = False
    done: int = 0  # units so far

    def look_for_helpers(self) -> None:
        """That takes too long to be done within a slice."""
        self.helpers = child_processes()

    def read(self) -> Reading:
        now_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
        used, gone = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        own_ns = cpu_ns + cpu_ns_of(self.helpers) + round((gone.ru_utime + gone.ru_stime) * NS_PER_S)
        done, held_bytes = (self.done, rss_bytes()) if self.reads_memory else (None, None)
        switches = used.ru_nivcsw + used.ru_nvcsw
        return Reading(now_ns, own_ns, switches, self.machine(), done, held_bytes, used.ru_minflt)

    def with_card(self, slice_: Slice) -> Slice:
        """Add what others used of the card, and what is held of it: this takes longer, so it is no reading."""
        if self.on_device is not None:
            slice_ = dataclasses.replace(slice_, device_bytes=self.on_device())
        share = self.card(slice_.ns) if self.card else None
        return slice_ if share is None else dataclasses.replace(slice_, card_share=share, disturbed=share > OF_CARD)


def rss_bytes(proc: Path = PROC) -> int:
    if sys.platform == "darwin":
        usage = (ctypes.c_uint64 * RUSAGE_WORDS)()
        if ctypes.CDLL(None).proc_pid_rusage(os.getpid(), 0, ctypes.byref(usage)):
            raise OSError("macOS does not tell how much memory this process holds")
        return int(usage[FOOTPRINT])
    return int(_read_text(proc / "self" / "statm").split()[1]) * mmap.PAGESIZE


def peak_rss_bytes(proc: Path = PROC) -> int:
    """By VmHWM: Linux starts ru_maxrss with what the parent held when it made the child (fs/exec.c keeps it)."""
    if sys.platform != "darwin" and (peak := PEAK.search(_read_text(proc / "self" / "status"))):
        return int(peak[1]) * 1024
    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_rss if sys.platform == "darwin" else peak_rss * 1024  # macOS counts bytes, Linux KiB


def reset_peak_rss(proc: Path = PROC) -> bool:
    """Begin ``peak_rss_bytes`` anew; False: it stays. Linux alone has a way (proc_pid_clear_refs(5))."""
    try:
        (proc / "self" / "clear_refs").write_text("5")
    except OSError:  # another system, or a container that allows no write
        return False
    return True
