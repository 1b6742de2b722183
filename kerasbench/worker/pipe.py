"""The child's end of the pipe: messages and phases, sent as they happen."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kerasbench.exchange.messages import EXIT_PIPE_LOST, Message, Phase


class Pipe:
    """Send messages to the parent over a file descriptor that nothing else writes to.

    Each begins with the token that came with the request: what a scenario writes there is told from what it measured.
    """

    def __init__(self, descriptor: int, token: bytes) -> None:
        os.set_inheritable(descriptor, False)  # a grandchild must not hold the pipe open
        self._descriptor = descriptor
        self._token = token
        self._identity = _identity(descriptor)
        self.current_phase = ""
        self._waited_ns = 0

    def send(self, message: Message) -> None:
        """Write one whole message, however many writes the kernel makes of it.

        Where the scenario has closed the descriptor, or put a file of its own in its place, nothing more can be said:
        the process is left with a status that says so.
        """
        line = memoryview(self._token + b" " + message.encode())
        with suppress(OSError):
            while line and _identity(self._descriptor) == self._identity:
                line = line[os.write(self._descriptor, line) :]
        if line:
            os._exit(EXIT_PIPE_LOST)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report that a phase has begun and, when it ends well, how long it took and how much of that was waiting."""
        self.current_phase = name
        self.send(Message(begun=name))
        self._waited_ns, start_ns = 0, time.monotonic_ns()
        yield
        self.send(Message(phase=Phase(name, start_ns, time.monotonic_ns(), self._waited_ns)))

    def waited(self, ns: int) -> None:
        """Count so much of the current phase as the turns of other columns."""
        self._waited_ns += ns


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return (found.st_dev, found.st_ino)
