"""A child's turns: it says what it can measure or has measured, and waits until it is its turn again."""

import os
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import NoReturn

from kerasbench.exchange.measurement import Block
from kerasbench.exchange.messages import Message
from kerasbench.exchange.turns import Turn, decode_turn
from kerasbench.worker.pipe import Pipe

CHUNK_BYTES = 4096  # of standard input; a turn's line has some thirty


def listen() -> "SimpleQueue[bytes]":
    """Return a queue that gets each line of standard input, and leave the process where that ends.

    The parent holds it open for as long as it lives. Whatever a scenario does with its own standard input, which is
    empty from now on, it takes no turn away.
    """
    lines = SimpleQueue[bytes]()
    source = os.dup(sys.stdin.fileno())
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), sys.stdin.fileno())
    threading.Thread(target=_hear, args=(source, lines), daemon=True).start()
    return lines


def _hear(source: int, lines: "SimpleQueue[bytes]") -> NoReturn:
    rest = b""
    with suppress(OSError):
        while said := os.read(source, CHUNK_BYTES):
            *whole, rest = (rest + said).split(b"\n")
            for line in whole:
                lines.put(line)
    os._exit(1)


class Turns:
    """What a child waits for."""

    def __init__(self, pipe: Pipe, lines: "SimpleQueue[bytes]") -> None:
        self._pipe = pipe
        self._lines = lines

    def next(self, stage: str, measured: Block | None = None) -> Turn | None:
        """Say what the last slice of a stage was, or that its first one can be measured; return the turn for the next.

        None: the stage is over.
        """
        # Before the message: whoever gets it may stop this process before its next line.
        began_ns = time.monotonic_ns()
        self._pipe.send(Message(ready=stage) if measured is None else Message(slice=measured))
        turn = decode_turn(self._lines.get())
        self._pipe.waited(time.monotonic_ns() - began_ns)
        return turn
