"""A process that carries the lines of a machine: of this one, or ssh."""

import os
import queue
import shlex
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from kerasbench import text
from kerasbench.errors import UsageError
from kerasbench.runs.machines import SHOWN, Inbox, Share
from kerasbench.runs.share import MOST_LINE_BYTES, lines

HERE = "here"  # among --hosts: the machine that kerasbench was started on
LEAVING_S = 1.0  # what a process has for ending once its last line was read
LAST_LINES = 5  # of what a carrier has complained about
# No password is asked for, a dead connection is found out within a minute, and no connection is left for others. The
# agent with one's keys stays here, and so does the screen, whatever one's configuration says of that host.
SSH = ("ssh", "-T", "-a", "-x", "-oBatchMode=yes", "-oConnectTimeout=20", "-oServerAliveInterval=15",
       "-oServerAliveCountMax=3", "-oControlMaster=no")  # fmt: skip


class ProcessCarrier:
    """A process here whose standard input and output are those of ``kerasbench share`` there: ssh, mostly."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._complaints: deque[str] = deque(maxlen=LAST_LINES)
        self._threads: list[threading.Thread] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def start(self, share: Share | None, inbox: Inbox) -> None:
        pipe = subprocess.PIPE
        try:
            # In a session of its own: Ctrl-C is for kerasbench, which has its machines end in order.
            self._process = subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise UsageError(f"{self._command[0]} cannot be started: {error.strerror}") from None
        for act, given in ((self._overhear, ()), (self._feed, ()), (self._read, (share, inbox))):
            self._threads.append(threading.Thread(target=act, args=given, daemon=True))
            self._threads[-1].start()

    def send(self, line: bytes) -> None:
        self._outgoing.put(line)

    def end_input(self) -> None:
        """Have it hear that nothing more will come, after all that was sent."""
        self._outgoing.put(None)

    def close(self) -> None:
        self._closed = True
        self.end_input()
        if self._process is None:
            return
        try:
            self._process.wait(LEAVING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the other side hears of it as of the end of its input
            self._process.wait()

    def why(self) -> str:
        status = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):  # it may have closed its output, and go on
                status = self._process.wait(LEAVING_S)
        said = "; ".join(text.one_line(line) for line in self._complaints)
        return (said or f"its process ended with status {status}")[-SHOWN:]

    def _read(self, share: Share | None, inbox: Inbox) -> None:
        assert self._process is not None and self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in lines(stdout.fileno(), MOST_LINE_BYTES):
                self._put(share, line, inbox)
        self._threads[0].join(1)  # what it has complained about, unless a process that it has left holds the pipe
        self._put(share, None, inbox)

    def _put(self, share: Share | None, line: bytes | None, inbox: Inbox) -> None:
        """Put a line into the inbox when there is room; nowhere once nobody takes it any more."""
        while not self._closed:
            with suppress(queue.Full):
                inbox.put((share, line), timeout=1.0)
                return

    def _feed(self) -> None:
        assert self._process is not None and self._process.stdin is not None
        with suppress(OSError), self._process.stdin as stdin:
            while (line := self._outgoing.get()) is not None:
                left = memoryview(line)
                while left:
                    left = left[stdin.write(left) or 0 :]

    def _overhear(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        with self._process.stderr as stderr:
            for line in lines(stderr.fileno(), MOST_LINE_BYTES):
                self._complaints.append(line.decode(errors="replace"))


def on_this_machine(python: str) -> ProcessCarrier:
    return ProcessCarrier([os.path.expanduser(python) or sys.executable, "-m", "kerasbench", "share"])


def over_ssh(host: str, python: str) -> ProcessCarrier:
    """Return what carries a host's share by the user's own ssh, with its keys, agents and configuration."""
    if host == HERE:
        return on_this_machine(python)
    if host.startswith("-") or not host.isprintable() or " " in host:
        raise UsageError(f"--hosts takes names as ssh does, me@box, not {host!r}")
    home = python.startswith("~/")  # for the shell there to make out
    there = f"~/{shlex.quote(python[2:])}" if home else shlex.quote(python or "python3")
    return ProcessCarrier([*SSH, "--", host, f"exec {there} -m kerasbench share"])
