"""Ctrl-C, SIGTERM and a closed terminal: once ends a run in order, twice at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
ORDERLY = 2  # interruptions that unwind what is going on; a third comes while that is done, and would only disturb it
AGAIN_S = 0.01  # until one that came where nothing can be raised is raised again: such places are left within µs
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_DEFAULT = (signal.SIG_DFL, signal.default_int_handler)  # handlers that nobody has chosen


class State(Enum):
    """What becomes of an interruption that comes now."""

    RAISED = "KeyboardInterrupt, where it comes"
    COUNTED = "nothing: Python drops what is raised here, and one that stands for it is on its way"


@dataclass
class Interruptions:
    """How often this process was asked to end, and what becomes of the next time.

    ::

                  1st, 2nd: KeyboardInterrupt        3rd: the process is left at once
                        ^                              ^   (children follow when their input ends)
                        |                              |
        +-----------> RAISED --------------------------+
        |               |
        |               | it came in a destructor or a callback, where Python drops it: ``lost``
        |               v
        |            COUNTED   another one is counted here, and not raised
        |               |
        +---------------+      AGAIN_S after it the dropped one is sent to the main thread again
    """

    count: int = 0
    state: State = State.RAISED
    again: threading.Timer | None = None

    def take(self, number: int, frame: FrameType | None) -> None:
        """Heed a signal."""
        if number == signal.SIGHUP and self.count:
            return  # a shell that ends with its terminal says again what the kernel has said
        self.count += 1
        if self.count > ORDERLY:
            os._exit(EXIT_INTERRUPTED)
        if self.state is State.RAISED:
            raise KeyboardInterrupt

    def lost(self, ignored: "UnraisableHookArgs") -> None:
        """Have an interruption that Python has dropped sent again; show what else it drops, as usual."""
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(ignored)
            return
        self.state = State.COUNTED
        self.count -= 1
        self.again = threading.Timer(AGAIN_S, self._send)
        self.again.start()
        self.state = State.RAISED  # last: between an assignment and the return Python heeds no signal

    def _send(self) -> None:
        while self.state is State.COUNTED:
            time.sleep(AGAIN_S)
        main = threading.main_thread().ident
        assert main is not None  # it has been started
        signal.pthread_kill(main, signal.SIGINT)

    def forget(self) -> None:
        """Send nothing again any more."""
        if self.again is not None:
            self.again.cancel()


@contextmanager
def heeded() -> Iterator[None]:
    """Turn every signal that ends a process into KeyboardInterrupt meanwhile; what is ignored (nohup) stays so."""
    received = Interruptions()
    before = {number: signal.getsignal(number) for number in ENDINGS if signal.getsignal(number) in BY_DEFAULT}
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
