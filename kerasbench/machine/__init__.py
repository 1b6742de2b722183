"""Which machine this is."""

import platform
import sys
from dataclasses import dataclass

import psutil

from kerasbench.devices import processors
from kerasbench.machine import linux, macos


@dataclass(frozen=True)
class Machine:
    """What identifies a machine in a table: chip, cores, memory, operating system."""

    chip: str
    cores: int
    memory_bytes: int
    system: str
    architecture: str


def fingerprint() -> Machine:
    """Return this machine's. ``cores`` are the logical processors that this process may use."""
    chip = macos.chip() if sys.platform == "darwin" else linux.chip()
    return Machine(
        chip=chip or platform.processor() or platform.machine(),
        cores=processors(),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
    )
