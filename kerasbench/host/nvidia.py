"""NVIDIA: what the driver's management library (NVML) says, by way of nvidia-ml-py."""

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

PACKAGE = "nvidia-ml-py"
LIBRARY = "libnvidia-ml.so.1"  # of the driver
INTERVAL_S = 1.0  # clocks and heat change over seconds, and the parent is to be quiet
MIG = "MIG-"  # how the UUID of a slice of a card begins; a card's own begins with GPU-
EXCLUSIVE_PROCESS = 3  # nvml.h, nvmlComputeMode_t
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
    """One reading of a GPU. None: not reported. Empty reasons: none, or not reported."""

    sm_clock_mhz: int | None
    reasons: list[str]
    temperature_c: int | None


@dataclass(frozen=True)
class Card:
    """One GPU of this machine."""

    name: str
    driver: str
    uuid: str = ""  # GPU-8f2a…; empty: not reported
    exclusive: bool = False  # for one process at a time


@dataclass(frozen=True)
class Watched:
    """What NVML reports of one GPU around a trial."""

    uuid: str = ""  # of the card, or of the slice (MIG) that was named; empty where CUDA may take another
    # The processes that computed on it before: the host's numbers, which match no process inside a container.
    neighbours: list[int] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)  # they come in while the trial runs


def package_missing() -> bool:
    """Tell whether there is a driver that could be asked, and no nvidia-ml-py to ask it with."""
    if _library() is not None:
        return False
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def cards() -> list[Card]:
    """Return this machine's NVIDIA GPUs in the order of their bus, none where there is no driver."""
    with _opened() as nvml:
        if nvml is None:
            return []
        driver = _told(nvml, "nvmlSystemGetDriverVersion") or ""
        named = [(_told(nvml, "nvmlDeviceGetName", handle), handle) for handle in _handles(nvml)]
        return [Card(name, driver, _uuid(nvml, handle), _is_exclusive(nvml, handle)) for name, handle in named if name]


def cuda_of(cards: Sequence[Card]) -> int | None:
    """Return the newest CUDA major version that these cards' driver speaks, None without a card or a known driver."""
    majors = [int(major) for card in cards if (major := card.driver.partition(".")[0]).isdecimal()]
    return next((cuda for cuda, least in OLDEST_DRIVER.items() if majors and min(majors) >= least), None)


@contextmanager
def watch(name: str) -> Iterator[Watched]:
    """Sample a GPU once a second meanwhile, in a thread.

    ``name`` is one entry of CUDA_VISIBLE_DEVICES under CUDA_DEVICE_ORDER=PCI_BUS_ID: a number or a UUID.
    """
    with _device(name) as (nvml, handle):
        if handle is None:
            yield Watched()
            return
        apps = _told(nvml, "nvmlDeviceGetComputeRunningProcesses", handle) or []
        watched = Watched(_uuid_for_cuda(nvml, name, handle), [app.pid for app in apps])
        # A slice has no clocks and no heat of its own; a whole card does not know this function.
        card = _told(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle) or handle
        with _sampling(nvml, card, watched.samples):
            yield watched


def processes(name: str) -> list[int] | None:
    """Return what computes or draws on the card that an entry of CUDA_VISIBLE_DEVICES means, by its driver's numbers.

    Inside a container they are the host's, which match no process there. None: not reported.
    """
    with _device(name) as (nvml, handle):
        if handle is None:
            return None
        kinds = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")
        found = [_told(nvml, kind, handle) for kind in kinds]
        return None if None in found else sorted({one.pid for of_kind in found for one in of_kind or ()})


def uuid(name: str) -> str:
    """Return the UUID of the card or slice that an entry of CUDA_VISIBLE_DEVICES means; empty: not reported."""
    with _device(name) as (nvml, handle):
        return "" if handle is None else _uuid(nvml, handle)


def free_bytes(name: str) -> int | None:
    """Return the free memory of the card or slice that an entry of CUDA_VISIBLE_DEVICES means; None: not reported."""
    with _device(name) as (nvml, handle):
        memory = None if handle is None else _told(nvml, "nvmlDeviceGetMemoryInfo", handle)
        return None if memory is None else int(memory.free)


def is_exclusive(name: str) -> bool:
    """Tell whether the card that an entry of CUDA_VISIBLE_DEVICES means is for one process at a time."""
    with _device(name) as (nvml, handle):
        return handle is not None and _is_exclusive(nvml, handle)


def position(name: str, uuids: Sequence[str]) -> int | None:
    """Return which card an entry of CUDA_VISIBLE_DEVICES means: by its number, or by its UUID or the beginning of it.

    None where it means none of them, or several.
    """
    if name.isascii() and name.isdecimal():
        return int(name) if int(name) < len(uuids) else None
    found = [index for index, uuid in enumerate(uuids) if name and uuid.lower().startswith(name.lower())]
    return found[0] if len(found) == 1 else None


def _library() -> Any | None:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


@contextmanager
def _opened() -> Iterator[Any | None]:
    """Yield NVML, ready to be asked; None without nvidia-ml-py or a driver that answers."""
    nvml = _library()
    if nvml is not None:
        try:
            nvml.nvmlInit()
        except nvml.NVMLError:
            nvml = None
    try:
        yield nvml
    finally:
        if nvml is not None:
            _told(nvml, "nvmlShutdown")


@contextmanager
def _device(name: str) -> Iterator[tuple[Any, Any | None]]:
    """Yield NVML and the handle of the card or slice that an entry of CUDA_VISIBLE_DEVICES means; None: not there."""
    with _opened() as nvml:
        handle = None
        if nvml is not None and name.startswith(MIG):
            handle = _told(nvml, "nvmlDeviceGetHandleByUUID", name)
        elif nvml is not None:
            handles = _handles(nvml)
            index = position(name, [_uuid(nvml, one) for one in handles])
            handle = None if index is None else handles[index]
        yield nvml, handle


def _told(nvml: Any, function: str, *arguments: Any) -> Any | None:
    """Return what a function of NVML says; None where this card, driver or nvidia-ml-py does not know it."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError, UnicodeDecodeError):  # the last: a broken name
        return None


def _handles(nvml: Any) -> list[Any]:
    """Return the cards that this process may use: NVML also counts those that a control group denies it."""
    count = _told(nvml, "nvmlDeviceGetCount") or 0
    handles = (_told(nvml, "nvmlDeviceGetHandleByIndex", index) for index in range(count))
    return [handle for handle in handles if handle is not None]


def _uuid(nvml: Any, handle: Any) -> str:
    return _told(nvml, "nvmlDeviceGetUUID", handle) or ""


def _is_exclusive(nvml: Any, handle: Any) -> bool:
    return bool(_told(nvml, "nvmlDeviceGetComputeMode", handle) == EXCLUSIVE_PROCESS)


def _uuid_for_cuda(nvml: Any, name: str, handle: Any) -> str:
    """Return the UUID that CUDA must report; empty where cards are sliced and no slice was named: CUDA chooses one."""
    modes = [_told(nvml, "nvmlDeviceGetMigMode", card) for card in _handles(nvml)]
    sliced = any(mode and mode[0] for mode in modes)
    return "" if sliced and not name.startswith(MIG) else _uuid(nvml, handle)


@contextmanager
def _sampling(nvml: Any, card: Any, samples: list[Sample]) -> Iterator[None]:
    over = threading.Event()

    def sample_until_over() -> None:
        while True:
            sample = _sample(nvml, card)
            if sample is not None:
                samples.append(sample)
            if over.wait(INTERVAL_S):
                return

    thread = threading.Thread(target=sample_until_over, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread to be had: nothing is known, which the signals of noise say
        yield
        return
    try:
        yield
    finally:
        over.set()
        thread.join()


def _sample(nvml: Any, card: Any) -> Sample | None:
    clock = _told(nvml, "nvmlDeviceGetClockInfo", card, nvml.NVML_CLOCK_SM)
    mask = _told(nvml, "nvmlDeviceGetCurrentClocksEventReasons", card)
    if mask is None:  # the name before driver 535
        mask = _told(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", card)
    temperature = _told(nvml, "nvmlDeviceGetTemperature", card, nvml.NVML_TEMPERATURE_GPU)
    if (clock, mask, temperature) == (None, None, None):
        return None
    return Sample(clock, [reason for bit, reason in REASONS.items() if (mask or 0) & bit], temperature)
