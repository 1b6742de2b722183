"""A shell that carries the lines of a machine: of this one, or by the user's own ssh."""

import os
import select
import shlex
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from kerasbench import text
from kerasbench.errors import ResultsError, UsageError

HERE = "here"  # among --hosts: the machine that kerasbench was started on
PYTHON = "KERASBENCH_PYTHON"  # in a shell on this machine: the interpreter that runs kerasbench
BLOCK = 1 << 16  # bytes read at once: what a pipe holds
SHOWN = 300  # characters of what it has complained about
LEAVING_S = 1.0  # what a process has for ending once its output has ended
ANSWER_S = 120.0  # until its first output
SLOW_BYTES_S = 100_000.0  # of a connection by which files go
# No password is asked for, a dead connection is found out within a minute, none is shared; agent and screen stay here.
SSH = ("ssh", "-T", "-a", "-x", "-oBatchMode=yes", "-oConnectTimeout=20", "-oServerAliveInterval=15",
       "-oServerAliveCountMax=3", "-oControlMaster=no")  # fmt: skip


class Shell:
    warning = ""  # about its last script

    def __init__(self, host: str = HERE) -> None:
        if host.startswith("-") or not host.isprintable() or " " in host:
            raise UsageError(f"--hosts takes names as ssh does, me@box, not {host!r}")
        self._host = host
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, script: str, given: bytes | None = None) -> Iterator[bytes]:
        """Yield a script's output in blocks; its input is open until ``stop``, or what is given. Raise ResultsError."""
        # Whichever shell its user has there, a script is one of sh.
        there = [*SSH, "--", self._host, f"exec sh -c {shlex.quote(script)}"]
        command, pipe = ["sh", "-c", script] if self._host == HERE else there, subprocess.PIPE
        with tempfile.TemporaryFile() as stream:
            stream.write(given or b"")
            stream.seek(0)
            try:
                # In a session of its own: Ctrl-C is for kerasbench, which has its machines end in order.
                process = self._process = subprocess.Popen(
                    command, stdin=pipe if given is None else stream, stdout=pipe, stderr=pipe, bufsize=0,
                    start_new_session=True, env=os.environ | {PYTHON: sys.executable},
                )  # fmt: skip
            except OSError as error:
                raise ResultsError(f"{command[0]} cannot be started: {error.strerror}") from None
        if self._stopped:
            self.stop()
        assert process.stdout is not None and process.stderr is not None
        complaints = deque[bytes](maxlen=2)
        hearing = threading.Thread(target=_overhear, args=[process.stderr, complaints], daemon=True)
        hearing.start()
        try:
            if not select.select([process.stdout], [], [], ANSWER_S + len(given or b"") / SLOW_BYTES_S)[0]:
                why = "something there keeps it from starting, such as a login script that waits"
                raise ResultsError(f"no answer in {ANSWER_S:g} s: {why}")
            while block := process.stdout.read(BLOCK):
                yield block
            with suppress(subprocess.TimeoutExpired):
                process.wait(LEAVING_S)
            hearing.join(LEAVING_S)  # unless a process that it has left holds the pipe
            if process.poll() != 0:
                complaint = text.one_line(b"".join(complaints).decode(errors="replace"))
                raise ResultsError((complaint or f"its process ended with status {process.poll()}")[-SHOWN:])
        finally:
            self.close()
            process.stdout.close()

    def stop(self) -> None:
        self._stopped = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def close(self) -> None:
        """Leave nothing of it behind here; the other side hears of it as of the end of its input."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVING_S)
            self._process.kill()
            self._process.wait()


def _overhear(stream: IO[bytes], complaints: deque[bytes]) -> None:
    with stream, suppress(OSError):
        while block := stream.read(BLOCK):
            complaints.append(block)
