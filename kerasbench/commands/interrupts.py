"""Ctrl-C, SIGTERM and a closed terminal: once ends a run in order, twice at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
ORDERLY = 2  # interruptions that unwind what is going on; a third comes while that is done, and would only disturb it
AGAIN_S = 0.01  # until one that came where nothing can be raised is raised again: such places are left within µs
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interruptions:
    """How often this process was asked to end."""

    count: int = 0
    _again: threading.Timer | None = None
    _hooked: bool = False  # in ``lost``, where Python would drop another one too

    def take(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless it is raised again anyway; from the third on leave the process.

        Its children follow when their input ends.
        """
        if number == signal.SIGHUP and self.count:
            return  # a shell that ends with its terminal says again what the kernel has said
        self.count += 1
        if self.count > ORDERLY:
            os._exit(EXIT_INTERRUPTED)
        if not self._hooked:
            raise KeyboardInterrupt

    def lost(self, ignored: "UnraisableHookArgs") -> None:
        """Have one that came in a destructor or a callback, where Python drops exceptions, raised again."""
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(ignored)
            return
        self._hooked = True
        self.count -= 1
        self._again = threading.Timer(AGAIN_S, self._raise_again)
        self._again.start()
        self._hooked = False

    def _raise_again(self) -> None:
        while self._hooked:
            time.sleep(AGAIN_S)
        main = threading.main_thread().ident
        assert main is not None  # it has been started
        signal.pthread_kill(main, signal.SIGINT)

    def forget(self) -> None:
        """Raise nothing again any more."""
        if self._again is not None:
            self._again.cancel()


@contextmanager
def heeded() -> Iterator[None]:
    """Turn every signal that ends a process into KeyboardInterrupt meanwhile; what is ignored (nohup) stays so."""
    received = Interruptions()
    unheeded = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in ENDINGS if signal.getsignal(number) in unheeded}
    hook = sys.unraisablehook
    try:
        sys.unraisablehook = received.lost
        for number in before:
            signal.signal(number, received.take)
        yield
    finally:
        received.forget()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
