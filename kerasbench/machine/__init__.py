"""Which machine this is."""

import dataclasses
import hashlib
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import psutil

from kerasbench.exchange.devices import processors
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

    @property
    def title(self) -> str:
        """What tells it from others, in words: ``AMD EPYC, 2 cores, 24 GiB, host 5bce98f73f3e``."""
        host = f"host {self.host}" if self.host else "host not recorded"
        return ", ".join(
            [self.chip, f"{self.cores} cores", f"{self.memory_bytes / (1 << 30):.0f} GiB", *self.gpus, host]
        )

    @property
    def tells_gpus(self) -> bool:
        """False for a Mac without any: either an older kerasbench looked, or system_profiler did not answer in time."""
        return bool(self.gpus) or not self.system.startswith("Darwin")

    def same_as(self, other: "Machine") -> bool:
        """Tell whether two machines may be one; a host, or a Mac's GPU, that was not recorded may be any.

        So this is no equality: what may be either of two is neither of them. See ``told_apart`` for more than two.
        """
        hosts = bool(self.host and other.host)
        gpus = self.tells_gpus and other.tells_gpus
        one, two = (
            dataclasses.replace(machine, host=machine.host if hosts else "", gpus=machine.gpus if gpus else [])
            for machine in (self, other)
        )
        return one.identity == two.identity


def told_apart(machines: Sequence[Machine]) -> list[list[int]]:
    """Return the indices of machines that are one, in the order in which each first appears.

    What may be either of two that differ (its host was not recorded, and there are two) is a machine of its own.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, one in enumerate(machines):
        alike.setdefault((one.identity, one.tells_gpus), []).append(index)
    distinct = [machines[indices[0]] for indices in alike.values()]
    groups: list[tuple[Machine | None, list[int]]] = []  # None: nothing else belongs there
    for one, indices in zip(distinct, alike.values(), strict=True):
        if _may_be_several(one, distinct):
            groups.append((None, indices))
        elif found := next((held for first, held in groups if first is not None and one.same_as(first)), None):
            found += indices
        else:
            groups.append((one, indices))
    return [sorted(indices) for _, indices in groups]


def _may_be_several(one: Machine, machines: Sequence[Machine]) -> bool:
    """Tell whether a machine may be either of two that are not the same. Among all others ``same_as`` is transitive."""
    near = [machine for machine in machines if one.same_as(machine)]
    return any(not first.same_as(second) for first, second in combinations(near, 2))


def fingerprint() -> Machine:
    """Return this machine's."""
    apple = sys.platform == "darwin"
    chip = macos.chip() if apple else linux.chip()
    gpus, driver = _apple_gpu() if apple else _cards()
    return Machine(
        chip=chip or platform.processor() or platform.machine(),
        cores=processors(),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cores_by_kind=macos.cores_by_kind() if apple else linux.cores_by_kind(),
        gpus=gpus,
        driver=driver,
        host=hashlib.sha256(platform.node().encode()).hexdigest()[:12],
    )


def _apple_gpu() -> tuple[list[str], str]:
    """Return the Apple GPU, if there is one; its driver is the system."""
    gpu = macos.gpu()
    return [gpu.label] if gpu else [], ""


def _cards() -> tuple[list[str], str]:
    """Return NVIDIA's cards and then AMD's, and the versions of their drivers."""
    nvidias, amds = nvidia.cards(), linux.amd_cards()
    drivers = [nvidias[0].driver if nvidias else "", linux.amd_driver() if amds else ""]
    return [card.name for card in nvidias] + amds, ", ".join(driver for driver in drivers if driver)
