"""NVIDIA: what nvidia-smi says, which every driver brings along."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

TIMEOUT_S = 30  # without persistence mode the driver takes 1 to 3 s to wake each card up
COMMAND = "nvidia-smi"
# The reasons are called clocks_event_reasons since about driver 535; the older name is still understood.
FIELDS = ("clocks.sm", "clocks_throttle_reasons.active", "temperature.gpu")
QUERY = ",".join(FIELDS)
FORMAT = "csv,noheader,nounits"
# Clocks and heat change over seconds; nvidia-smi itself costs a few ms of a core each time.
INTERVAL_MS = 1000
# nvml.h, nvmlClocksEventReason*
REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
# Heat or the power supply slows the GPU down; the power cap is left out, it holds whenever a big GPU is busy.
THERMAL_REASONS = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})


# The oldest driver of each CUDA major version, the newest first (CUDA Toolkit release notes, minimum driver versions).
OLDEST_DRIVER = {13: 580, 12: 525}


@dataclass(frozen=True)
class Sample:
    """One reading of a GPU; None is what it does not tell, and no reasons are none or not told."""

    sm_clock_mhz: int | None
    reasons: list[str]
    temperature_c: int | None


@dataclass(frozen=True)
class Card:
    """One GPU of this machine and the driver that it runs with."""

    name: str
    driver: str


def cards() -> list[Card]:
    """Return this machine's NVIDIA GPUs, none where there is no driver."""
    command = [COMMAND, "--query-gpu=name,driver_version", f"--format={FORMAT}"]
    return parse_cards(_output(command) or "")


def parse_cards(text: str) -> list[Card]:
    """Return the GPUs out of ``--query-gpu=name,driver_version``'s lines."""
    fields = (line.rpartition(",") for line in text.splitlines())
    return [Card(name.strip(), driver.strip()) for name, comma, driver in fields if comma and name.strip()]


def cuda_of(cards: Sequence[Card]) -> int | None:
    """Return the newest CUDA major version that these cards' driver speaks, None without a card or a known driver."""
    majors = [int(major) for card in cards if (major := card.driver.partition(".")[0]).isdecimal()]
    return next((cuda for cuda, least in OLDEST_DRIVER.items() if majors and min(majors) >= least), None)


def watch_command(index: str) -> list[str]:
    """Return the command that prints a sample every INTERVAL_MS until it is stopped.

    ``index`` is the driver's, which is CUDA's only under CUDA_DEVICE_ORDER=PCI_BUS_ID; a UUID does as well.
    """
    return [COMMAND, f"--id={index}", f"--query-gpu={QUERY}", f"--format={FORMAT}", f"--loop-ms={INTERVAL_MS}"]


def parse_samples(text: str) -> list[Sample]:
    """Return the watch command's samples, one for each whole line that tells anything."""
    # What stops the watcher may cut its last line, and 54 °C would read as 5 °C.
    whole = text[: text.rfind("\n") + 1]
    samples = (_sample(line) for line in whole.splitlines())
    return [sample for sample in samples if sample is not None]


def reason_names(mask: int) -> list[str]:
    """Return the names of the event reasons whose bits are set."""
    return [name for bit, name in REASONS.items() if mask & bit]


def compute_apps(index: str) -> list[int] | None:
    """Return the processes that compute on a GPU, None where nvidia-smi does not tell.

    They are the host's numbers: inside a container they match no process, or there are none at all.
    """
    said = _output([COMMAND, f"--id={index}", "--query-compute-apps=pid", f"--format={FORMAT}"])
    return None if said is None else parse_compute_apps(said)


def _output(command: list[str]) -> str | None:
    try:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def parse_compute_apps(text: str) -> list[int]:
    """Return the process numbers out of ``--query-compute-apps=pid``'s lines."""
    numbers = (_number(line) for line in text.splitlines())
    return [number for number in numbers if number is not None]


def _sample(line: str) -> Sample | None:
    numbers = [_number(field) for field in line.split(",")]
    if len(numbers) != len(FIELDS) or all(number is None for number in numbers):
        return None
    clock, mask, temperature = numbers
    return Sample(clock, reason_names(mask or 0), temperature)


def _number(field: str) -> int | None:
    """Return a decimal or 0x number; None for [N/A], [Not Supported] and whatever else stands for no value."""
    try:
        return int(field, 0)
    except ValueError:
        return None
