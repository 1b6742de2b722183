"""The script that kills what a parent has left, with processes that stand for its children."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from kerasbench.processes import guardian
from tests import stand_in
from tests.untraced import untraced

NAME = "KERASBENCH_TEST_MARK"


@contextmanager
def child(mark: str) -> Iterator[psutil.Process]:
    """Start a process in a group of its own that carries a mark."""
    command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    with untraced(), subprocess.Popen(command, env={NAME: mark}, start_new_session=True) as process:
        stand_in.wait_for(lambda: psutil.Process(process.pid).environ().get(NAME) == mark)
        yield psutil.Process(process.pid)
        process.kill()


@contextmanager
def stands_by() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-I", "-S", guardian.__file__, NAME]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_what_is_known_at_the_end_is_what_was_not_taken_back() -> None:
    assert guardian.what_is_left(["+1-2\n", "+77\n", "+1-3\n", "+78\n", "-77\n", "-1-2\n"]) == {"1-3", "78"}


def test_a_group_that_is_stopped_is_killed_when_the_input_ends() -> None:
    with child("1-1") as left, child("1-2") as other, stands_by() as process:
        left.suspend()
        _, said = process.communicate(f"+{left.pid}\n+{other.pid}\n-{other.pid}\n+{2**22 + 1}\n")
        assert (process.returncode, said) == (0, "")
        stand_in.wait_for(lambda: stand_in.is_gone(left))
        assert not stand_in.is_gone(other)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what others have in their environment")
def test_what_carries_a_mark_is_killed_wherever_it_has_gone() -> None:
    with child("1-1") as left, child("1-2") as other, stands_by() as process:
        process.communicate("+1-1\n+1-2\n-1-2\n")
        stand_in.wait_for(lambda: stand_in.is_gone(left))
        assert not stand_in.is_gone(other)


def test_it_kills_nothing_where_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *ignored: None)
    monkeypatch.setattr(sys, "stdin", ["+12\n", "+1-2\n", "-12\n", "-1-2\n"])
    monkeypatch.setattr(os, "kill", None)
    monkeypatch.setattr(os, "killpg", None)
    guardian.main(NAME)


def test_it_is_ended_by_no_signal_that_ends_its_parent() -> None:
    with stands_by() as process:
        for number in guardian.IGNORED:
            process.send_signal(number)
        assert process.communicate("") == ("", "")
        assert process.returncode == 0
