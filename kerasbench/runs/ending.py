"""Ctrl-C that ends a long block and keeps what there is."""

import signal
import threading
from collections.abc import Callable, Collection, Set
from types import FrameType
from typing import Self

from kerasbench.events import CycleEnded, Event, Notice, OnEvent


class InterruptibleBlock:
    """Takes the first interruption of a long block for its end, once there is something to keep; raises later ones."""

    def __init__(self, on_event: OnEvent, needed: Set[str]) -> None:
        self.is_interrupted = False
        self._on_event, self._needed = on_event, needed  # labels: a control is there for these columns alone
        self._columns: Collection[str] | None = None  # the columns of the newest cycle; None: there was none
        self._is_announced = False
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if callable(handler := signal.getsignal(number)):
                    self._before[number] = handler
                    signal.signal(number, self.handle)
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def is_over(self) -> bool:
        if self._columns is None or not self._needed:
            return self.is_interrupted
        return self.is_interrupted or self._needed.isdisjoint(self._columns)

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self._columns is not None and not self.is_interrupted:
            self.is_interrupted = True
        else:
            self._before[number](number, frame)

    def pass_on(self, event: Event) -> None:
        if isinstance(event, CycleEnded):
            self._columns = event.slices.keys()
        if self.is_interrupted and not self._is_announced:
            self._is_announced = True
            self._on_event(Notice("ending after this turn; what was measured is kept. Ctrl-C again discards it"))
        self._on_event(event)
