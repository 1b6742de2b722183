"""Keeps this machine awake while it measures: systems sleep by their idle timer, though processes compute."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# It waits for the end of its input, which ends with this process, however that does.
INHIBIT = ("systemd-inhibit", "--what=idle:sleep", "--who=kerasbench", "--why=measuring", "cat")
CAFFEINATE = ("caffeinate", "-i", "-w")  # until the process ends whose number follows


@contextmanager
def kept_awake() -> Iterator[None]:
    """Keep this machine awake meanwhile, where a program can; where none can, as without a session bus, say nothing."""
    command = (*CAFFEINATE, str(os.getpid())) if sys.platform == "darwin" else INHIBIT
    guard, quiet = None, subprocess.DEVNULL
    with suppress(OSError):
        # In a session of its own: Ctrl-C does not reach it, and it finds no terminal to ask for a password on.
        guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        if guard is not None:
            guard.kill()
            guard.communicate()  # closes its input and reaps it
