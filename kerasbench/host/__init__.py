"""Which machine this is."""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from kerasbench.errors import UsageError
from kerasbench.host import linux, macos, nvidia
from kerasbench.protocol.columns import processors

NAME = "KERASBENCH_MACHINE"  # the variable in which a user says which machine this is
FIT = re.compile(r"[A-Za-z0-9._-]{1,40}")
SALT = "kerasbench "  # machine-id(5): it is confidential, to be hashed with something of the program's own
UUID_SHOWN = 12  # GPU-8f2a1c3d


@dataclass(frozen=True)
class Machine:
    """What identifies a machine in a table.

    ``cores`` are the logical processors that a run may use, ``cores_by_kind`` the physical ones where they differ
    (``performance``, ``efficiency``); ``gpus`` are cards, with ``driver`` where there is one, and ``cards`` the UUIDs
    of those that tell them. ``identifier`` is a hash of the system's own, or what the user calls the machine.
    A container has none, unless the user names it: its image may be that of many machines.
    """

    chip: str
    cores: int
    memory_bytes: int
    system: str
    architecture: str
    cores_by_kind: dict[str, int] = field(default_factory=dict)
    gpus: list[str] = field(default_factory=list)
    driver: str = ""
    identifier: str = ""
    cards: list[str] = field(default_factory=list)

    @property
    def identity(self) -> tuple[object, ...]:
        """What stays when the system or a driver is updated: machines are one where this is the same."""
        parts = (self.chip, self.cores, self.memory_bytes >> 30, self.architecture)
        return (*parts, *self.gpus, self.identifier, *self.cards)

    @property
    def title(self) -> str:
        """What tells it from others, in words: ``AMD EPYC, 2 cores, 24 GiB, machine 5bce98f73f3e``."""
        parts = [f"{self.cores} cores", f"{self.memory_bytes / (1 << 30):.0f} GiB", *self.gpus]
        cards = (uuid[:UUID_SHOWN] for uuid in self.cards)
        return ", ".join([self.chip, *parts, *cards, f"machine {self.identifier or 'without an identifier'}"])

    def same_as(self, other: "Machine") -> bool:
        """Tell whether two are one machine, also after an update."""
        return self.identity == other.identity


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
        identifier=_own_name() or ("" if contained else _hashed(own_id)),
        cards=sorted(card.uuid for card in nvidias if card.uuid),
    )


def _own_name() -> str:
    """Return what the user calls this machine, empty where that is left open."""
    name = os.environ.get(NAME, "")
    if name and not FIT.fullmatch(name):
        raise UsageError(f"{NAME} takes up to 40 letters, digits, dots, dashes and underscores, not {name!r}")
    return name


def _hashed(text: str) -> str:
    """Return a hash by which no other program's can be recognised; empty for nothing."""
    return hashlib.sha256(f"{SALT}{text}".encode()).hexdigest()[:12] if text else ""


def _apple_gpu() -> tuple[list[str], str]:
    """Return the Apple GPU, if there is one; its driver is the system."""
    gpu = macos.gpu()
    return [gpu.label] if gpu else [], ""


def _cards(nvidias: Sequence[nvidia.Card]) -> tuple[list[str], str]:
    """Return NVIDIA's cards and the version of their driver."""
    return [card.name for card in nvidias], nvidias[0].driver if nvidias else ""
