"""Process groups and the guardian, with children that wait; tests/processes/test_process.py has what children start."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from kerasbench.processes import group, guardian
from kerasbench.processes.group import guarded
from tests import stand_in
from tests.untraced import untraced


def test_a_number_that_is_nobody_s_child_here_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    group.send(2**22 + 1, signal.SIGSTOP)  # beyond the highest process number of Linux
    assert group.has_ended(2**22 + 1)
    monkeypatch.setattr(os, "killpg", None)
    group.kill(1)
    group.kill(2**22 + 1)


def guardians() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if "-I" in one.cmdline()]


def test_a_guardian_stands_by_in_a_session_of_its_own_and_holds_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, _ = pipe = os.pipe()
    with guarded() as tell:
        tell("+1-1")
        (guardian,) = guardians()
        assert os.getsid(guardian.pid) == guardian.pid != os.getsid(0)
        os.close(pipe[1])
        assert os.read(held, 1) == b""  # so nobody else could write to it
    os.close(held)
    assert guardians() == []


def test_one_that_somebody_has_killed_disturbs_nothing() -> None:
    with guarded() as tell:
        (guardian,) = guardians()
        guardian.kill()
        stand_in.wait_for(lambda: stand_in.is_gone(guardian))
        tell("+1-1")
        tell("-1-1")


def test_one_that_ends_before_it_stands_by_is_an_error(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o700)
    with pytest.raises(OSError, match="guardian"), guarded(str(python)):
        pass


NAME = "KERASBENCH_TEST_MARK"


@contextmanager
def marked(mark: str) -> Iterator[psutil.Process]:
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


def test_a_group_that_is_stopped_is_killed_when_the_input_ends() -> None:
    with marked("1-1") as left, marked("1-2") as other, stands_by() as process:
        left.suspend()
        _, said = process.communicate(f"+{left.pid}\n+{other.pid}\n-{other.pid}\n+{2**22 + 1}\n")
        assert (process.returncode, said) == (0, "")
        stand_in.wait_for(lambda: stand_in.is_gone(left))
        assert not stand_in.is_gone(other)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what others have in their environment")
def test_what_carries_a_mark_is_killed_wherever_it_has_gone() -> None:
    with marked("1-1") as left, marked("1-2") as other, stands_by() as process:
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
