"""Linux: what /proc and /sys say. ``root`` is where they are looked for."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from kerasbench.text import parse_ranges

ROOT = Path("/")
# x86 says "model name"; Arm boards say "Model" or "Hardware", of the board as a whole.
CHIP_FIELDS = ("model name", "Model", "Hardware")
HYBRID = {"performance": "cpu_core", "efficiency": "cpu_atom"}
CPUS = "sys/devices/system/cpu"
MACHINE_ID_FORM = re.compile(r"[0-9a-f]{32}")
# Docker's, Podman's, and the folder of secrets that Kubernetes puts into a pod.
CONTAINER_MARKS = (".dockerenv", "run/.containerenv", "run/secrets/kubernetes.io")
CONTAINER_GROUPS = re.compile(r"docker[-/]|kubepods|libpod|crio-")
OWN_CGROUP = "proc/self/cgroup"
# Version 1 mounts the CPU controller under either name, most systems under both.
CPU_CONTROLLERS = ("cpu", "cpu,cpuacct")
MEMORY_CONTROLLERS = ("memory",)
# The limit, what is used of it, and the line of memory.stat with the files that were not used lately: versions 2 and 1.
MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
OOM_KILLS = "oom_kill"  # a line of memory.events (version 2), of memory.oom_control (1) and of vmstat; not before 4.13
# A laptop that charges over USB-C has a supply of type USB and often none of type Mains.
WALL_SUPPLIES = ("Mains", "USB")
# PCI's classes of display controllers, and of processing accelerators, which some cards without a connector are.
GPU_CLASSES = ("0x03", "0x1200")
MAKERS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}


def chip(root: Path = ROOT) -> str:
    """Return the processor's name, empty where the kernel does not report it."""
    fields: dict[str, str] = {}
    for line in _text(root / "proc/cpuinfo").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return next((fields[name] for name in CHIP_FIELDS if fields.get(name)), "")


def cores_by_kind(root: Path = ROOT) -> dict[str, int]:
    """Return the logical processors of each kind of a hybrid Intel chip; empty where all are alike."""
    found = {name: _count(_text(root / "sys/devices" / folder / "cpus")) for name, folder in HYBRID.items()}
    return found if all(found.values()) else {}


def _count(ranges: str) -> int:
    try:
        return len(parse_ranges(ranges))
    except ValueError:
        return 0


def machine_id(root: Path = ROOT) -> str:
    """Return the system's own identifier, empty where it has none yet."""
    found = _text(root / "etc/machine-id")
    return found if MACHINE_ID_FORM.fullmatch(found) else ""


def is_contained(root: Path = ROOT) -> bool:
    """Tell whether this is a container, where the host's name and identifier are those of a start or of an image."""
    marked = any((root / name).exists() for name in CONTAINER_MARKS)
    return marked or CONTAINER_GROUPS.search(_text(root / OWN_CGROUP)) is not None


def governors(root: Path = ROOT) -> list[str]:
    """Return the distinct frequency governors, sorted; empty in most virtual machines, which have none."""
    governors = {_text(file) for file in (root / CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return sorted(filter(None, governors))


def throttle_count(root: Path = ROOT) -> int | None:
    """Return how often heat has slowed cores down since the machine started, None where the kernel does not count.

    Threads of one core each repeat its count, so that only a difference between two readings says something.
    """
    counts = [_text(file) for file in (root / CPUS).glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    numbers = [int(count) for count in counts if _whole(count)]
    return sum(numbers) if numbers else None


def on_battery(root: Path = ROOT) -> bool | None:
    """Return whether a battery feeds the machine, None where it does not say (most desktops and servers)."""
    supplies = [
        {name: _text(supply / name) for name in ("type", "scope", "online", "status")}
        for supply in sorted((root / "sys/class/power_supply").glob("*"))
    ]
    own = [supply for supply in supplies if supply["scope"] != "Device"]  # a mouse's or a keyboard's
    if any(supply["type"] in WALL_SUPPLIES and supply["online"] == "1" for supply in own):
        return False
    if any(supply["type"] == "Battery" and supply["status"] == "Discharging" for supply in own):
        return True
    return None


def display_makers(root: Path = ROOT) -> list[str]:
    """Return the makers of the GPUs on the PCI bus, sorted, with a driver or without; unknown ones by number."""
    devices = (root / "sys/bus/pci/devices").glob("*")
    gpus = [device for device in devices if _text(device / "class").startswith(GPU_CLASSES)]
    numbers = {_text(gpu / "vendor") for gpu in gpus}
    return sorted(MAKERS.get(number, number) for number in numbers if number)


def quota_cores(root: Path = ROOT) -> float | None:
    """Return how many cores' worth of time this process may use, None without a quota.

    The smallest along the way from the process' own control group up to the root, which is what the kernel enforces.
    """
    quotas = [_quota(level) for level in _levels(root, CPU_CONTROLLERS)]
    return min((quota for quota in quotas if quota is not None), default=None)


def quota_throttled(root: Path = ROOT) -> int | None:
    """Return in how many periods a quota has stopped this process' control groups so far, None where nothing counts.

    The sum along the way up to the root: a group counts only what its own quota did, not what a parent's did.
    """
    stats = [parse_pairs(_text(level / "cpu.stat")) for level in _levels(root, CPU_CONTROLLERS)]
    counts = [stat["nr_throttled"] for stat in stats if "nr_throttled" in stat]
    return sum(counts) if counts else None


def parse_cgroup(text: str) -> dict[str, str]:
    """Return /proc/self/cgroup's path for each controller of version 1, and for "", which is version 2."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            paths.update(dict.fromkeys(fields[1].split(","), fields[2]))
    return paths


def parse_cpu_max(text: str) -> float | None:
    """Return cpu.max' quota over its period (both µs), in cores; None for ``max``, which is no quota."""
    fields = text.split()
    if len(fields) != 2 or not all(_whole(field) for field in fields) or int(fields[1]) == 0:
        return None
    return int(fields[0]) / int(fields[1])


def parse_pairs(text: str) -> dict[str, int]:
    """Return a file's lines of a name and a whole number, such as a control group's cpu.stat has."""
    pairs = [line.split() for line in text.splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and _whole(pair[1])}


@dataclass(frozen=True)
class Kills:
    """How many processes the kernel has killed so far because memory had run out: None where it does not count."""

    group: int | None
    machine: int | None


def oom_kills(root: Path = ROOT) -> Kills:
    """Return the kills in this process' control groups, and on the machine (those of all control groups included)."""
    levels = _levels(root, MEMORY_CONTROLLERS)
    texts = (_text(level / name) for level in levels for name in ("memory.events", "memory.oom_control"))
    counts = [parse_pairs(text).get(OOM_KILLS) for text in texts]
    known = [count for count in counts if count is not None]
    return Kills(sum(known) if known else None, parse_pairs(_text(root / "proc/vmstat")).get(OOM_KILLS))


def memory_left(root: Path = ROOT) -> int | None:
    """Return how many bytes this process' control groups may still take, None without a limit.

    What they hold of files that were not used lately is left too: the kernel takes it back before it kills.
    """
    left = [_memory_left(level) for level in _levels(root, MEMORY_CONTROLLERS)]
    return min((one for one in left if one is not None), default=None)


def _memory_left(level: Path) -> int | None:
    for limit, used, idle in MEMORY_FILES:
        bounds = _text(level / limit), _text(level / used)
        if all(map(_whole, bounds)):
            idle_bytes = parse_pairs(_text(level / "memory.stat")).get(idle, 0)
            return max(0, int(bounds[0]) - int(bounds[1]) + idle_bytes)
    return None


def _levels(root: Path, controllers: tuple[str, ...]) -> list[Path]:
    """Return the folders of the process' control groups, version 2's first, each from its own up to the top."""
    paths, groups = parse_cgroup(_text(root / OWN_CGROUP)), root / "sys/fs/cgroup"
    tops = [(groups, paths.get("", "/"))] + [(groups / name, paths.get(controllers[0], "/")) for name in controllers]
    seen: dict[str, Path] = {}
    for top, path in tops:
        # A path that leads out of the control group's namespace starts with "/..".
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts), -1, -1):
            level = top.joinpath(*parts[:depth])
            # "cpu" is mostly a link to "cpu,cpuacct": counted once.
            seen.setdefault(os.path.realpath(level), level)
    return list(seen.values())


def _quota(level: Path) -> float | None:
    quota = parse_cpu_max(_text(level / "cpu.max"))
    if quota is not None:
        return quota
    # Version 1 has a file for each half; its -1 is no quota.
    return parse_cpu_max(f"{_text(level / 'cpu.cfs_quota_us')} {_text(level / 'cpu.cfs_period_us')}")


def _whole(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _text(path: Path) -> str:
    """Return a file's text without the newline at its end, empty where it cannot be read."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
