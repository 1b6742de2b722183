"""Process groups and the guardian, with children that wait; tests/processes/test_process.py has what children start."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE

import psutil
import pytest

from kerasbench.processes import group, guardian
from kerasbench.processes.group import guarded
from tests import stand_in
from tests.untraced import untraced

NAME = "KERASBENCH_TEST_MARK"


def test_a_number_that_is_nobody_s_child_here_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    group.send(2**22 + 1, signal.SIGSTOP)  # beyond the highest process number of Linux
    assert group.has_ended(2**22 + 1)
    monkeypatch.setattr(os, "killpg", None)
    group.kill(1)
    group.kill(2**22 + 1)


def test_a_guardian_stands_by_in_a_session_of_its_own_and_disturbs_nothing_if_somebody_kills_it() -> None:
    with guarded() as tell:
        (guardian,) = [child for child in psutil.Process().children() if "-I" in child.cmdline()]
        assert os.getsid(guardian.pid) == guardian.pid != os.getsid(0)
        guardian.kill()
        stand_in.wait_for(lambda: stand_in.is_gone(guardian))
        tell("+1-1")
        tell("-1-1")
    assert not psutil.pid_exists(guardian.pid)


def test_one_that_ends_before_it_stands_by_is_an_error() -> None:
    with pytest.raises(OSError, match="guardian"), guarded("false"):
        pass


@contextmanager
def marked(mark: str) -> Iterator[psutil.Process]:
    command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    with untraced(), subprocess.Popen(command, env={NAME: mark}, start_new_session=True) as process:
        stand_in.wait_for(lambda: psutil.Process(process.pid).environ().get(NAME) == mark)
        yield psutil.Process(process.pid)
        process.kill()


def test_what_is_left_when_the_input_ends_is_killed_though_it_is_stopped() -> None:
    command = [sys.executable, "-I", "-S", guardian.__file__, NAME]
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
    with marked("1-1") as left, marked("1-2") as of_mark, marked("1-3") as other, process:
        assert process.stdout is not None
        process.stdout.readline()  # it stands by
        left.suspend()
        of_mark.suspend()
        for number in guardian.IGNORED:  # it is ended by no signal that ends its parent
            process.send_signal(number)
        lines = (f"+{left.pid}", "+1-2", "+1-3", f"+{other.pid}", "-1-3", f"-{other.pid}", f"+{2**22 + 1}\n")
        _, said = process.communicate("\n".join(lines))
        assert (process.returncode, said) == (0, "")
        stand_in.wait_for(lambda: stand_in.is_gone(left))
        stand_in.wait_for(lambda: stand_in.is_gone(of_mark) or sys.platform != "linux")  # which alone shows marks
        assert not stand_in.is_gone(other)


def test_it_kills_nothing_where_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *ignored: None)
    monkeypatch.setattr(sys, "stdin", ["+12\n", "+1-2\n", "-12\n", "-1-2\n"])
    monkeypatch.setattr(os, "kill", None)
    monkeypatch.setattr(os, "killpg", None)
    guardian.main(NAME)
