"""One child process: start it, hear it, park it, stop it in time or at its limit of memory, leave nothing behind."""

import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from kerasbench.host import linux
from kerasbench.processes import group
from kerasbench.protocol.messages import STOPPED, WRITE_STACKS

LOOK_S = 1.0  # a look costs a third of a millisecond of one core
# earlyoom kills at 5 % (its -m); the kernel later still, and systemd-oomd by pressure, which comes below that.
SCARCE_SHARE = 0.05


def available_bytes() -> int:
    """Return how much more memory may be taken: what the machine has, or what a control group leaves of it."""
    available, left_bytes = psutil.virtual_memory().available, linux.memory_left()
    return available if left_bytes is None else min(available, left_bytes)


def group_bytes(group: int) -> int:
    """Return the resident memory of a process group; pages that its processes share count for each of them."""
    held_bytes = 0
    for number in psutil.pids():
        with suppress(OSError, psutil.Error):  # gone meanwhile
            if os.getpgid(number) == group:
                held_bytes += psutil.Process(number).memory_info().rss
    return held_bytes


def shortage(before: Mapping[str, int | None], after: Mapping[str, int | None], left_share: float) -> str:
    """Return why memory is to blame for a SIGKILL that nobody admits to, as earlyoom, systemd-oomd and macOS; or ""."""
    for place, earlier in before.items():
        if earlier is not None and (after[place] or 0) > earlier:
            return f"the kernel killed a process of {place}, whose memory was used up"
    return f"{100 * left_share:.1f} % of the machine's memory was left just before" if left_share < SCARCE_SHARE else ""


WORKER = Path(__file__).parents[1] / "worker" / "__main__.py"
KEEP_BYTES = 16_384  # of each output stream: a traceback and what came before it
MAX_LINE_BYTES = 64 << 20  # ten times the longest message of a real trial
READ_BYTES = 65_536
KILLED = -9  # the status of a process that was killed and has not gone
LEAVE_S = 10.0  # a process that was killed is gone in milliseconds, unless the kernel cannot let go of it
POLL_S = 1.0  # how often an exit that closes no pipe is noticed, and the display redrawn
QUICK_POLL_S = 0.05  # of children beside which nothing is measured: how soon one is stopped that nobody waits for
STACKS_S, SILENT_S = 0.5, 0.1  # how long a child may take to begin to write its stacks, and between two parts of them
LATE_NS = 1_000_000_000  # by which a wait may be longer than asked for on a busy machine
DRAIN_S = 0.5  # how long to listen for what is still in the pipes of a child that has gone
PAUSE_S = 0.0005  # until the first look whether a child that has closed its pipes has ended; then twice that, and so on
SAFE_PATH = "PYTHONSAFEPATH"  # not -P, which Pythons do not know that are too old and shall say so


@dataclass(frozen=True)
class Limits:
    timeout_s: float
    timeout: str  # how a message names this limit
    memory_bytes: int | None = None  # None: no limit
    remedy: str = "a longer --timeout, in seconds"
    compile_s: float | None = None  # that a phase may take of which most is compiling; None: no limit of its own


@dataclass(frozen=True)
class Task:
    python: str
    environment: Mapping[str, str]
    request: bytes
    limits: Limits
    worker: Path = WORKER


@dataclass(frozen=True)
class Exit:
    status: int  # its exit status, negative for a signal
    timed_out: bool
    broke_protocol: bool
    exceeded_bytes: int | None  # what it held when that was found to be more than its limit, and it was stopped
    shortage: str  # why it may have been killed because memory ran out
    spawned_ns: int
    wall_ns: int
    stdout: str
    stderr: str
    compiled_long: bool = False  # it was stopped by the limit of compiling


class Child(AbstractContextManager["Child"]):
    """One child; a ``with`` leaves nothing of it. ``on_line``: whether a line is a message; else the child is ended."""

    def __init__(
        self, task: Task, on_line: Callable[[bytes], bool], guard: Callable[[str], None] = lambda line: None
    ) -> None:
        self.exit: Exit | None = None
        self._request, self._limits = task.request, task.limits
        self._on_line, self._guard = on_line, guard
        self._spawned_ns = time.monotonic_ns()
        self._ran_ns = 0
        self._since_ns: int | None = self._spawned_ns  # None: it is parked
        self._gone_ns: int | None = None
        self._pause_s = PAUSE_S
        self._timed_out = self._broke_protocol = False
        self._compiling_ns: int | None = None  # how long it had run when it began to compile
        self._partial = bytearray()
        self._mark = f"{os.getpid()}-{self._spawned_ns}"
        guard(f"+{self._mark}")
        self._process, self._messages = _spawn(task, self._mark)
        self.number = self._process.pid  # and that of the group which it leads
        guard(f"+{self.number}")
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input: IO[bytes] = self._process.stdin
        self._kept = {self._process.stdout: bytearray(), self._process.stderr: bytearray()}
        self.open: set[IO[bytes]] = {self._messages, *self._kept}
        self._kills_before = linux.oom_kills()
        self._next_look_s, self._left_share = 0.0, 1.0
        self._exceeded_bytes: int | None = None

    def __exit__(self, *raised: object) -> None:
        if self.exit is None:
            self._leave()

    def begin(self) -> None:
        """Give it its request; from then on, writing to it never blocks."""
        with suppress(BrokenPipeError):  # it died at once; its exit says more
            self._input.write(self._request)
            self._input.flush()
        os.set_blocking(self._input.fileno(), False)

    @property
    def runs(self) -> bool:
        return self.exit is None and self._since_ns is not None

    def read(self, pipe: IO[bytes]) -> None:
        content = os.read(pipe.fileno(), READ_BYTES)
        if not content:
            self.open.discard(pipe)
        elif pipe is self._messages:
            self._take(content)
        else:
            kept = self._kept[pipe]
            kept += content
            del kept[:-KEEP_BYTES]

    def say(self, line: bytes) -> None:
        """Write a line to its input; a child that reads so few of them that they fill the pipe breaks the protocol."""
        try:
            os.write(self._input.fileno(), line)
        except BrokenPipeError:
            pass  # it has gone; its exit says more
        except BlockingIOError:
            self._broke_protocol = True

    def park(self) -> None:
        group.send(self.number, signal.SIGSTOP)  # which no process can refuse
        self._ran_ns, self._since_ns = self._spent_ns(), None

    def resume(self) -> None:
        self._since_ns = time.monotonic_ns()
        group.send(self.number, signal.SIGCONT)

    def compiles(self, now: bool) -> None:
        self._compiling_ns = self._spent_ns() if now else None

    def forgive(self, ns: int) -> None:
        """Do not count so much towards its timeout: the parent was suspended and could not hear it."""
        self._ran_ns -= ns if self.runs else 0

    def is_over(self) -> bool:
        self._timed_out = self._left_s() < 0
        if self._timed_out or self._broke_protocol or self._exceeds_memory():
            return True
        now_ns = time.monotonic_ns()
        if self._gone_ns is None and group.has_ended(self.number):
            self._gone_ns = now_ns
        # Where pipes are open still, a grandchild may hold them.
        return self._gone_ns is not None and (not self.open or now_ns - self._gone_ns > DRAIN_S * 1e9)

    def _exceeds_memory(self) -> bool:
        if (now_s := time.monotonic()) >= self._next_look_s:
            self._next_look_s = now_s + LOOK_S
            machine, most_bytes = psutil.virtual_memory(), self._limits.memory_bytes
            self._left_share = machine.available / machine.total
            if most_bytes is not None and (held_bytes := group_bytes(self.number)) > most_bytes:
                self._exceeded_bytes = held_bytes
        return self._exceeded_bytes is not None

    def wait_s(self) -> float:
        if self._gone_ns is not None:
            return DRAIN_S
        left_s = self._left_s() if self.runs else self._limits.timeout_s
        if not self.open:
            left_s = min(left_s, self._pause_s)
            self._pause_s = min(2 * self._pause_s, QUICK_POLL_S)
        return max(0.0, left_s)

    def end(self) -> None:
        self._leave()
        stdout, stderr = (kept.decode("utf-8", "replace") for kept in self._kept.values())
        self.exit = Exit(
            status=KILLED if self._process.returncode is None else self._process.returncode,
            timed_out=self._timed_out,
            compiled_long=self._timed_out and self._spent_ns() <= self._limits.timeout_s * 1e9,
            broke_protocol=self._broke_protocol,
            exceeded_bytes=self._exceeded_bytes,
            shortage=shortage(self._kills_before, linux.oom_kills(), self._left_share),
            spawned_ns=self._spawned_ns,
            wall_ns=time.monotonic_ns() - self._spawned_ns,
            stdout=stdout,
            stderr=stderr,
        )

    def _take(self, content: bytes) -> None:
        *endings, beginning = content.split(b"\n")
        for ending in endings:
            line = bytes(self._partial + ending)
            self._partial.clear()
            self._broke_protocol = self._broke_protocol or not self._on_line(line)
        self._partial += beginning
        self._broke_protocol = self._broke_protocol or len(self._partial) > MAX_LINE_BYTES

    def _spent_ns(self) -> int:
        return self._ran_ns + (0 if self._since_ns is None else time.monotonic_ns() - self._since_ns)

    def _left_s(self) -> float:
        spent_ns = self._spent_ns()
        left_s = self._limits.timeout_s - spent_ns / 1e9
        if self._compiling_ns is None or self._limits.compile_s is None:
            return left_s
        return min(left_s, self._limits.compile_s - (spent_ns - self._compiling_ns) / 1e9)

    def _ask_for_stacks(self) -> None:
        """Have a child that was too slow write where its threads are, behind a line that says why."""
        stderr = self._process.stderr
        if stderr not in self.open or group.has_ended(self.number):
            return
        self._kept[stderr] += f"\n{STOPPED}\n\n".encode()
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(self.number, WRITE_STACKS)
        until_s = time.monotonic() + STACKS_S
        while stderr in self.open and select.select([stderr], [], [], max(0.0, until_s - time.monotonic()))[0]:
            self.read(stderr)
            until_s = min(until_s, time.monotonic() + SILENT_S)

    def _leave(self) -> None:
        try:
            if self._timed_out:
                self._ask_for_stacks()
            group.kill(self.number)
            self._guard(f"-{self.number}")  # before it is reaped: from then on the number may be another's
            with suppress(subprocess.TimeoutExpired):  # a driver or a file system that hangs lets nobody kill it
                self._process.wait(LEAVE_S)
            group.sweep(self._mark)
            self._guard(f"-{self._mark}")
        finally:  # a second Ctrl-C: the end of its input ends the child as well, and its guardian does if it is parked
            for pipe in (self._messages, self._input, *self._kept):
                with suppress(BrokenPipeError):
                    pipe.close()


class Listener(AbstractContextManager["Listener"]):
    """Serves the pipes of all children that were added and have not ended. Every ``poll_s`` at least, it ticks."""

    def __init__(self, on_tick: Callable[[], None] = lambda: None, poll_s: float = POLL_S) -> None:
        self._on_tick, self._poll_s = on_tick, poll_s
        self._children: list[Child] = []
        self._selector = selectors.DefaultSelector()

    def __exit__(self, *raised: object) -> None:
        self._selector.close()

    def add(self, child: Child) -> None:
        self._children.append(child)
        for pipe in child.open:
            self._selector.register(pipe, selectors.EVENT_READ, child)

    def listen(self) -> None:
        """Take in what they say until each has been parked by that, or has ended, and end those that are over."""
        while any(child.runs for child in self._children):
            over = [child for child in self._children if child.is_over()]
            for child in over:
                self.end(child)
            if not over:
                self._read(min(self._poll_s, *(child.wait_s() for child in self._children)))
            self._on_tick()

    def end(self, child: Child) -> None:
        for pipe in child.open:
            self._selector.unregister(pipe)
        self._children.remove(child)
        child.end()

    def _read(self, wait_s: float) -> None:
        began_ns = time.monotonic_ns()
        ready = self._selector.select(wait_s)
        late_ns = time.monotonic_ns() - began_ns - round(wait_s * 1e9)
        for child in self._children if late_ns > LATE_NS else ():  # this process was stopped meanwhile, by Ctrl-Z
            child.forgive(late_ns)
        for key, _ in ready:
            child = key.data
            child.read(key.fileobj)
            if key.fileobj not in child.open:
                self._selector.unregister(key.fileobj)


def run(
    task: Task, on_line: Callable[[bytes], bool], on_tick: Callable[[], None] = lambda: None, poll_s: float = POLL_S
) -> Exit:
    """Run the worker on one request that is no trial; what is raised meanwhile stops it and all that it started."""
    with Listener(on_tick, poll_s) as listener, Child(task, on_line) as child:
        child.begin()
        listener.add(child)
        listener.listen()
    assert child.exit is not None  # nobody has parked it
    return child.exit


def _spawn(task: Task, mark: str) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
    read_end, write_end = os.pipe()
    messages = os.fdopen(read_end, "rb", buffering=0)
    try:
        process = subprocess.Popen(
            [task.python, str(task.worker), str(write_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**task.environment, group.MARK: mark, SAFE_PATH: "1"},
            pass_fds=(write_end,),
            start_new_session=True,  # one group to stop; and Ctrl-C reaches the parent alone
        )
    except BaseException:
        messages.close()
        raise
    finally:
        os.close(write_end)
    return process, messages
