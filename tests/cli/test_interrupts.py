"""Whatever ends a run, and whenever: a file that loads, no child left behind, no traceback."""

import fcntl
import importlib
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from kerasbench.cli import main
from kerasbench.cli.main import Interruptions, heeded
from kerasbench.errors import ResultsError
from kerasbench.host.lock import machine_lock
from kerasbench.results import store
from kerasbench.results.run import Run, Trial
from kerasbench.runs.run import SUPERSEDED
from tests import stand_in
from tests.host import awake
from tests.stand_in import Command, handling
from tests.untraced import untraced

pytestmark = pytest.mark.processes

ROUNDS = 6
BOTH = ("--backend", "jax,torch", "--rounds", str(ROUNDS))
CHILDREN = 3 + ROUNDS * len(stand_in.BACKENDS)  # one describes the file, one probes each backend, at least
MOST = 10  # times as many as were asked for, until one has come in the middle: of five, three do
PAUSE_S = 0.1  # longer than a child takes, and than all that comes before the first and after the last


def begin(command: Command, *arguments: str) -> int:
    return command.start("--scenario", str(command.folder / "mine.py"), *(arguments or BOTH))


def hanging(folder: Path) -> psutil.Process:
    """Wait for the first child that hangs."""
    stand_in.wait_for(lambda: stand_in.hung(folder) != [])
    return stand_in.hung(folder)[0]


@pytest.mark.parametrize("answer", ["probe-jax", "describe"])
def test_ctrl_c_waits_for_no_child_before_anything_is_measured(command: Command, answer: str) -> None:
    stand_in.hang(command.folder, answer)
    begin(command)
    child = hanging(command.folder)
    assert _progress(command).startswith("asking jax, torch what they see\n" if answer == "probe-jax" else "")
    assert command.ended(signal.SIGINT) == 130
    assert stand_in.is_gone(child)
    assert "Traceback" not in command.output()[1]
    assert not command.results.exists()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_the_machine_is_kept_awake_until_a_run_ends_however_it_does(command: Command, ending: signal.Signals) -> None:
    said = awake.put(command.folder, awake.INHIBITS)
    stand_in.hang(command.folder, "probe-jax")
    begin(command)
    hanging(command.folder)
    stand_in.wait_for(said.exists)
    guard, *words = said.read_text().split()
    started = [psutil.Process(int(guard)), *psutil.Process(int(guard)).children()]
    assert words == ["--what=idle:sleep", "--who=kerasbench", "--why=measuring", "cat"]
    command.ended(ending)
    stand_in.wait_for(lambda: all(map(stand_in.is_gone, started)))


def test_a_run_that_waits_can_be_ended_and_is_measured_when_the_other_has_ended(command: Command) -> None:
    with machine_lock(command.folder / "lock"):
        for ends in (True, False):
            begin(command, "--backend", "torch", "--rounds", "1", "--wait")
            stand_in.wait_for(lambda: f"(process {os.getpid()}, since" in _progress(command))
            assert not ends or command.ended(signal.SIGINT) == 130
        assert not command.results.exists()
    assert command.ended() == 0
    assert _journaled(command) == 1
    assert (command.folder / "let_in").read_text() == "no\n"  # what nobody lets in stays out
    assert "--keep-env" not in command.output()[0]


def test_what_is_resumed_is_looked_for_when_the_waiting_is_over(command: Command) -> None:
    """The run that is waited for may be the one that would be resumed, and then there is none."""
    begin(command, "--backend", "torch", "--rounds", "10000")
    stand_in.wait_for(lambda: _journaled(command) > 0)
    command.ended(signal.SIGKILL)
    with machine_lock(command.folder / "lock"):
        command.start("--resume", "--wait")
        stand_in.wait_for(lambda: "waiting for another kerasbench run" in _progress(command))
        shutil.rmtree(command.results)
    assert command.ended() == 2
    assert "no run here was interrupted" in command.output()[1]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_once_ends_the_trial_in_flight_and_keeps_and_prints_the_rest(command: Command, ending: signal.Signals) -> None:
    named = f"torch={command.folder}/python"
    begin(command, "--backend", "torch", "--rounds", "10000", "--python", named)
    stand_in.wait_for(lambda: _journaled(command) > 2)
    stand_in.hang(command.folder, "trial-torch")
    child = hanging(command.folder)
    assert command.ended(ending) == 130
    assert stand_in.is_gone(child)
    record, page = _interrupted(command.results)
    assert len(record.trials) > 2 and page.exists()
    tables, progress = command.output()
    assert "| mine " in tables
    assert f"to continue: python -m kerasbench run --resume --results {command.results} --python={named} " in progress


def test_a_terminal_that_is_closed_leaves_a_finished_file(tmp_path: Path) -> None:
    scenario = stand_in.furnish(tmp_path)
    stand_in.hang(tmp_path, "trial-torch")
    ours, theirs = pty.openpty()
    arguments = ["--scenario", str(scenario), "--backend", "torch", "--results", str(tmp_path / "results")]
    with untraced():
        run = subprocess.Popen(
            [sys.executable, "-m", "tests.stand_in.command", str(tmp_path), "0", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
    os.close(theirs)
    child = hanging(tmp_path)
    os.close(ours)
    run.wait(60)
    _interrupted(tmp_path / "results")
    assert stand_in.is_gone(child)


def _interrupted(results: Path) -> tuple[Run, Path]:
    """Return what there is of the only run, which was interrupted in order, and its page."""
    (data,) = results.glob("*.json*")
    record = store.load(data)
    assert (data.suffix, record.stopped_because) == (".json", "interrupted")
    return record, data.with_suffix(".md")


@pytest.mark.parametrize("runs", [3, pytest.param(20, marks=pytest.mark.weekly)])
def test_ctrl_c_twice_at_any_moment_leaves_what_can_be_resumed(command: Command, rng: random.Random, runs: int) -> None:
    for _ in range(runs):
        run = begin(command)
        _wait_for_any_moment(command, rng)
        for pause_s in (rng.uniform(0.0, 0.03), 0.0):
            os.kill(run, signal.SIGINT)
            time.sleep(pause_s)
        assert command.ended() in (130, 0, -signal.SIGINT)  # the last: before or after all that is to be kept
        assert "Traceback" not in command.output()[1] and "Exception ignored" not in command.output()[1]
        assert not any(command.results.glob("*.partial"))
        _records(command)
        stand_in.wait_for(lambda: stand_in.children(command.folder) == [])


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.weekly)])
def test_a_run_killed_at_random_is_complete_in_the_end(command: Command, rng: random.Random, kills: int) -> None:
    on_disk: list[Trial] = []
    command.results.mkdir()
    (command.results / "2026-01-02T030405.json.partial").write_text("{")  # as others will be left here
    killed = in_the_middle = 0
    while killed < kills or not in_the_middle:
        assert killed < MOST * kills, "none of them came in the middle of a run"
        killed += 1
        on_disk = _go_on(command, on_disk)
        _wait_for_any_moment(command, rng)
        command.ended(signal.SIGKILL)
        in_the_middle += any(record.unfinished and record.trials for record in _records(command))
    for _ in range(2):  # the one that was killed last, where it was not at its end, and one more from the beginning
        on_disk = _go_on(command, on_disk)
        assert command.ended() == 0, command.output()
    records = _records(command)
    assert len(records) > 1 and not any(record.unfinished for record in records)
    for record in records:
        if record.stopped_because != SUPERSEDED:  # a kill between the trials of a block leaves its first ones alone
            tried = sorted((trial.round, trial.backend) for trial in record.trials)
            assert tried == [(number, backend) for number in range(1, ROUNDS + 1) for backend in stand_in.BACKENDS]
            assert len({(trial.round, trial.block) for trial in record.trials}) == ROUNDS  # side by side
    # Half a file, of one that was killed while it wrote, is swept up by a run that begins an hour later.
    assert {file.suffix for file in command.results.iterdir()} - {".partial"} == {".json", ".md", ".svg"}
    stand_in.wait_for(lambda: stand_in.children(command.folder) == [])


def _go_on(command: Command, on_disk: list[Trial]) -> list[Trial]:
    """Resume, or begin anew; return the trials that are on disk before, of which none that was there may have gone."""
    records = _records(command)
    there = [trial for record in records for trial in record.trials]
    assert [trial for trial in on_disk if trial not in there] == []
    for file in command.results.iterdir():  # as if an hour had passed: only then what is half written is swept up
        os.utime(file, (0, 0))
    if any(record.unfinished for record in records):
        command.start("--resume", "--scenario", str(command.folder / "mine.py"))
    else:
        begin(command)
    return there


def _wait_for_any_moment(command: Command, rng: random.Random) -> None:
    """Wait until a run has started some number of children, or is over, and then a little.

    Drawn from what the run does, not from the time that it takes: a seed comes to the same place on any machine.
    """
    enough = len(stand_in.started(command.folder)) + rng.randint(0, CHILDREN)
    run = psutil.Process(command.process)
    stand_in.wait_for(lambda: len(stand_in.started(command.folder)) >= enough or stand_in.is_gone(run))
    time.sleep(rng.uniform(0.0, PAUSE_S))


def _records(command: Command) -> list[Run]:
    files: list[Path] = []
    with suppress(ResultsError, FileNotFoundError):
        files = store.result_files(command.results)
    return list(map(store.load, files))


def _progress(command: Command) -> str:
    """Return what it has written to stderr by now."""
    return command.output()[1] if (command.folder / "err").exists() else ""


def _journaled(command: Command) -> int:
    return max((len(record.trials) for record in _records(command)), default=0)


def test_twice_raises_and_the_third_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    leave = Mock(side_effect=SystemExit)
    monkeypatch.setattr("os._exit", leave)
    received = Interruptions()
    for raised in (KeyboardInterrupt, KeyboardInterrupt, SystemExit):
        leave.assert_not_called()
        with pytest.raises(raised):
            received.take(signal.SIGINT, None)
    leave.assert_called_once_with(130)


def test_a_hang_up_that_is_said_again_is_one() -> None:
    received = Interruptions()
    with pytest.raises(KeyboardInterrupt):
        received.take(signal.SIGHUP, None)
    received.take(signal.SIGHUP, None)
    assert received.count == 1


def test_what_is_ignored_stays_ignored_and_what_was_there_is_put_back() -> None:
    was = signal.getsignal(signal.SIGTERM)
    with handling(signal.SIGHUP, signal.SIG_IGN):
        with heeded():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is was


IMPORTED = "import signal, time\nsignal.raise_signal({number})\ntime.sleep(0.05)\nto_the_end = True\n"


@pytest.mark.parametrize("place", ["import", "destructor"])
@pytest.mark.parametrize("comes", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("again_s", [0.0, main.AGAIN_S])  # 0: while the hook is still at it
def test_an_interruption_that_comes_where_nothing_can_be_raised_is_raised_after_it(
    place: str, comes: signal.Signals, again_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of numpy cannot be imported again, and Python drops what a destructor raises, and says so on stderr."""
    name = f"slow_to_import_{comes.name}_{again_s > 0}"
    (tmp_path / f"{name}.py").write_text(IMPORTED.format(number=comes.value))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(main, "AGAIN_S", again_s)

    class Fragile:
        def __del__(self) -> None:
            signal.raise_signal(comes)

    # Ctrl-C is ignored by a job in the background, or under a supervisor: then it is SIGTERM that comes.
    before = signal.default_int_handler if comes is signal.SIGINT else signal.SIG_IGN
    with handling(signal.SIGINT, before), heeded():
        if place == "import":
            assert importlib.import_module(name).to_the_end
        else:
            Fragile()
        with pytest.raises(KeyboardInterrupt):
            _wait_for_a_signal()


def test_a_command_line_in_an_import_can_be_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs_at_import.py").write_text(
        "from kerasbench.cli import main\ncode = main.main(['report', 'nothing'])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        _wait_for_a_signal()

    monkeypatch.setattr(main.app, "invoke", interrupted)
    with handling(signal.SIGINT, signal.default_int_handler):
        assert importlib.import_module("runs_at_import").code == 130


def _wait_for_a_signal() -> None:
    for _ in range(1000):  # not in one sleep: a signal that comes just before it does not end it
        time.sleep(0.01)
