"""One child process: start it, listen to it, stop it in time, leave nothing of it behind.

The messages come over a pipe of their own; stdout and stderr are read all the time, so that a talkative child
never blocks, and only their ends are kept. The parent sleeps in ``select`` meanwhile.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from kerasbench.children.memory import MemoryWatch

WORKER = Path(__file__).parents[1] / "worker" / "__main__.py"
KEEP_BYTES = 16_384  # of each output stream: a traceback and what came before it
MAX_LINE_BYTES = 64 << 20  # ten times the longest message of a real trial
READ_BYTES = 65_536
POLL_S = 1.0  # how often an exit that closes no pipe is noticed, and the display redrawn
QUICK_POLL_S = 0.05  # of children beside which nothing is measured: how soon one is stopped that nobody waits for
DRAIN_S = 0.5  # how long to listen for what is still in the pipes of a child that has gone
MARK = "KERASBENCH_CHILD"  # in the environment of a child and of all that it starts, wherever that goes
SAFE_PATH = "PYTHONSAFEPATH"  # not -P, which Pythons do not know that are too old and shall say so
SWEEPS = 3  # what a sweep has missed because it was just being forked, the next one finds


@dataclass(frozen=True)
class Exit:
    """How a child ended. ``status`` is its exit status, negative for a signal.

    ``exceeded_bytes`` is what it held when that was found to be more than its limit, and it was stopped; ``shortage``
    what speaks for memory having run out. ``left_cpu_s`` is the processor time of what it had started and was stopped
    with it: nobody waits for those, so that no count of ended children has it.
    """

    status: int
    timed_out: bool
    broke_protocol: bool
    exceeded_bytes: int | None
    shortage: str
    left_cpu_s: float
    spawned_ns: int
    wall_ns: int
    stdout: str
    stderr: str


def run(
    python: str,
    environment: Mapping[str, str],
    request: bytes,
    timeout_s: float,
    on_line: Callable[[bytes], bool],
    on_tick: Callable[[], None] = lambda: None,
    memory_bytes: int | None = None,
    worker: Path = WORKER,
    poll_s: float = POLL_S,
) -> Exit:
    """Run the worker on one request.

    ``on_line`` gets each line from the pipe and returns False for one that is no message: the child is stopped
    then. ``on_tick`` is called every ``poll_s`` at least. A child that is seen, in a look a second, to hold more than
    ``memory_bytes`` with all that it started is stopped too. Whatever is raised meanwhile (KeyboardInterrupt) stops the
    child and everything that it started.
    """
    read_end, write_end = os.pipe()
    spawned_ns = time.monotonic_ns()
    mark = f"{os.getpid()}-{spawned_ns}"
    try:
        process = subprocess.Popen(
            [python, str(worker), str(write_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, MARK: mark, SAFE_PATH: "1"},
            pass_fds=(write_end,),
            start_new_session=True,  # one group to stop; and Ctrl-C reaches the parent alone
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    memory = MemoryWatch(process.pid, memory_bytes)
    listener = _Listener(process, read_end, on_line, memory, poll_s)
    left_cpu_s = 0.0
    try:
        _give(process, request)
        listener.listen(spawned_ns + int(timeout_s * 1e9), on_tick)
        left_cpu_s = _left_cpu_s(process.pid, mark)
    finally:
        try:
            _stop(process, mark)
        finally:  # a second Ctrl-C: the end of its input ends the child as well
            listener.close()
    return Exit(
        status=process.returncode,
        timed_out=listener.timed_out,
        broke_protocol=listener.broke_protocol,
        exceeded_bytes=memory.exceeded_bytes,
        shortage=memory.shortage(),
        left_cpu_s=left_cpu_s,
        spawned_ns=spawned_ns,
        wall_ns=time.monotonic_ns() - spawned_ns,
        stdout=listener.kept("stdout"),
        stderr=listener.kept("stderr"),
    )


class _Listener:
    """Reads a child's three pipes until the child has gone, or must be stopped."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        messages: int,
        on_line: Callable[[bytes], bool],
        memory: MemoryWatch,
        poll_s: float,
    ) -> None:
        assert process.stdout is not None and process.stderr is not None
        self._process = process
        self._messages = messages
        self._on_line = on_line
        self._memory = memory
        self._poll_s = poll_s
        self._partial = bytearray()
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self._selector = selectors.DefaultSelector()
        for descriptor, name in (
            (messages, "messages"),
            (process.stdout.fileno(), "stdout"),
            (process.stderr.fileno(), "stderr"),
        ):
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        self.timed_out = False
        self.broke_protocol = False

    def listen(self, deadline_ns: int, on_tick: Callable[[], None]) -> None:
        gone_ns: int | None = None
        while self._selector.get_map():
            now_ns = time.monotonic_ns()
            if gone_ns is None and _has_ended(self._process.pid):
                gone_ns = now_ns
            if gone_ns is not None and now_ns - gone_ns > DRAIN_S * 1e9:
                return  # a grandchild still holds the pipes
            if self._must_stop(deadline_ns):
                return
            self._read(DRAIN_S if gone_ns is not None else self._wait_s(deadline_ns))
            on_tick()
        self._wait(deadline_ns, on_tick)

    def _wait(self, deadline_ns: int, on_tick: Callable[[], None]) -> None:
        """Wait for the exit of a child that has closed all its pipes."""
        while not self._must_stop(deadline_ns) and not _ends_within(self._process.pid, self._wait_s(deadline_ns)):
            on_tick()

    def _wait_s(self, deadline_ns: int) -> float:
        return max(0.0, min(self._poll_s, (deadline_ns - time.monotonic_ns()) / 1e9))

    def _must_stop(self, deadline_ns: int) -> bool:
        self.timed_out = time.monotonic_ns() > deadline_ns
        return self.timed_out or self.broke_protocol or self._memory.exceeds()

    def _read(self, wait_s: float) -> None:
        for key, _ in self._selector.select(wait_s):
            content = os.read(key.fd, READ_BYTES)
            if not content:
                self._selector.unregister(key.fd)
            elif key.data == "messages":
                self._take(content)
            else:
                kept = self._kept[key.data]
                kept += content
                del kept[:-KEEP_BYTES]

    def _take(self, content: bytes) -> None:
        ended, newline, begun = content.rpartition(b"\n")
        if newline:
            lines = (self._partial + ended).split(b"\n")
            self._partial.clear()
            self.broke_protocol = self.broke_protocol or not all(self._on_line(bytes(line)) for line in lines)
        self._partial += begun
        self.broke_protocol = self.broke_protocol or len(self._partial) > MAX_LINE_BYTES

    def kept(self, stream: str) -> str:
        return self._kept[stream].decode("utf-8", "replace")

    def close(self) -> None:
        self._selector.close()
        os.close(self._messages)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def _give(process: "subprocess.Popen[bytes]", request: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once; its exit says more
        process.stdin.write(request)
        process.stdin.flush()


def _has_ended(child: int) -> bool:
    """Tell whether a child has ended, without reaping it: until then its number, its group's too, is no other's."""
    try:
        return psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _ends_within(child: int, wait_s: float) -> bool:
    """Wait so long for a child's end, as ``Popen.wait`` does, which would reap it."""
    deadline_s, pause_s = time.monotonic() + wait_s, 0.0005
    while not _has_ended(child):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, QUICK_POLL_S)
    return True


def _left_cpu_s(child: int, mark: str) -> float:
    """Return the processor time, in s, of all that a child has started and that is there still.

    Ended children of theirs that they have waited for count too, on Linux; macOS keeps no such count.
    """
    spent_s = 0.0
    for number in psutil.pids():
        with suppress(OSError, psutil.Error):  # gone meanwhile, or another user's
            process = psutil.Process(number)
            if number != child and (os.getpgid(number) == child or process.environ().get(MARK) == mark):
                times = process.cpu_times()
                spent_s += times.user + times.system + times.children_user + times.children_system
    return spent_s


def _stop(process: "subprocess.Popen[bytes]", mark: str) -> None:
    """Kill the child's whole group, what it left behind included, and reap it; then what has left the group.

    SIGKILL at once: a child has nothing to save, and one that ignores SIGTERM would poison the next trial.
    """
    if _is_unreaped(process.pid):
        with suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(SWEEPS):
        if not _sweep(mark):
            return


def _is_unreaped(child: int) -> bool:
    """Tell whether a number is still our child's; where SIGCHLD is ignored, the kernel has given it back already."""
    try:
        return psutil.Process(child).ppid() == os.getpid()
    except psutil.NoSuchProcess:
        return False


def _sweep(mark: str) -> bool:
    """Kill what carries the mark, such as a daemon in a session of its own; tell whether there was any."""
    found = False
    for number in psutil.pids():
        with suppress(OSError, psutil.Error):  # gone meanwhile, or another user's
            process = psutil.Process(number)
            if process.environ().get(MARK) == mark:
                process.kill()
                found = True
    return found


def last_lines(exit_: Exit, count: int = 40) -> str:
    """Return the end of what the child printed: stderr, or stdout where stderr is empty."""
    said = exit_.stderr.strip() or exit_.stdout.strip()
    return "\n".join(said.splitlines()[-count:])
