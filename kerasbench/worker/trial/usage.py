"""What this process uses: processor time, how often the kernel took a processor away from it, and memory."""

import dataclasses
import re
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kerasbench.exchange.measurement import Block
from kerasbench.exchange.turns import Turn
from kerasbench.worker.trial.busy import BusyCores
from kerasbench.worker.trial.card_use import OF_CARD, Share, untold
from kerasbench.worker.trial.others import UNKNOWN, Counters, counters, cpu_ns_of, helpers_of

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

    def since(self, began: "Reading", count: int, turn: Turn) -> Block:
        """Return the slice of so many units that began there and ends here."""
        ns, cpu_ns = self.ns - began.ns, self.cpu_ns - began.cpu_ns
        switching_ns = SWITCH_NS * (self.switches + self.waits - began.switches - began.waits)
        taken = self.machine.taken(began.machine, ns, cpu_ns + self.busy_ns - began.busy_ns + switching_ns)
        return Block(count, ns, turn.cycle, turn.position, cpu_ns, *taken)


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

    def with_card(self, slice_: Block) -> Block:
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
    if sys.platform != "darwin" and (found := PEAK.search(_text(status))):
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii", "replace")
    except OSError:
        return ""
