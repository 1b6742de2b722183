"""Which machine this is."""

import hashlib
import platform
import sys
from dataclasses import dataclass, field

import psutil

from kerasbench.devices import processors
from kerasbench.machine import linux, macos, nvidia


@dataclass(frozen=True)
class Machine:
    """What identifies a machine in a table.

    ``cores`` are the logical processors that a run may use, ``cores_by_kind`` the physical ones where they differ
    (``performance``, ``efficiency``); ``gpus`` are cards, with ``driver`` where there is one; ``host`` is a hash of the
    host name, enough to tell two equal machines apart.
    """

    chip: str
    cores: int
    memory_bytes: int
    system: str
    architecture: str
    cores_by_kind: dict[str, int] = field(default_factory=dict)
    gpus: list[str] = field(default_factory=list)
    driver: str = ""
    host: str = ""

    @property
    def identity(self) -> tuple[object, ...]:
        """What stays when the system or a driver is updated."""
        return (self.chip, self.cores, self.memory_bytes >> 30, self.architecture, *self.gpus, self.host)

    def same_as(self, other: "Machine") -> bool:
        """Tell whether results of both may be compared; a host that was not recorded may be any."""
        if self.host and other.host:
            return self.identity == other.identity
        return self.identity[:-1] == other.identity[:-1]


def fingerprint() -> Machine:
    """Return this machine's."""
    apple = sys.platform == "darwin"
    chip = macos.chip() if apple else linux.chip()
    return Machine(
        chip=chip or platform.processor() or platform.machine(),
        cores=processors(),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cores_by_kind=macos.cores_by_kind() if apple else linux.cores_by_kind(),
        gpus=[] if apple else [card.name for card in nvidia.cards()],
        driver="" if apple else next((card.driver for card in nvidia.cards()), ""),
        host=hashlib.sha256(platform.node().encode()).hexdigest()[:12],
    )
