"""Ctrl-C that ends a long block and keeps what there is."""

import signal
import threading
from collections.abc import Callable, Collection, Set
from types import FrameType
from typing import Self

from kerasbench.events import CycleEnded, Event, Notice, OnEvent


class Ending:
    """Takes the first interruption of a long block for its end, once there is something to keep; raises later ones."""

    def __init__(self, on_event: OnEvent, needed: Set[str]) -> None:
        self.asked = False
        self._on_event, self._needed = on_event, needed  # labels: a control is there for these columns alone
        self._left: Collection[str] | None = None  # the columns of the newest cycle; None: there was none
        self._said = False
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if callable(handler := signal.getsignal(number)):
                    self._before[number] = handler
                    signal.signal(number, self.take)
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def is_over(self) -> bool:
        return self.asked or bool(self._needed and self._left is not None and self._needed.isdisjoint(self._left))

    def take(self, number: int, frame: FrameType | None) -> None:
        if self._left is not None and not self.asked:
            self.asked = True
        else:
            self._before[number](number, frame)

    def hear(self, event: Event) -> None:
        if isinstance(event, CycleEnded):
            self._left = event.slices.keys()
        if self.asked and not self._said:
            self._said = True
            self._on_event(Notice("ending after this turn; what was measured is kept. Ctrl-C again discards it"))
        self._on_event(event)
