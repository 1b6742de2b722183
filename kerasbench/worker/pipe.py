"""The child's ends of its pipes: messages and phases go to the parent as they happen, turns come from it."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

from kerasbench.protocol.measurement import Turn, decode_turn
from kerasbench.protocol.messages import EXIT_PIPE_LOST, Message, Phase
from kerasbench.protocol.requests import Sizes
from kerasbench.worker.usage import peak_rss_bytes

CHUNK_BYTES = 4096  # of standard input; a turn's line has some thirty


class Pipe:
    """Sends messages to the parent over a file descriptor that nothing else writes to; hears of turns by ``lines``.

    Each begins with the token that came with the request, so that nothing that a scenario writes there passes for one.
    """

    def __init__(self, descriptor: int, token: bytes, lines: "SimpleQueue[bytes]") -> None:
        os.set_inheritable(descriptor, False)  # a grandchild must not hold the pipe open
        self._descriptor = descriptor
        self._token = token
        self._lines = lines
        self._identity = _identity(descriptor)
        self.current_phase = ""
        self.peak_device_bytes: Callable[[], int | None] = lambda: None  # known once there is a device
        self._waited_ns = 0

    def send(self, message: Message) -> None:
        """Write one whole message, however many writes the kernel makes of it.

        If the scenario has closed the descriptor, or put a file of its own in its place, nothing more can be sent: the
        process ends with a status that says so.
        """
        line = memoryview(self._token + b" " + message.encode())
        with suppress(OSError):
            while line and _identity(self._descriptor) == self._identity:
                line = line[os.write(self._descriptor, line) :]
        if line:
            os._exit(EXIT_PIPE_LOST)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report that a phase has begun; at a good end how long it took and waited, and peaks of memory."""
        self.current_phase = name
        self.send(Message(begun=name))
        self._waited_ns, start_ns = 0, time.monotonic_ns()
        yield
        end_ns = time.monotonic_ns()
        peaks = (peak_rss_bytes(), self.peak_device_bytes())
        self.send(Message(phase=Phase(name, start_ns, end_ns, self._waited_ns, *peaks)))

    def ask(self, message: Message) -> Turn | Sizes | None:
        """Report that a stage's slices can be measured, or its last slice; wait for the turn for the next.

        None: the stage is over. Sizes: so is the pilot, and they follow from the slices of all columns.
        """
        # Before the message: whoever gets it may stop this process before its next line.
        began_ns = time.monotonic_ns()
        self.send(message)
        line = self._lines.get()
        self._waited_ns += time.monotonic_ns() - began_ns
        return decode_turn(line)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return (status.st_dev, status.st_ino)


def listen() -> "SimpleQueue[bytes]":
    """Return a queue that gets each line of standard input, and leave the process where that ends.

    The parent holds it open for as long as it lives. Whatever a scenario does with its own standard input, which is
    empty from now on, it takes no turn away.
    """
    lines = SimpleQueue[bytes]()
    source = os.dup(sys.stdin.fileno())
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), sys.stdin.fileno())

    def read_lines() -> None:
        rest = b""
        with suppress(OSError):
            while chunk := os.read(source, CHUNK_BYTES):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    lines.put(line)
        os._exit(1)

    threading.Thread(target=read_lines, daemon=True).start()
    return lines
