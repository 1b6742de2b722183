import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kerasbench.processes.group import guarded
from tests import stand_in
from tests.untraced import untraced


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


def test_what_was_not_taken_back_is_killed_at_the_end_though_the_parent_lives() -> None:
    command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    with untraced(), subprocess.Popen(command, start_new_session=True) as child:
        with guarded() as tell:
            tell(f"+{child.pid}")
            child.send_signal(signal.SIGSTOP)
        assert child.wait() == -signal.SIGKILL


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


def test_an_interpreter_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError), guarded("/no/such/python"):
        pytest.fail("it stands by")
