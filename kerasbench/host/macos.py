"""macOS: what commands say, none of which needs root. None, or empty: not reported."""

import json
import re
import subprocess

from kerasbench.text import whole_number

TIMEOUT_S = 5
# system_profiler asks every display too: 0.1 to 0.4 s where somebody has published it, and a busy Mac takes longer.
PROFILER_TIMEOUT_S = 15
SYSCTL = "/usr/sbin/sysctl"
# -i passes over names that are not known: Intel has no level 1, and older systems do not name their levels.
CORES = [SYSCTL, "-i", *(f"hw.perflevel{level}.{fact}" for level in (0, 1) for fact in ("physicalcpu", "name"))]
# What the levels are where they have no names; an M5 Max calls them Super and Performance.
CORE_KINDS = {"0": "performance", "1": "efficiency"}
# JSON, whose keys are the same from macOS 12 to 26; the plain text is laid out for people.
GPUS = ["/usr/sbin/system_profiler", "-json", "SPDisplaysDataType"]
# platform.mac_ver() reads a file that macOS replaces for a Python built with an older SDK: 10.16 for 11, 16.0 for 26
# (cpython#135675). sw_vers comes with the system, and the variable keeps a user's own setting of it away.
VERSION = ["/usr/bin/env", "SYSTEM_VERSION_COMPAT=0", "/usr/bin/sw_vers", "-productVersion"]
THERMAL_KEY = "com.apple.system.thermalpressurelevel"
PMSET = "/usr/bin/pmset"
BATTERY_OF_SOURCE = {"AC Power": False, "Battery Power": True, "UPS Power": True}
# Macs with a high-power mode say powermode (0 automatic, 1 low, 2 high), the others lowpowermode (0, 1).
POWER_MODE = re.compile(r"^\s*(?:low)?powermode\s+(\d+)\s*$", re.MULTILINE)


def chip() -> str:
    return _output([SYSCTL, "-n", "machdep.cpu.brand_string"]).strip()


def cores_by_kind() -> dict[str, int]:
    """Return the physical cores of each kind, the fastest first; empty where all are alike, as on Intel."""
    text = _output(CORES)
    counts = dict(re.findall(r"hw\.perflevel(\d)\.physicalcpu: (\d+)", text))
    kinds = CORE_KINDS | dict(re.findall(r"hw\.perflevel(\d)\.name: (\w+)", text))
    return {kinds[level].lower(): int(counts[level]) for level in sorted(counts)} if len(counts) > 1 else {}


def gpu() -> str:
    """Return ``Apple M1 (8-core GPU)``: the same chip is sold with different numbers of them; empty for Intel, AMD."""
    try:
        cards = json.loads(_output(GPUS, PROFILER_TIMEOUT_S))["SPDisplaysDataType"]
    except (ValueError, KeyError):
        return ""
    for card in cards:  # a card's ``_name`` may be a key such as ``kHW_AppleM1Item``
        model, cores = card.get("sppci_model", ""), str(card.get("sppci_cores", ""))  # none in a virtual machine
        if model and "Apple" in card.get("spdisplays_vendor", ""):
            return model if whole_number(cores) is None else f"{model} ({cores}-core GPU)"
    return ""


def machine_id() -> str:
    platform = _output(["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"])
    match = re.search(r'"IOPlatformUUID" = "([0-9A-F-]{36})"', platform)
    return match[1] if match else ""


def is_apple_silicon() -> bool:
    return _output([SYSCTL, "-n", "hw.optional.arm64"]).strip() == "1"  # of a translated process, too


def version() -> tuple[int, ...]:
    """Return macOS' major and minor version, ``(26, 6)``, or nothing."""
    match = re.fullmatch(r"(\d+)(?:\.(\d+))?(?:\.\d+)*", _output(VERSION).strip())
    return (int(match[1]), int(match[2] or 0)) if match else ()


def thermal_level() -> int | None:
    """Return the thermal pressure: 0 nominal, 1 moderate, 2 heavy, 3 trapping, 4 sleeping."""
    fields = _output(["/usr/bin/notifyutil", "-g", THERMAL_KEY]).split()
    # A failure goes to standard output too, as "<key>: Failed with code 9", which is no level 9.
    return whole_number(fields[1]) if len(fields) == 2 and fields[0] == THERMAL_KEY else None


def on_battery() -> bool | None:
    source = re.search(r"Now drawing from '([^']+)'", _output([PMSET, "-g", "batt"]))
    return BATTERY_OF_SOURCE.get(source[1]) if source else None


def low_power() -> bool | None:
    mode = POWER_MODE.search(_output([PMSET, "-g"]))
    return mode[1] == "1" if mode else None


def _output(command: list[str], timeout_s: float = TIMEOUT_S) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=timeout_s, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
