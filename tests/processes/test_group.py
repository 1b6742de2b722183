"""Process groups, with one child; tests/processes/test_process.py has what they start."""

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from kerasbench.processes import group
from tests import stand_in
from tests.untraced import untraced

DEAF = """
import signal, sys
for ignored in (signal.SIGTERM, signal.SIGTSTP, signal.SIGHUP):
    signal.signal(ignored, signal.SIG_IGN)
print(flush=True)
while True: signal.pause()
"""


@pytest.fixture
def child() -> Iterator[int]:
    """Start a child that waits for ever in a group of its own, and ignores what can be ignored."""
    command = [sys.executable, "-I", "-S", "-c", DEAF]
    with untraced(), subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_a_group_is_stopped_and_goes_on_and_is_killed_while_it_is_stopped(child: int) -> None:
    process = psutil.Process(child)
    group.stop(child)
    stand_in.wait_for(lambda: process.status() == psutil.STATUS_STOPPED)
    group.resume(child)
    stand_in.wait_for(lambda: process.status() == psutil.STATUS_SLEEPING)
    group.stop(child)
    assert not group.has_ended(child)
    group.kill(child)
    stand_in.wait_for(lambda: group.has_ended(child))
    assert process.status() == psutil.STATUS_ZOMBIE  # and nobody has reaped it


def test_a_number_that_is_nobody_s_child_here_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "killpg", None)
    group.kill(1)
    group.kill(2**22 + 1)
    assert group.has_ended(2**22 + 1)


def test_what_has_gone_is_neither_stopped_nor_resumed() -> None:
    group.stop(2**22 + 1)
    group.resume(2**22 + 1)
