"""Which machine this is."""

import hashlib
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass, field

from kerasbench import text
from kerasbench.errors import UsageError
from kerasbench.git import environment
from kerasbench.host import linux, macos, nvidia
from kerasbench.protocol.columns import processors

NAME = "KERASBENCH_MACHINE"  # the variable in which a user says which machine this is
COMMIT = "KERASBENCH_COMMIT"  # the variable in which a user says which commit is measured
FIT = re.compile(r"[A-Za-z0-9._-]{1,64}")  # what either may be: a commit by SHA-256 has so many characters
SALT = "kerasbench "  # machine-id(5): it is confidential, to be hashed with something of the program's own
UUID_SHOWN = 12  # GPU-8f2a1c3d


@dataclass(frozen=True)
class Machine:
    chip: str
    cores: int  # logical CPUs that a run may use
    memory_bytes: int
    system: str
    architecture: str
    cores_by_kind: dict[str, int] = field(default_factory=dict)  # performance, efficiency; empty: alike
    gpus: list[str] = field(default_factory=list)
    driver: str = ""
    identifier: str = ""  # a hash of the system's own, or what the user calls the machine; empty in a container
    cards: list[str] = field(default_factory=list)  # UUIDs of the cards that report them

    @property
    def identity(self) -> tuple[object, ...]:
        """What stays when the system or a driver is updated: machines are one where this is the same."""
        parts = (self.chip, self.cores, self.memory_bytes >> 30, self.architecture)
        return (*parts, *self.gpus, self.identifier, *self.cards)

    @property
    def title(self) -> str:
        """What tells it from others, in words: ``AMD EPYC, 2 logical CPUs, 24 GiB, machine 5bce98f73f3e``."""
        parts = [text.count(self.cores, "logical CPU"), text.whole_gib(self.memory_bytes), *self.gpus]
        cards = (uuid[:UUID_SHOWN] for uuid in self.cards)
        which = f"machine {self.identifier or 'without an identifier'}"
        return ", ".join([self.chip, *parts, *cards, which])


def _given(variable: str) -> str:
    value = os.environ.get(variable, "")
    if value and not FIT.fullmatch(value):
        raise UsageError(f"{variable} takes up to 64 letters, digits, dots, dashes and underscores, not {value!r}")
    return value


def commit() -> str:
    if given := _given(COMMIT):
        return given
    try:
        command = ["git", "rev-parse", "HEAD"]
        process = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=10, check=True)
        return process.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def fingerprint() -> Machine:
    import psutil  # which nothing needs that only reads results

    apple = sys.platform == "darwin"
    gpu = macos.gpu() if apple else ""  # its driver is the system
    cards = [] if apple else nvidia.cards()
    # A container has no identifier of its own: its image may be that of many machines.
    system_id = macos.machine_id() if apple else ("" if linux.is_contained() else linux.machine_id())
    hashed_id = hashlib.sha256(f"{SALT}{system_id}".encode()).hexdigest()[:12] if system_id else ""
    return Machine(
        chip=(macos.chip() if apple else linux.chip()) or platform.processor() or platform.machine(),
        cores=processors(),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cores_by_kind=macos.cores_by_kind() if apple else linux.cores_by_kind(),
        gpus=[gpu] if gpu else [card.name for card in cards],
        driver=cards[0].driver if cards else "",
        identifier=_given(NAME) or hashed_id,
        cards=sorted(card.uuid for card in cards if card.uuid),
    )
