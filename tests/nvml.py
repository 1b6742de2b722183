"""A stand-in for pynvml (nvidia-ml-py): the functions and the errors that kerasbench knows, over cards made of data."""

import threading
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Told = TypeVar("Told")

ONE, TWO = "GPU-8f2a0b1c-1111-2222-3333-444455556666", "GPU-8f2affff-1111-2222-3333-444455556666"
SLICE = "MIG-0a1b2c3d-1111-2222-3333-444455556666"


class NVMLError(Exception):
    """What pynvml raises, whatever the reason."""


@dataclass(eq=False)
class FakeCard:
    """A card, and its own handle. None: it does not tell.

    ``readings`` are clock and event reasons, one after the other; the last one stays. ``denied``: a
    control group keeps this process from it. ``mig``: current and pending mode. ``slice_of``: this is a slice.
    ``mode`` is the compute mode.
    """

    uuid: str = ONE
    name: str | None = "NVIDIA H200"
    readings: list[tuple[int | None, int | None]] = field(default_factory=lambda: [(1980, 0)])
    processes: list[int] | None = field(default_factory=list)
    drawing: list[int] | None = field(default_factory=list)
    denied: bool = False
    mig: tuple[int, int] | None = None
    slice_of: "FakeCard | None" = None
    free_bytes: int | None = None
    mode: int | None = 0


def mode_report(what: Callable[[FakeCard], Told | None]) -> "Callable[[Nvml, FakeCard], Told]":
    def tell(nvml: "Nvml", card: FakeCard) -> Told:
        return nvml._of(card, what)

    return tell


def running(pids: list[int] | None) -> list[types.SimpleNamespace] | None:
    return None if pids is None else [types.SimpleNamespace(pid=pid) for pid in pids]


def memory(card: FakeCard) -> types.SimpleNamespace | None:
    return None if card.free_bytes is None else types.SimpleNamespace(free=card.free_bytes)


class Nvml(types.ModuleType):
    """The module. ``opened`` counts what was initialised and not shut down; ``read`` is set by each whole reading."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1

    def __init__(self, cards: Sequence[FakeCard] = (), driver: str | None = "580.95.05", old: bool = False) -> None:
        super().__init__("pynvml")
        self.cards, self.driver, self.opened = list(cards), driver, 0
        self.read = threading.Semaphore(0)
        if not old:  # since driver 535
            self.nvmlDeviceGetCurrentClocksEventReasons = self.nvmlDeviceGetCurrentClocksThrottleReasons

    def wait_for(self, readings: int) -> None:
        for _ in range(readings):
            assert self.read.acquire(timeout=60)

    def nvmlInit(self) -> None:  # noqa: N802
        if self.driver is None:
            raise NVMLError("Driver Not Loaded")
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self._open()
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str | None:  # noqa: N802
        self._open()
        return self.driver

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._open()
        return sum(card.slice_of is None for card in self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeCard:  # noqa: N802
        self._open()
        card = [card for card in self.cards if card.slice_of is None][index]
        if card.denied:
            raise NVMLError("Insufficient Permissions")
        return card

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeCard:  # noqa: N802
        self._open()
        return _told(next((card for card in self.cards if card.uuid == uuid), None))

    def nvmlDeviceGetClockInfo(self, card: FakeCard, kind: int) -> int:  # noqa: N802
        assert kind == self.NVML_CLOCK_SM
        return self._of(card, lambda card: None if card.slice_of else card.readings[0][0])

    nvmlDeviceGetName = mode_report(lambda card: card.name)  # noqa: N815
    nvmlDeviceGetUUID = mode_report(lambda card: card.uuid)  # noqa: N815
    nvmlDeviceGetMigMode = mode_report(lambda card: card.mig and list(card.mig))  # noqa: N815
    nvmlDeviceGetDeviceHandleFromMigDeviceHandle = mode_report(lambda card: card.slice_of)  # noqa: N815
    nvmlDeviceGetComputeRunningProcesses = mode_report(lambda card: running(card.processes))  # noqa: N815
    nvmlDeviceGetGraphicsRunningProcesses = mode_report(lambda card: running(card.drawing))  # noqa: N815
    nvmlDeviceGetMemoryInfo = mode_report(memory)  # noqa: N815
    nvmlDeviceGetComputeMode = mode_report(lambda card: card.mode)  # noqa: N815

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, card: FakeCard) -> int:  # noqa: N802
        """The last of a reading."""
        reasons = card.readings[0][1]
        if len(card.readings) > 1:
            card.readings.pop(0)
        self.read.release()
        return self._of(card, lambda card: reasons)

    def _of(self, card: FakeCard, what: Callable[[FakeCard], Told | None]) -> Told:
        self._open()
        return _told(what(card))

    def _open(self) -> None:
        if self.opened < 1:
            raise NVMLError("Uninitialized")


def _told(value: Told | None) -> Told:
    if value is None:
        raise NVMLError("Not Supported")
    return value
