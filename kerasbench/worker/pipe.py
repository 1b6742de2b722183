"""The child's end of the pipe: messages and phases, sent as they happen."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kerasbench.wire import Message, Phase


class Pipe:
    """Send messages to the parent over a file descriptor that nothing else writes to."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # a grandchild must not hold the pipe open
        self._descriptor = descriptor
        self.current_phase = ""

    def send(self, message: Message) -> None:
        """Write one whole message, however many writes the kernel makes of it."""
        line = memoryview(message.encode())
        while line:
            line = line[os.write(self._descriptor, line) :]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report that a phase has begun and, when it ends well, how long it took."""
        self.current_phase = name
        self.send(Message(begun=name))
        start_ns = time.monotonic_ns()
        yield
        self.send(Message(phase=Phase(name, start_ns, time.monotonic_ns())))
