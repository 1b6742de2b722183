"""Which machine this is."""

import dataclasses
import hashlib
import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import psutil

from kerasbench.errors import UsageError
from kerasbench.exchange.devices import processors
from kerasbench.machine import linux, macos, nvidia

NAME = "KERASBENCH_MACHINE"  # the variable in which a user says which machine this is
FIT = re.compile(r"[A-Za-z0-9._-]{1,40}")
SALT = "kerasbench "  # machine-id(5): it is confidential, to be hashed with something of the program's own
UUID_SHOWN = 12  # GPU-8f2a1c3d


@dataclass(frozen=True)
class Machine:
    """What identifies a machine in a table.

    ``cores`` are the logical processors that a run may use, ``cores_by_kind`` the physical ones where they differ
    (``performance``, ``efficiency``); ``gpus`` are cards, with ``driver`` where there is one, and ``cards`` the UUIDs
    of those that tell them. ``identifier`` is a hash of the system's own, or what the user calls the machine; ``host``
    a hash of the host name, which says which one an older file without an identifier is of. A container has neither,
    unless the user names it: its host name is new at each start, and its image may be that of many machines.
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
    identifier: str = ""
    cards: list[str] = field(default_factory=list)

    @property
    def identity(self) -> tuple[object, ...]:
        """What stays when the system or a driver is updated."""
        return (*self._hardware, *self.gpus, self.name, *self.cards)

    @property
    def _hardware(self) -> tuple[object, ...]:
        return (self.chip, self.cores, self.memory_bytes >> 30, self.architecture)

    @property
    def name(self) -> str:
        """What tells it from machines of the same parts; empty where nothing does."""
        return self.identifier or self.host

    @property
    def title(self) -> str:
        """What tells it from others, in words: ``AMD EPYC, 2 cores, 24 GiB, host 5bce98f73f3e``."""
        host = f"machine {self.identifier}" if self.identifier else f"host {self.host or 'not recorded'}"
        parts = [f"{self.cores} cores", f"{self.memory_bytes / (1 << 30):.0f} GiB", *self.gpus]
        return ", ".join([self.chip, *parts, *(uuid[:UUID_SHOWN] for uuid in self.cards), host])

    @property
    def tells_gpus(self) -> bool:
        """False for a Mac without any: either an older kerasbench looked, or system_profiler did not answer in time."""
        return bool(self.gpus) or not self.system.startswith("Darwin")

    def same_as(self, other: "Machine") -> bool:
        """Tell whether two machines may be one; a host, a card or a Mac's GPU that was not recorded may be any.

        So this is no equality: what may be either of two is neither of them. See ``told_apart`` for more than two.
        """
        if self.identifier and other.identifier:
            names = (self.identifier, other.identifier)
        else:
            names = (self.host or other.host, other.host or self.host)
        cards = (set(self.cards or other.cards), set(other.cards or self.cards))
        gpus = not (self.tells_gpus and other.tells_gpus) or self.gpus == other.gpus
        return self._hardware == other._hardware and gpus and names[0] == names[1] and cards[0] == cards[1]

    def is_surely(self, other: "Machine") -> bool:
        """Tell whether two machines are one as far as anything tells: what only one of them tells is a difference."""
        names = (self.identifier, other.identifier) if self.identifier and other.identifier else (self.host, other.host)
        return self.same_as(other) and names[0] == names[1]


def told_apart(machines: Sequence[Machine]) -> list[list[int]]:
    """Return the indices of machines that are one, in the order in which each first appears.

    What may be either of two that differ (its host was not recorded, and there are two) is a machine of its own.
    """
    machines = [_identified(one, machines) for one in machines]
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


def _identified(one: Machine, machines: Sequence[Machine]) -> Machine:
    """Return a machine of an older file with the identifier of the only one that has its host name."""
    if one.identifier or not one.host:
        return one
    named = (other for other in machines if other.identifier and other.host == one.host)
    found = {other.identifier for other in named if one.same_as(other)}
    return dataclasses.replace(one, identifier=found.pop()) if len(found) == 1 else one


def _may_be_several(one: Machine, machines: Sequence[Machine]) -> bool:
    """Tell whether a machine may be either of two that are not the same. Among all others ``same_as`` is transitive."""
    near = [machine for machine in machines if one.same_as(machine)]
    return any(not first.same_as(second) for first, second in combinations(near, 2))


def fingerprint() -> Machine:
    """Return this machine's.

    Raises:
        UsageError: the user calls it what cannot be a name.
    """
    apple = sys.platform == "darwin"
    chip = macos.chip() if apple else linux.chip()
    nvidias = [] if apple else nvidia.cards()
    gpus, driver = _apple_gpu() if apple else _cards(nvidias)
    contained = not apple and linux.is_contained()
    own_id = macos.machine_id() if apple else linux.machine_id()
    return Machine(
        chip=chip or platform.processor() or platform.machine(),
        cores=processors(),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cores_by_kind=macos.cores_by_kind() if apple else linux.cores_by_kind(),
        gpus=gpus,
        driver=driver,
        host="" if contained else _hashed(platform.node()),
        identifier=_own_name() or ("" if contained else _hashed(own_id, SALT)),
        cards=sorted(card.uuid for card in nvidias if card.uuid),
    )


def _own_name() -> str:
    """Return what the user calls this machine, empty where that is left open."""
    name = os.environ.get(NAME, "")
    if name and not FIT.fullmatch(name):
        raise UsageError(f"{NAME} takes up to 40 letters, digits, dots, dashes and underscores, not {name!r}")
    return name


def _hashed(text: str, salt: str = "") -> str:
    """Return a hash by which no other program's can be recognised, where there is a salt; empty for nothing."""
    return hashlib.sha256(f"{salt}{text}".encode()).hexdigest()[:12] if text else ""


def _apple_gpu() -> tuple[list[str], str]:
    """Return the Apple GPU, if there is one; its driver is the system."""
    gpu = macos.gpu()
    return [gpu.label] if gpu else [], ""


def _cards(nvidias: Sequence[nvidia.Card]) -> tuple[list[str], str]:
    """Return NVIDIA's cards and then AMD's, and the versions of their drivers."""
    amds = linux.amd_cards()
    drivers = [nvidias[0].driver if nvidias else "", linux.amd_driver() if amds else ""]
    return [card.name for card in nvidias] + amds, ", ".join(driver for driver in drivers if driver)
