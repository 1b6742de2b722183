"""What other processes use of this machine while a slice is measured, by the kernel's own counters.

They are read at both ends of a slice, so that takes some ten microseconds (benchmarks/others_cost.py).

Processors that kerasbench itself keeps busy beside a column, in its own turns: what does a model lose by that?

What other processes use of an NVIDIA card, asked of the driver's management library (NVML) itself.

Those count that were on the card before this process first touched it: in a container nobody is told their own number
there, so that whoever comes later cannot be told from this process. Other columns of a block are stopped meanwhile.
Nobody has seen this on a card yet (docs/gpus.md).

What this process uses: processor time, how often the kernel took a processor away from it, and memory.
"""

import ctypes
import dataclasses
import mmap
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from kerasbench.protocol.columns import CUDA, Device
from kerasbench.protocol.measurement import Slice, Turn

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
    """What others took while a slice was measured, as a ``Slice`` keeps it."""

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
        for child in _read_text(children).split():
            found += [child, *helpers_of(child, root)]
    return found


def cpu_ns_of(processes: list[str], root: Path = PROCESSES) -> int:
    """Return the processor time that they have used so far; 0 for those that are gone."""
    if not processes:
        return 0
    behind = [_read_text(root / one / "stat").rpartition(")")[2].split() for one in processes]
    return sum(int(ticks) for fields in behind for ticks in fields[CPU_TIMES]) * (NS_PER_S // os.sysconf("SC_CLK_TCK"))


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


# Each is a process that waits for a byte, then computes while the first number is not 0, and keeps in a number of its
# own how long it has computed so far. It ends when its pipe does, or with the process that started it.
SPIN = """
import mmap, os, sys, time
numbers = memoryview(mmap.mmap(int(sys.argv[1]), 0)).cast("q")
own, parent = int(sys.argv[2]), os.getppid()
while os.read(0, 1):
    while numbers[0] and os.getppid() == parent:
        for _ in range(20_000):
            pass
        numbers[own] = time.process_time_ns()
"""
NUMBER_BYTES = 8


@dataclass
class BusyCores:
    """Keeps so many processors busy between ``resume`` and ``pause``; none of them is started for none.

    They may run wherever this process may when it makes them, so they are made before it limits itself.
    """

    count: int = 0
    _ran_ns: int = 0
    _since_ns: int | None = None
    _spinning: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.count:
            return
        with tempfile.TemporaryFile() as shared:
            shared.truncate(NUMBER_BYTES * (1 + self.count))
            self._numbers = memoryview(mmap.mmap(shared.fileno(), 0)).cast("q")
            for own in range(1, 1 + self.count):
                command = [sys.executable, "-I", "-S", "-c", SPIN, str(shared.fileno()), str(own)]
                one = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[shared.fileno()])
                self._spinning.append(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._spinning:
            one.kill()
            one.communicate()

    @property
    def processes(self) -> list[str]:
        """The processes that do it."""
        return [str(one.pid) for one in self._spinning]

    def resume(self) -> None:
        """Have them compute from now on."""
        if self._spinning:
            self._numbers[0], self._since_ns = 1, time.perf_counter_ns()
        for one in self._spinning:
            assert one.stdin
            one.stdin.write(b"\n")
            one.stdin.flush()

    def pause(self) -> None:
        """Have them wait."""
        if self._since_ns is not None:
            self._numbers[0] = 0
            self._ran_ns, self._since_ns = self._ran_ns + time.perf_counter_ns() - self._since_ns, None

    def used_ns(self) -> int:
        """Return the processor time that they have used so far, to about half a millisecond each."""
        return sum(self._numbers[1:]) if self._spinning else 0

    @property
    def kept(self) -> float | None:
        """How many processors they kept busy on average, where they were to; None for none."""
        return self.used_ns() / self._ran_ns if self._ran_ns else None


LIBRARY = "libnvidia-ml.so.1"  # of the driver
VISIBLE = "CUDA_VISIBLE_DEVICES"  # has one card, in the order of their bus
SUCCESS = 0
MOST = 1_024  # processes, and samples of them: a second has six of each
LOOK_BACK_US = 1_000_000  # the driver samples six times a second, or once: some slices have no sample of their own

# How much of the card's multiprocessors others may use, by the driver's own samples, before a slice is disturbed.
OF_CARD = 0.05

Share = Callable[[int], float | None]  # of the card: what others used at most in the last so many ns. None: not told


class _Process(ctypes.Structure):  # nvml.h, nvmlProcessInfo_t
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Sample(ctypes.Structure):  # nvml.h, nvmlProcessUtilizationSample_t; percent
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("at_us", ctypes.c_ulonglong),
        ("multiprocessors", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


def untold(_: int) -> float | None:
    """Return nothing: there is no card, or it does not tell."""
    return None


def card_use_of(device: Device) -> Share:
    """Return what tells others' use of this process's device; see ``watch``."""
    return watch(os.environ.get(VISIBLE, "")) if device.platform == CUDA else untold


def watch(visible: str, open_library: Callable[[str], Any] = ctypes.CDLL) -> Share:
    """Return what tells others' use of the card that an entry of CUDA_VISIBLE_DEVICES means.

    Call it before a framework touches the card.
    """
    try:
        nvml = open_library(LIBRARY)
        card = _handle(nvml, visible)
        others = None if card is None else _others(nvml, card)
    except (OSError, AttributeError):  # AttributeError: the driver is older than the function
        return untold
    if not others:
        return untold if others is None else lambda ns: 0.0
    samples = (_Sample * MOST)()

    def share(ns: int) -> float | None:
        since_us = time.time_ns() // 1_000 - ns // 1_000 - LOOK_BACK_US
        count = ctypes.c_uint(MOST)
        if nvml.nvmlDeviceGetProcessUtilization(card, samples, ctypes.byref(count), ctypes.c_ulonglong(since_us)):
            return 0.0  # nobody computed
        used: dict[int, int] = {}  # by moment
        for one in samples[: count.value]:
            if one.pid in others and one.at_us >= since_us:
                used[one.at_us] = used.get(one.at_us, 0) + one.multiprocessors
        return max(used.values(), default=0) / 100

    return share


def _handle(nvml: Any, visible: str) -> Any | None:
    """Return the card, by its number or by its UUID; None where it is not told."""
    card = ctypes.c_void_p()
    if nvml.nvmlInit_v2() != SUCCESS:
        return None
    if visible.isdecimal():
        found = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(visible)), ctypes.byref(card))
    else:
        found = nvml.nvmlDeviceGetHandleByUUID(visible.encode(), ctypes.byref(card))
    return card if found == SUCCESS else None


def _others(nvml: Any, card: Any) -> set[int] | None:
    """Return who is on the card: they compute there, or they draw. None: it is not told."""
    found: set[int] = set()
    for ask in (nvml.nvmlDeviceGetComputeRunningProcesses_v3, nvml.nvmlDeviceGetGraphicsRunningProcesses_v3):
        processes, count = (_Process * MOST)(), ctypes.c_uint(MOST)
        if ask(card, ctypes.byref(count), processes) != SUCCESS:
            return None
        found |= {one.pid for one in processes[: count.value]}
    return found


STATUS = Path("/proc/self/status")
# What the kernel needs to put one thread in the place of another is nobody's time, and no idle time either: 1.8 to
# 2 us where a model does that 27,000 to 51,000 times a second (TensorFlow and JAX on 4 cores of a virtual machine).
SWITCH_NS = 1_500
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Reading:
    """What the clock says, what this process has used so far, and what the machine has done for anybody.

    ``cpu_ns`` is of all its threads and of the processes that it has started, but for those that only keep processors
    busy: ``busy_ns``. ``switches`` count how often the kernel took a processor away from it, ``waits`` how often it
    gave one back itself, to wait.
    """

    ns: int
    cpu_ns: int
    switches: int
    machine: Counters = UNKNOWN
    busy_ns: int = 0
    waits: int = 0

    def since(self, began: "Reading", count: int, turn: Turn) -> Slice:
        """Return the slice of so many units that began there and ends here."""
        ns, cpu_ns = self.ns - began.ns, self.cpu_ns - began.cpu_ns
        switching_ns = SWITCH_NS * (self.switches + self.waits - began.switches - began.waits)
        taken = self.machine.taken(began.machine, ns, cpu_ns + self.busy_ns - began.busy_ns + switching_ns)
        return Slice(count, ns, turn.cycle, turn.position, cpu_ns, *taken)


@dataclass
class Meter:
    """Reads the clock and the counters.

    ``helpers`` are the processes that this one has started, as last looked for; but not those of ``busy``. ``card``
    tells what others use of an NVIDIA card.
    """

    machine: Callable[[], Counters] = field(default_factory=counters)
    helpers: list[str] = field(default_factory=list)
    busy: BusyCores = field(default_factory=BusyCores)
    card: Share = untold

    def look_for_helpers(self) -> None:
        """Look which processes this one has started. That takes too long to be done within a slice."""
        self.helpers = [one for one in helpers_of() if one not in self.busy.processes]

    def read(self) -> Reading:
        """Read the clock and the counters, now."""
        now_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
        own_ns = cpu_ns + cpu_ns_of(self.helpers)
        used = resource.getrusage(resource.RUSAGE_SELF)
        return Reading(now_ns, own_ns, used.ru_nivcsw, self.machine(), self.busy.used_ns(), used.ru_nvcsw)

    def with_card(self, slice_: Slice) -> Slice:
        """Return a slice that has just ended with what others used of the card; asked for outside of all slices."""
        share = self.card(slice_.ns)
        if share is None:
            return slice_
        return dataclasses.replace(slice_, card_share=share, disturbed=slice_.disturbed or share > OF_CARD)


def peak_rss_bytes(status: Path = STATUS) -> int:
    """Return the most memory that this process has held, its parent's left out.

    Linux starts ru_maxrss with what the parent held when it made the child (exec in the kernel's fs/exec.c keeps it),
    so VmHWM comes first: it belongs to the program that runs.
    """
    if sys.platform != "darwin" and (found := PEAK.search(_read_text(status))):
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB
