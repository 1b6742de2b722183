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
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from kerasbench.cli import main
from kerasbench.cli.main import Interruptions, heeded
from kerasbench.errors import ResultsError
from kerasbench.host.lock import machine_lock
from kerasbench.results import store
from kerasbench.results.run import Trial
from kerasbench.runs.run import SUPERSEDED
from tests import stand_in
from tests.host import awake
from tests.stand_in import Command
from tests.untraced import untraced

pytestmark = pytest.mark.processes

ROUNDS = 6
BOTH = ("--backend", "jax,torch", "--rounds", str(ROUNDS))
CHILDREN = 3 + ROUNDS * len(stand_in.BACKENDS)  # one describes the file, one probes each backend, at least
MOST = 10  # times as many as were asked for, until one has come in the middle: of five, three do
PAUSE_S = 0.1  # longer than a child takes, and than all that comes before the first and after the last


def begin(command: Command, *arguments: str) -> int:
    return command.start("--scenario", str(command.folder / "mine.py"), *(arguments or BOTH))


@pytest.mark.parametrize("answer", ["probe-jax", "describe"])
def test_ctrl_c_waits_for_no_child_before_anything_is_measured(command: Command, answer: str) -> None:
    stand_in.hang(command.folder, answer)
    begin(command)
    stand_in.wait_for(lambda: stand_in.hung(command.folder) != [])
    children = stand_in.hung(command.folder)
    assert _progress(command).startswith("asking jax, torch what they see\n" if answer == "probe-jax" else "")
    assert command.ended(signal.SIGINT) == 130
    assert all(stand_in.is_gone(child) for child in children)
    assert "Traceback" not in command.output()[1]
    assert not command.results.exists()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_the_machine_is_kept_awake_until_a_run_ends_however_it_does(command: Command, ending: signal.Signals) -> None:
    said = awake.put(command.folder, awake.INHIBITS)
    stand_in.hang(command.folder, "probe-jax")
    begin(command)
    stand_in.wait_for(lambda: stand_in.hung(command.folder) != [] and said.exists())
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


def test_what_is_let_in_from_the_shell_reaches_the_children_and_is_in_the_file(command: Command) -> None:
    begin(command, "--backend", "torch", "--rounds", "1", "--keep-env", "LET_IN")
    assert command.ended() == 0
    assert (command.folder / "let_in").read_text() == "yes\n"
    (file,) = _files(command)
    assert store.load(file).config.keep_env == {"LET_IN": "yes"}
    page = file.with_suffix(".md").read_text().replace("\\", "")
    assert "Variables of the shell that were passed through (--keep-env): LET_IN=yes." in page


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_once_ends_the_trial_in_flight_and_keeps_and_prints_the_rest(command: Command, ending: signal.Signals) -> None:
    named = f"torch={command.folder}/python"
    begin(command, "--backend", "torch", "--rounds", "10000", "--python", named)
    stand_in.wait_for(lambda: _journaled(command) > 2)
    stand_in.hang(command.folder, "trial-torch")
    stand_in.wait_for(lambda: stand_in.hung(command.folder) != [])
    (child,) = stand_in.hung(command.folder)
    assert command.ended(ending) == 130
    assert stand_in.is_gone(child)
    (data,) = command.results.glob("*.json*")
    record = store.load(data)
    assert (data.suffix, record.stopped_because) == (".json", "interrupted")
    assert len(record.trials) > 2
    assert data.with_suffix(".md").exists()
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
    stand_in.wait_for(lambda: stand_in.hung(tmp_path) != [])
    (child,) = stand_in.hung(tmp_path)
    os.close(ours)
    run.wait(60)
    (data,) = (tmp_path / "results").glob("*.json*")
    assert (data.suffix, store.load(data).stopped_because) == (".json", "interrupted")
    assert stand_in.is_gone(child)


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
        for file in _files(command):
            store.load(file)
        stand_in.wait_for(lambda: stand_in.children(command.folder) == [])


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.weekly)])
def test_a_run_that_is_killed_at_random_moments_is_complete_in_the_end(
    command: Command, rng: random.Random, kills: int
) -> None:
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
        in_the_middle += any(record.unfinished and record.trials for record in map(store.load, _files(command)))
    for _ in range(2):  # the one that was killed last, where it was not at its end, and one more from the beginning
        on_disk = _go_on(command, on_disk)
        assert command.ended() == 0, command.output()
    assert not _unfinished(command)
    files = _files(command)
    assert len(files) > 1
    for record in map(store.load, files):
        if record.stopped_because != SUPERSEDED:  # a kill between the trials of a block leaves its first ones alone
            _check_complete(record.trials)
    # Half a file, of one that was killed while it wrote, is swept up by a run that begins an hour later.
    assert {file.suffix for file in command.results.iterdir()} - {".partial"} == {".json", ".md", ".svg"}
    stand_in.wait_for(lambda: stand_in.children(command.folder) == [])


def _go_on(command: Command, on_disk: list[Trial]) -> list[Trial]:
    """Resume, or begin anew; return the trials that are on disk before, of which none that was there may have gone."""
    found = [trial for file in _files(command) for trial in store.load(file).trials]
    assert [trial for trial in on_disk if trial not in found] == []
    for file in command.results.iterdir():  # as if an hour had passed: only then what is half written is swept up
        os.utime(file, (0, 0))
    if _unfinished(command):
        command.start("--resume", "--scenario", str(command.folder / "mine.py"))
    else:
        begin(command)
    return found


def _check_complete(trials: list[Trial]) -> None:
    """Every case has every round once, and those of a round were measured side by side."""
    tried = Counter((trial.backend, trial.round) for trial in trials)
    assert set(tried) == {(backend, number) for backend in stand_in.BACKENDS for number in range(1, ROUNDS + 1)}
    assert set(tried.values()) == {1}
    assert len({(trial.round, trial.block) for trial in trials}) == ROUNDS


def _wait_for_any_moment(command: Command, rng: random.Random) -> None:
    """Wait until a run has started some number of children, or is over, and then a little.

    Drawn from what the run does, not from the time that it takes: the same seed comes to the same place on any
    machine.
    """
    earlier = len(stand_in.started(command.folder))
    enough = earlier + rng.randint(0, CHILDREN)
    run = psutil.Process(command.process)
    stand_in.wait_for(lambda: len(stand_in.started(command.folder)) >= enough or stand_in.is_gone(run))
    time.sleep(rng.uniform(0.0, PAUSE_S))


def _files(command: Command) -> list[Path]:
    """Return the runs of the folder that have begun."""
    with suppress(ResultsError):
        return store.result_files(command.results) if command.results.is_dir() else []
    return []


def _unfinished(command: Command) -> bool:
    return any(store.load(file).unfinished for file in _files(command))


def _progress(command: Command) -> str:
    """Return what it has written to stderr by now."""
    return command.output()[1] if (command.folder / "err").exists() else ""


def _journaled(command: Command) -> int:
    return max((len(store.load(file).trials) for file in _files(command)), default=0)


def test_twice_raises_and_the_third_would_leave_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr("os._exit", left.append)
    received = Interruptions()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            received.take(signal.SIGINT, None)
    assert left == []
    with pytest.raises(KeyboardInterrupt):  # only because leaving is stubbed out
        received.take(signal.SIGINT, None)
    assert left == [130]
    received = Interruptions()
    with pytest.raises(KeyboardInterrupt):
        received.take(signal.SIGHUP, None)
    received.take(signal.SIGHUP, None)
    assert received.count == 1  # a hang-up that is said again is one


def test_what_is_ignored_stays_ignored_and_what_was_there_is_put_back() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        was = signal.getsignal(signal.SIGTERM)
        with heeded():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is was
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.fixture
def _ctrl_c_counts() -> Iterator[None]:
    """Undo what a shell does to a test run in the background: SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_counts")
@pytest.mark.parametrize("again_s", [0.0, main.AGAIN_S])  # 0: while the hook is still at it
def test_an_interruption_that_comes_where_nothing_can_be_raised_is_raised_after_it(
    monkeypatch: pytest.MonkeyPatch, again_s: float
) -> None:
    monkeypatch.setattr(main, "AGAIN_S", again_s)

    class Fragile:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with heeded():
        Fragile()  # Python drops what its end raises, and says so on stderr
        with pytest.raises(KeyboardInterrupt):
            _wait_for_a_signal()


@pytest.mark.usefixtures("_ctrl_c_counts")
def test_a_module_is_imported_to_its_end_before_an_interruption_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of numpy cannot be imported again; and Python 3.11 turns what ``__set_name__`` raises into RuntimeError."""
    (tmp_path / "slow_to_import.py").write_text(
        "import signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(0.05)\nto_the_end = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with heeded():
        module = importlib.import_module("slow_to_import")
        with pytest.raises(KeyboardInterrupt):
            _wait_for_a_signal()
    assert module.to_the_end


@pytest.mark.parametrize("comes", ["in an import", "in a destructor"])
def test_where_ctrl_c_is_ignored_it_is_sigterm_that_is_raised_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes: str
) -> None:
    """As of a job in the background, or under a supervisor."""
    (tmp_path / "import_ends.py").write_text("import signal\nsignal.raise_signal(signal.SIGTERM)\n")
    monkeypatch.syspath_prepend(tmp_path)

    class Fragile:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with heeded():
            if comes == "in an import":
                importlib.import_module("import_ends")
            else:
                Fragile()
            with pytest.raises(KeyboardInterrupt):
                _wait_for_a_signal()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_counts")
def test_a_module_that_runs_a_command_line_when_it_is_imported_can_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs_at_import.py").write_text(
        "from kerasbench.cli import main\ncode = main.main(['report', 'nothing'])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        _wait_for_a_signal()

    monkeypatch.setattr(main.app, "invoke", interrupted)
    assert importlib.import_module("runs_at_import").code == 130


def _wait_for_a_signal() -> None:
    for _ in range(1000):  # not in one sleep: a signal that comes just before it does not end it
        time.sleep(0.01)
