"""macOS: what sysctl, notifyutil and pmset say, none of which needs root."""

import re
import subprocess

TIMEOUT_S = 5
CHIP = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
CORES = ["/usr/sbin/sysctl", "hw.perflevel0.physicalcpu", "hw.perflevel1.physicalcpu"]
CORE_KINDS = ("performance", "efficiency")
THERMAL_KEY = "com.apple.system.thermalpressurelevel"
THERMAL_LEVEL = ["/usr/bin/notifyutil", "-g", THERMAL_KEY]
POWER_SOURCE = ["/usr/bin/pmset", "-g", "batt"]
POWER_SETTINGS = ["/usr/bin/pmset", "-g"]
BATTERY_OF_SOURCE = {"AC Power": False, "Battery Power": True, "UPS Power": True}
# Macs with a high-power mode say powermode (0 automatic, 1 low, 2 high), the others lowpowermode (0, 1).
POWER_MODE = re.compile(r"^\s*(?:low)?powermode\s+(\d+)\s*$", re.MULTILINE)
LOW_POWER = 1


def chip() -> str:
    """Return the processor's name (``Apple M1``), empty where sysctl does not tell."""
    return _output(CHIP).strip()


def cores_by_kind() -> dict[str, int]:
    """Return the physical cores of each kind; empty where all are alike, as on Intel."""
    return parse_cores_by_kind(_output(CORES))


def parse_cores_by_kind(text: str) -> dict[str, int]:
    """Return the counts out of sysctl's ``hw.perflevel0.physicalcpu: 4``; level 0 has the fastest cores."""
    found = {int(level): int(count) for level, count in re.findall(r"hw\.perflevel(\d)\.physicalcpu: (\d+)", text)}
    return {name: found[level] for level, name in enumerate(CORE_KINDS) if level in found} if len(found) > 1 else {}


def thermal_level() -> int | None:
    """Return the thermal pressure: 0 nominal, 1 moderate, 2 heavy, 3 trapping, 4 sleeping; None if not told."""
    return parse_thermal_level(_output(THERMAL_LEVEL))


def parse_thermal_level(text: str) -> int | None:
    """Return the level out of ``notifyutil -g``'s text."""
    fields = text.split()
    # A failure is told on standard output too, as "<key>: Failed with code 9", which is no level 9.
    if len(fields) == 2 and fields[0] == THERMAL_KEY and fields[1].isascii() and fields[1].isdecimal():
        return int(fields[1])
    return None


def on_battery() -> bool | None:
    """Return whether the machine draws from a battery, its own or a UPS's; None if not told."""
    return parse_power_source(_output(POWER_SOURCE))


def parse_power_source(text: str) -> bool | None:
    """Return whether ``pmset -g batt``'s text says battery."""
    source = re.search(r"Now drawing from '([^']+)'", text)
    return BATTERY_OF_SOURCE.get(source[1]) if source else None


def low_power() -> bool | None:
    """Return whether the low-power mode is on, None where there is no such mode."""
    return parse_low_power(_output(POWER_SETTINGS))


def parse_low_power(text: str) -> bool | None:
    """Return whether ``pmset -g``'s text says low-power mode."""
    mode = POWER_MODE.search(text)
    return int(mode[1]) == LOW_POWER if mode else None


def _output(command: list[str]) -> str:
    """Return what a command prints, empty where it fails or takes more than TIMEOUT_S."""
    try:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
