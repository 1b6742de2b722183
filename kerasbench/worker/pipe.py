"""The child's ends of its pipes: messages and phases go to the parent as they happen, turns come from it."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

from kerasbench.protocol.measurement import Turn, decode_turn
from kerasbench.protocol.messages import EXIT_PIPE_LOST, Message, Phase
from kerasbench.protocol.requests import Sizes
from kerasbench.worker.memory import HostCounter, PhaseMemory


class Pipe:
    """Sends messages over a file descriptor, each behind the request's token: nothing that a scenario writes has it."""

    def __init__(self, descriptor: int, token: bytes, lines: "SimpleQueue[bytes]") -> None:
        os.set_inheritable(descriptor, False)  # a grandchild must not hold the pipe open
        self._descriptor = descriptor
        self._token = token
        self._lines = lines
        self._opened = os.fstat(descriptor)
        self.current_phase = ""
        self.memory = PhaseMemory(HostCounter())
        self.on_device: PhaseMemory | None = None  # None: no device was taken yet
        self._waited_ns = 0

    def send(self, message: Message) -> None:
        """Write a whole message; leave with a status of its own if a scenario has closed or replaced the descriptor."""
        line = memoryview(self._token + b" " + message.encode())
        with suppress(OSError):
            while line and os.path.samestat(os.fstat(self._descriptor), self._opened):
                line = line[os.write(self._descriptor, line) :]
        if line:
            os._exit(EXIT_PIPE_LOST)

    @contextmanager
    def phase(self, name: str, stage: str = "") -> Iterator[None]:
        """Report that a phase has begun; at a good end how long it took and waited, and its memory."""
        self.current_phase = name
        self.send(Message(begun=name))
        for memory in filter(None, (self.memory, self.on_device)):
            memory.begin()
        self._waited_ns, start_ns = 0, time.monotonic_ns()
        yield
        times = (start_ns, time.monotonic_ns(), self._waited_ns)
        peak, held, most = self.memory.end()
        # The phase that takes the device has no peak of its own there.
        peak_there, held_there, most_there = self.on_device.end() if self.on_device else (None, None, None)
        phase = Phase(name, *times, peak, peak_there, stage, held, most, held_there, most_there)
        self.send(Message(phase=phase))

    def ask(self, message: Message) -> Turn | Sizes | None:
        """Wait for the next turn. None: the stage is over. Sizes: so is the pilot; they follow from all columns."""
        # Before the message: whoever gets it may stop this process before its next line.
        began_ns = time.monotonic_ns()
        self.send(message)
        line = self._lines.get()
        self._waited_ns += time.monotonic_ns() - began_ns
        return decode_turn(line)


def listen() -> "SimpleQueue[bytes]":
    """Return a queue of standard input's lines, whatever a scenario does with its own; their end ends the process."""
    lines = SimpleQueue[bytes]()
    source = os.dup(sys.stdin.fileno())
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), sys.stdin.fileno())

    def read_lines() -> None:
        with suppress(OSError), open(source, "rb", buffering=0) as stream:  # unbuffered: it holds no lock at an exit
            for line in stream:
                lines.put(line)
        os._exit(1)

    threading.Thread(target=read_lines, daemon=True).start()
    return lines
