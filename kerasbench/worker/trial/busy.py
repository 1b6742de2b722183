"""Processors that kerasbench itself keeps busy beside a column, in its own turns: what does a model lose by that?"""

import mmap
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

# Each is a process that waits for a byte, then computes while the first number is not 0, and keeps in a number of its
# own how long it has computed so far. It ends when its pipe does, or with the process that started it.
SPIN = """
import mmap, os, sys, time
numbers = memoryview(mmap.mmap(int(sys.argv[1]), 0)).cast("q")
own, parent = int(sys.argv[2]), os.getppid()
while os.read(0, 1):
    while numbers[0] and os.getppid() == parent:
        for _ in range(20_000):
            pass
        numbers[own] = time.process_time_ns()
"""
NUMBER_BYTES = 8


@dataclass
class BusyCores:
    """Keeps so many processors busy between ``resume`` and ``pause``; none of them is started for none.

    They may run wherever this process may when it makes them, so they are made before it limits itself.
    """

    count: int = 0
    _ran_ns: int = 0
    _since_ns: int | None = None
    _spinning: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.count:
            return
        with tempfile.TemporaryFile() as shared:
            shared.truncate(NUMBER_BYTES * (1 + self.count))
            self._numbers = memoryview(mmap.mmap(shared.fileno(), 0)).cast("q")
            for own in range(1, 1 + self.count):
                command = [sys.executable, "-I", "-S", "-c", SPIN, str(shared.fileno()), str(own)]
                one = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[shared.fileno()])
                self._spinning.append(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._spinning:
            one.kill()
            one.communicate()

    @property
    def processes(self) -> list[str]:
        """The processes that do it."""
        return [str(one.pid) for one in self._spinning]

    def resume(self) -> None:
        """Have them compute from now on."""
        if self._spinning:
            self._numbers[0], self._since_ns = 1, time.perf_counter_ns()
        for one in self._spinning:
            assert one.stdin
            one.stdin.write(b"\n")
            one.stdin.flush()

    def pause(self) -> None:
        """Have them wait."""
        if self._since_ns is not None:
            self._numbers[0] = 0
            self._ran_ns, self._since_ns = self._ran_ns + time.perf_counter_ns() - self._since_ns, None

    def used_ns(self) -> int:
        """Return the processor time that they have used so far, to about half a millisecond each."""
        return sum(self._numbers[1:]) if self._spinning else 0

    @property
    def kept(self) -> float | None:
        """How many processors they kept busy on average, where they were to; None for none."""
        return self.used_ns() / self._ran_ns if self._ran_ns else None
