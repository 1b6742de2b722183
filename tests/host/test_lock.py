import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kerasbench.errors import MachineBusy
from kerasbench.host import lock
from kerasbench.host.lock import FOR_ALL, machine_lock

pytestmark = pytest.mark.processes

NOBODY = 65534
HOLD = """
import os, sys
from pathlib import Path
from kerasbench.host.lock import machine_lock
os.setuid(int(sys.argv[2]))
with machine_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(file: Path, user: int | None = None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLD, str(file), str(os.getuid() if user is None else user)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def refused(file: Path) -> str:
    with pytest.raises(MachineBusy) as refusal, machine_lock(file):
        pass
    return str(refusal.value)


def test_a_second_run_is_refused_and_told_who_holds_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with holder(file) as first:
        for _ in range(2):  # whoever is refused takes neither the lock nor its holder's name away
            assert re.search(rf"process {first.pid}, since 2.*: -c\); wait until it ends", refused(file))
        first.communicate()
    with machine_lock(file):
        pass


def test_a_run_that_waits_is_told_of_each_holder_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "RETRY_S", 0.01)
    file = tmp_path / "lock"
    holders = [holder(file)]
    said: list[str] = []

    def told(line: str) -> None:
        said.append(line)
        holders[-1].communicate()
        if len(said) == 1:
            holders.append(holder(file))

    with machine_lock(file, told):
        assert all(run.poll() == 0 for run in holders)
    for line, run in zip(said, holders, strict=True):
        assert f"waiting for another kerasbench run on this machine (process {run.pid}, since 2" in line


WAIT = """
import os, sys
from pathlib import Path
from kerasbench.host import lock
lock.RETRY_S = 0.01
with lock.machine_lock(Path(sys.argv[1]), lambda line: print(line, flush=True)):
    with open(sys.argv[2], "a") as stream:
        print(os.getpid(), file=stream)
"""


def waiting(file: Path, served: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", WAIT, str(file), str(served)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("waiting for another kerasbench run")
    return process


def test_runs_that_wait_are_served_in_turn_and_those_that_are_gone_or_stopped_hold_up_nobody(tmp_path: Path) -> None:
    file, served = tmp_path / "lock", tmp_path / "served"
    with holder(file) as first:
        runs = [waiting(file, served) for _ in range(6)]
        runs[0].kill()
        runs[0].wait()
        runs[1].send_signal(signal.SIGSTOP)
        first.communicate()
        for run in (runs[0], *runs[2:]):
            run.communicate()
        assert list(map(int, served.read_text().split())) == [run.pid for run in runs[2:]]
        runs[1].send_signal(signal.SIGCONT)
        runs[1].communicate()
    assert served.read_text().split()[-1] == str(runs[1].pid)


def test_a_run_is_told_how_many_wait_before_it(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with holder(file) as first:
        earlier = waiting(file, tmp_path / "served")
        second = subprocess.Popen(
            [sys.executable, "-c", WAIT, str(file), str(tmp_path / "served")], stdout=subprocess.PIPE, text=True
        )
        assert second.stdout is not None
        assert f"(process {first.pid}, since 2" in (line := second.stdout.readline())
        assert "; waiting before this run: 1); Ctrl-C stops waiting" in line
        first.communicate()
        earlier.communicate()
        second.communicate()
    assert [*tmp_path.glob("*.waits")] == []


def test_what_another_program_wrote_there_names_nobody_and_moves_no_cursor(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with holder(file) as first:
        (card,) = tmp_path.glob("lock.*.json")
        named = json.dumps(json.loads(card.read_text()) | {"command": "\x1b[2Jx\n"})
        for written in ("[1, 2", "[" * 10_000, "{}", '{"pid": -1, "born": 0, "since": "", "command": ""}'):
            card.write_text(written)
            assert "unknown process" in refused(file)
        card.write_text(named)
        assert refused(file).isprintable()
        first.communicate()


def test_a_name_that_a_killed_run_has_left_is_not_taken_for_the_holder_s(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with holder(file) as first:
        first.kill()
    (left,) = tmp_path.glob("lock.*.json")
    recycled = json.loads(left.read_text()) | {"pid": os.getpid()}  # the number is in use again, by another process
    left.rename(tmp_path / "lock.-1.json").write_text(json.dumps(recycled))
    with holder(file) as second:
        assert f"process {second.pid}, " in refused(file)
        second.communicate()


def test_the_lock_is_for_every_user_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    with machine_lock(tmp_path / "lock"):
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == FOR_ALL


def test_a_file_of_one_s_own_that_lies_at_the_lock_s_path_stays_as_it_is(tmp_path: Path) -> None:
    """In /tmp another user may link it there, unless the kernel forbids that. filelock before 4.2.1 emptied it."""
    mine = tmp_path / "own"
    mine.write_text("precious")
    mine.chmod(0o600)
    os.link(mine, tmp_path / "lock")
    with machine_lock(tmp_path / "lock"):
        pass
    assert (mine.read_text(), mine.stat().st_mode & 0o777) == ("precious", 0o600)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_another_user_is_refused_by_name_and_not_locked_out_by_what_is_left() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)  # as /tmp: there nobody may replace another's files
        file = Path(folder, "lock")
        with holder(file, user=NOBODY) as first:
            assert f"process {first.pid}, since 2" in refused(file)
            first.kill()
        with machine_lock(file):
            pass
        with holder(file) as second:
            second.kill()
        with holder(file, user=NOBODY) as third:
            third.communicate()


def test_a_lock_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert re.search("the lock of this machine cannot be taken: .*; make .* writable", refused(tmp_path / "file/lock"))


def test_others_see_the_command_s_name_and_none_of_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands = {"versus https://TOKEN@example.org --budget 1h": "kerasbench versus", "--python torch=/me": "kerasbench"}
    for words, command in commands.items():
        monkeypatch.setattr("sys.argv", ["/home/me/bin/kerasbench", *words.split()])
        with machine_lock(tmp_path / "a.lock"):
            (card,) = tmp_path.glob("*.json")
            assert json.loads(card.read_text())["command"] == command
