"""Linux: what /proc and /sys say, looked for below ``root``. None, or empty: this system does not tell."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from kerasbench.text import parse_ranges, whole_number

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
# Of version 2, and of controllers of version 1: that of the CPU has either name, on most systems both.
GROUP_FOLDERS = ("", "cpu", "cpu,cpuacct", "memory")
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
# NVIDIA's, AMD's, NVIDIA's in a Windows system's Linux, those of displays, and others.
ACCELERATORS = ("nvidia*", "kfd", "dxg", "dri/renderD*", "accel*")
MAKERS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}


def chip(root: Path = ROOT) -> str:
    cpuinfo = _text(root / "proc/cpuinfo")
    fields = (re.search(rf"^{name}[ \t]*:[ \t]*(.+)$", cpuinfo, re.MULTILINE) for name in CHIP_FIELDS)
    return next((field[1].strip() for field in fields if field), "")


def cores_by_kind(root: Path = ROOT) -> dict[str, int]:
    """Return the logical CPUs of each kind of a hybrid Intel chip; empty where all are alike."""
    folder = root / "sys/devices"
    try:
        return {kind: len(parse_ranges(_text(folder / name / "cpus"))) for kind, name in HYBRID.items()}
    except ValueError:
        return {}


def machine_id(root: Path = ROOT) -> str:
    text = _text(root / "etc/machine-id")
    return text if MACHINE_ID_FORM.fullmatch(text) else ""


def is_contained(root: Path = ROOT) -> bool:
    """Tell whether this is a container, where the host's name and identifier are those of a start or of an image."""
    marked = any((root / name).exists() for name in CONTAINER_MARKS)
    return marked or CONTAINER_GROUPS.search(_text(root / OWN_CGROUP)) is not None


def governors(root: Path = ROOT) -> list[str]:
    names = {_text(file) for file in (root / CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return sorted(filter(None, names))


def throttle_count(root: Path = ROOT) -> int | None:
    """Threads of one core each repeat its count, so that only a difference between two readings says something."""
    counts = (root / CPUS).glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    return _sum(whole_number(_text(count)) for count in counts)


def on_battery(root: Path = ROOT) -> bool | None:
    folders = (root / "sys/class/power_supply").glob("*")  # also a mouse's or a keyboard's
    supplies = [folder for folder in folders if _text(folder / "scope") != "Device"]
    if any(_text(supply / "type") in WALL_SUPPLIES and _text(supply / "online") == "1" for supply in supplies):
        return False
    batteries = (supply for supply in supplies if _text(supply / "type") == "Battery")
    return True if any(_text(battery / "status") == "Discharging" for battery in batteries) else None


def display_makers(root: Path = ROOT) -> list[str]:
    """Return the makers of the GPUs on the PCI bus, with a driver or without; unknown ones by number."""
    devices = (root / "sys/bus/pci/devices").glob("*")
    numbers = {_text(device / "vendor") for device in devices if _text(device / "class").startswith(GPU_CLASSES)}
    return sorted(MAKERS.get(number, number) for number in numbers if number)


def has_accelerator(root: Path = ROOT) -> bool:
    """Tell whether a driver offers a device to compute on; that of a laptop's display counts, too."""
    return any(any((root / "dev").glob(pattern)) for pattern in ACCELERATORS)


def quota_cores(root: Path = ROOT) -> float | None:
    """Return the smallest from the process' own control group up to the root, which is what the kernel enforces."""
    quotas: list[float] = []
    for level in _levels(root):
        # Version 1 has a file for each half. ``max`` and its -1 are no quota.
        halves = f"{_text(level / 'cpu.cfs_quota_us')} {_text(level / 'cpu.cfs_period_us')}"
        for text in (_text(level / "cpu.max"), halves):
            numbers = [number for number in map(whole_number, text.split()) if number is not None]
            if len(numbers) == 2 and numbers[1]:
                quotas.append(numbers[0] / numbers[1])
    return min(quotas, default=None)


def quota_throttled(root: Path = ROOT) -> int | None:
    """Return the sum of periods up to the root: a group counts only what its own quota did, not what a parent's did."""
    return _sum(_pairs(level / "cpu.stat").get("nr_throttled") for level in _levels(root))


def oom_kills(root: Path = ROOT) -> dict[str, int | None]:
    """Return how many processes the kernel has killed so far because memory had run out, of what."""
    files = (level / name for level in _levels(root) for name in ("memory.events", "memory.oom_control"))
    in_groups = _sum(_pairs(file).get(OOM_KILLS) for file in files)
    return {"its control group": in_groups, "this machine": _pairs(root / "proc/vmstat").get(OOM_KILLS)}


def memory_left(root: Path = ROOT) -> int | None:
    """Count what control groups hold of files that were not used lately as left: it is taken back before any kill."""
    left: list[int] = []
    for level in _levels(root):
        for limit, used, idle in MEMORY_FILES:
            most_bytes, used_bytes = whole_number(_text(level / limit)), whole_number(_text(level / used))
            if most_bytes is not None and used_bytes is not None:
                left.append(max(0, most_bytes - used_bytes + _pairs(level / "memory.stat").get(idle, 0)))
    return min(left, default=None)


def _levels(root: Path) -> list[Path]:
    """Return the folders of the process' control groups, version 2's first, each from its own up to the top."""
    paths: dict[str, str] = {}  # of each controller of version 1, and of "", which is version 2
    for line in _text(root / OWN_CGROUP).splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            paths.update(dict.fromkeys(fields[1].split(","), fields[2]))
    by_path: dict[str, Path] = {}
    for folder in GROUP_FOLDERS:
        # A path that leads out of the control group's namespace starts with "/..".
        parts = [part for part in paths.get(folder.partition(",")[0], "/").split("/") if part not in ("", "..")]
        for depth in range(len(parts), -1, -1):
            level = root.joinpath("sys/fs/cgroup", folder, *parts[:depth])
            # "cpu" is mostly a link to "cpu,cpuacct": counted once.
            by_path.setdefault(os.path.realpath(level), level)
    return list(by_path.values())


def _pairs(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(file).splitlines())
    numbers = {pair[0]: whole_number(pair[1]) for pair in pairs if len(pair) == 2}
    return {name: number for name, number in numbers.items() if number is not None}


def _sum(counts: Iterable[int | None]) -> int | None:
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
