"""What a process holds at the end of a phase, and the most that it has held in it: on the host and on its device."""

from dataclasses import dataclass, field
from typing import Protocol

from kerasbench.backends import Backend
from kerasbench.protocol.columns import Device
from kerasbench.worker import usage


class Counter(Protocol):
    """None: the system, or the backend, does not tell."""

    def held(self) -> int | None: ...
    def peak(self) -> int | None: ...
    # Begins the peak anew with what is held; False: it goes on from the start of the process.
    def reset(self) -> bool: ...


class HostCounter:
    def held(self) -> int:
        return usage.rss_bytes()

    def peak(self) -> int:
        return usage.peak_rss_bytes()

    def reset(self) -> bool:
        return usage.reset_peak_rss()


@dataclass(frozen=True)
class DeviceCounter:
    backend: Backend
    device: Device

    def held(self) -> int | None:
        return self.backend.device_bytes(self.device, peak=False)

    def peak(self) -> int | None:
        return self.backend.device_bytes(self.device, peak=True)

    def reset(self) -> bool:
        return self.backend.reset_peak is not None and self.backend.reset_peak(self.device)


@dataclass
class PhaseMemory:
    """Follows one counter through phases, of which one may lie in another."""

    counter: Counter
    peak_bytes: int | None = None  # of the process so far, as far as it was read
    _open: list[int | None] = field(default_factory=list)  # the peaks of phases that go on; None: it cannot be reset

    def begin(self) -> None:
        self._look()
        self._open.append(0 if self.counter.reset() else None)

    def end(self) -> tuple[int | None, int | None, int | None]:
        """Return the peak up to now, what is held, and the most in the phase; what follows is measured anew."""
        self._look()
        most = self._open.pop() if self._open else None
        if self._open:
            self.counter.reset()
        return self.peak_bytes, self.counter.held(), most or None

    def so_far(self) -> int | None:
        self._look()
        return self.peak_bytes

    def _look(self) -> None:
        peak = self.counter.peak()
        if peak is None:
            return
        self.peak_bytes = max(peak, self.peak_bytes or 0)
        self._open = [None if most is None else max(most, peak) for most in self._open]
