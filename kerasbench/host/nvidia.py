"""NVIDIA: what the driver's management library (NVML) says, by way of nvidia-ml-py."""

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

PACKAGE = "nvidia-ml-py"
LIBRARY = "libnvidia-ml.so.1"  # of the driver
INTERVAL_S = 1.0  # clocks and heat change over seconds, and the parent is to be quiet
MIG = "MIG-"  # how the UUID of a slice of a card begins; a card's own begins with GPU-
# As in nvml.h: nvmlComputeMode_t, nvmlClockType_t and nvmlClocksEventReason*.
EXCLUSIVE_PROCESS = 3
CLOCK_SM = 1
REASONS = """
    gpu_idle applications_clocks_setting sw_power_cap hw_slowdown sync_boost sw_thermal_slowdown hw_thermal_slowdown
    hw_power_brake_slowdown display_clock_setting
"""  # from the lowest bit on
# Heat or the power supply slows the GPU down; the power cap is left out, it holds whenever a big GPU is busy.
THERMAL_REASONS = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})
# The oldest driver of each CUDA major version, the newest first (CUDA Toolkit release notes, minimum driver versions).
OLDEST_DRIVER = {13: 580, 12: 525}


@dataclass(frozen=True)
class Sample:
    """One reading of a GPU. None: not reported. Empty reasons: none, or not reported."""

    sm_clock_mhz: int | None
    reasons: list[str]


@dataclass(frozen=True)
class Card:
    name: str
    driver: str
    uuid: str = ""  # GPU-8f2a…; empty: not reported
    exclusive: bool = False  # for one process at a time


@dataclass(frozen=True)
class CardReading:
    uuid: str = ""  # that CUDA must report; empty where cards are sliced (MIG) and no slice was named: CUDA chooses
    neighbours: list[int] = field(default_factory=list)  # processes that computed on it before, by the host's numbers
    samples: list[Sample] = field(default_factory=list)  # they come in while the trial runs


def package_missing() -> bool:
    try:
        import pynvml  # noqa: F401
    except ImportError:
        with suppress(OSError):
            ctypes.CDLL(LIBRARY)
            return True
    return False


def cards() -> list[Card]:
    """Return this machine's NVIDIA GPUs in the order of their bus, none where there is no driver."""
    with _opened() as ask:
        driver = ask("nvmlSystemGetDriverVersion") or ""
        named = [(ask("nvmlDeviceGetName", card), card) for card in _handles(ask)]
        return [Card(name, driver, _uuid(ask, card), _is_exclusive(ask, card)) for name, card in named if name]


def cuda_of(cards: Sequence[Card]) -> int | None:
    """Return the newest CUDA major version that these cards' driver speaks, None without a card or a known driver."""
    majors = [int(major) for card in cards if (major := card.driver.partition(".")[0]).isdecimal()]
    return next((cuda for cuda, least in OLDEST_DRIVER.items() if majors and min(majors) >= least), None)


# Below, ``name`` is an entry of CUDA_VISIBLE_DEVICES under CUDA_DEVICE_ORDER=PCI_BUS_ID: a number or a UUID.


@contextmanager
def watch(name: str) -> Iterator[CardReading]:
    with _device(name) as (ask, device):
        if device is None:
            yield CardReading()
            return
        apps = ask("nvmlDeviceGetComputeRunningProcesses", device) or []
        is_sliced = any(mode and mode[0] for mode in (ask("nvmlDeviceGetMigMode", card) for card in _handles(ask)))
        uuid = "" if is_sliced and not name.startswith(MIG) else _uuid(ask, device)
        watched = CardReading(uuid, [app.pid for app in apps])
        # A slice has no clocks and no heat of its own; a whole card does not know this function.
        card = ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device) or device
        over = threading.Event()

        def sample_until_over() -> None:
            while True:
                if (sample := _sample(ask, card)) is not None:
                    watched.samples.append(sample)
                if over.wait(INTERVAL_S):
                    return

        thread = threading.Thread(target=sample_until_over, daemon=True)
        with suppress(RuntimeError):  # no thread to be had: nothing is known, which the signals of noise say
            thread.start()
        try:
            yield watched
        finally:
            over.set()
            if thread.is_alive():
                thread.join()


def uuid_and_processes(name: str) -> tuple[str, list[int] | None]:
    """By the driver's numbers, inside a container the host's, which match no process there; None: not reported."""
    with _device(name) as (ask, device):
        kinds = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")
        listed = [ask(kind, device) for kind in kinds]
        numbers = sorted({process.pid for of_kind in listed for process in of_kind or ()})
        return _uuid(ask, device), None if None in listed else numbers


def free_bytes(name: str) -> int | None:
    with _device(name) as (ask, device):
        memory = ask("nvmlDeviceGetMemoryInfo", device)
        return None if memory is None else int(memory.free)


def is_exclusive(name: str) -> bool:
    with _device(name) as (ask, device):
        return _is_exclusive(ask, device)


def position(name: str, uuids: Sequence[str]) -> int | None:
    """Return which card is meant, by its number, its UUID or the beginning of that; None: none of them, or several."""
    if name.isascii() and name.isdecimal():
        return int(name) if int(name) < len(uuids) else None
    places = [index for index, uuid in enumerate(uuids) if name and uuid.lower().startswith(name.lower())]
    return places[0] if len(places) == 1 else None


# Calls a function of NVML by its name. None: this card, driver or nvidia-ml-py does not know it, or there is none.
Ask = Callable[..., Any]


@contextmanager
def _opened() -> Iterator[Ask]:
    try:
        import pynvml

        pynvml.nvmlInit()
    except ImportError:
        pynvml = None
    except pynvml.NVMLError:  # no driver that answers
        pynvml = None

    def ask(function: str, *arguments: Any) -> Any:
        if pynvml is None or None in arguments:
            return None
        try:
            return getattr(pynvml, function)(*arguments)
        except (pynvml.NVMLError, AttributeError, UnicodeDecodeError):  # the last: a broken name
            return None

    try:
        yield ask
    finally:
        ask("nvmlShutdown")


@contextmanager
def _device(name: str) -> Iterator[tuple[Ask, Any]]:
    with _opened() as ask:
        if name.startswith(MIG):
            yield ask, ask("nvmlDeviceGetHandleByUUID", name)
        else:
            handles = _handles(ask)
            index = position(name, [_uuid(ask, card) for card in handles])
            yield ask, None if index is None else handles[index]


def _handles(ask: Ask) -> list[Any]:
    """Return the cards that this process may use: NVML also counts those that a control group denies it."""
    handles = (ask("nvmlDeviceGetHandleByIndex", index) for index in range(ask("nvmlDeviceGetCount") or 0))
    return [handle for handle in handles if handle is not None]


def _uuid(ask: Ask, device: Any) -> str:
    return ask("nvmlDeviceGetUUID", device) or ""


def _is_exclusive(ask: Ask, card: Any) -> bool:
    return bool(ask("nvmlDeviceGetComputeMode", card) == EXCLUSIVE_PROCESS)


def _sample(ask: Ask, card: Any) -> Sample | None:
    clock = ask("nvmlDeviceGetClockInfo", card, CLOCK_SM)
    mask = ask("nvmlDeviceGetCurrentClocksEventReasons", card)
    if mask is None:  # the name before driver 535
        mask = ask("nvmlDeviceGetCurrentClocksThrottleReasons", card)
    if clock is None and mask is None:
        return None
    reasons = [reason for bit, reason in enumerate(REASONS.split()) if (mask or 0) >> bit & 1]
    return Sample(clock, reasons)
