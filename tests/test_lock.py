import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.errors import MachineBusy
from kerasbench.lock import busy, machine_lock

HOLD = """
import sys
from pathlib import Path
from kerasbench.lock import machine_lock
with machine_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(file: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_refused_and_told_who_holds_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with holder(file) as first:
        with (
            pytest.raises(MachineBusy, match=rf"process {first.pid}, since 2.*: -c .*wait for its end"),
            machine_lock(file),
        ):
            pass
        first.communicate()
    with machine_lock(file):
        pass


def test_a_lock_whose_holder_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with holder(file) as first:
        first.kill()
    with machine_lock(file):
        pass


def test_what_another_program_wrote_there_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "lock.json").write_text("[1, 2")
    with machine_lock(tmp_path / "lock"):
        pass
    assert "it gives no name" in busy({})


def test_a_lock_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(MachineBusy, match="the lock of this machine cannot be taken"),
        machine_lock(tmp_path / "file" / "lock"),
    ):
        pass
