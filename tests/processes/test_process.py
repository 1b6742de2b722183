"""Children that are small scripts: they answer, die, hang, shout and leave others behind; and what memory they hold."""

import os
import selectors
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import ANY, patch

import psutil
import pytest

from kerasbench.processes import process
from kerasbench.protocol.messages import STOPPED
from tests import stand_in
from tests.processes.columns import Clock

pytestmark = pytest.mark.processes

HANG = "\nwhile True: time.sleep(1)"
CLOSE = "for d in (fd, 1, 2): os.close(d)\n"
HEAD = "import os, sys, time\nfd = int(sys.argv[1])\nrequest = sys.stdin.readline()\n"


class Run:
    """One child that runs a script, and the lines it sent."""

    def __init__(self, folder: Path) -> None:
        self._script = folder / "worker.py"
        self.lines: list[bytes] = []

    def __call__(self, body: str, timeout_s: float = 300, poll_s: float = process.POLL_S) -> process.Exit:
        return process.run(self._task(body, timeout_s), self._take, poll_s=poll_s)

    @contextmanager
    def child(
        self, body: str, memory_bytes: int | None = None, guard: Callable[[str], None] = lambda said: None
    ) -> Iterator[process.Child]:
        """Start a child that nobody listens to yet."""
        with process.Child(self._task(body, 900, memory_bytes), self._take, guard) as child:
            child.begin()
            yield child

    def _task(self, body: str, timeout_s: float, memory_bytes: int | None = None) -> process.Task:
        self._script.write_text(HEAD + body)
        limits = process.Limits(timeout_s, "its limit", memory_bytes)
        return process.Task(sys.executable, os.environ, b"hi\n", limits, self._script)

    def _take(self, line: bytes) -> bool:
        self.lines.append(line)
        return True


Kills = tuple[int | None, int | None]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_lines_come_one_by_one_and_the_request_arrives(run: Run) -> None:
    ended = run("os.write(fd, b'one\\ntw'); time.sleep(0.1); os.write(fd, b'o\\n' + request.encode())")
    assert run.lines == [b"one", b"two", b"hi"]
    assert (ended.status, ended.timed_out, ended.broke_protocol) == (0, False, False)


def ended(child: process.Child, on_tick: Callable[[], None] = lambda: None) -> process.Exit:
    with process.Listener(on_tick, poll_s=0.02) as listener:
        listener.add(child)
        listener.listen()
    assert child.exit is not None
    return child.exit


def test_a_child_that_closes_all_its_pipes_and_hangs_is_stopped(run: Run, clock: Clock) -> None:
    with run.child(CLOSE + HANG) as child:
        exit_ = ended(child, on_tick=lambda: None if child.open else clock.leap())
    assert exit_.timed_out and exit_.status < 0


def test_a_child_that_hangs_says_where_before_it_is_stopped(run: Run, clock: Clock) -> None:
    registers = "import faulthandler, signal\nfaulthandler.register(signal.SIGUSR2)\n"
    with run.child(f"{registers}os.write(fd, b'ready\\n'){HANG}") as child:
        exit_ = ended(child, on_tick=lambda: clock.leap() if run.lines else None)
    _, _, stacks = exit_.stderr.partition(STOPPED)
    assert (exit_.timed_out, exit_.status) == (True, -9)
    assert "most recent call first" in stacks and "worker.py" in stacks


@pytest.mark.parametrize("own_session", [False, True])
def test_a_grandchild_does_not_outlive_its_trial(run: Run, monkeypatch: pytest.MonkeyPatch, own_session: bool) -> None:
    monkeypatch.setattr(process, "DRAIN_S", 0.05)
    fork = f"said, saying = os.pipe()\nif os.fork() == 0:\n    if {own_session}: os.setsid()\n"
    hang = "    os.write(saying, f'{os.getpid()}\\n'.encode())\n    while True: time.sleep(60)\n"
    assert not run(f"{fork}{hang}os.write(fd, os.read(said, 100)); os._exit(0)", poll_s=0.02).timed_out
    stand_in.wait_for(lambda: all(map(stand_in.is_gone, stand_in.existing([int(run.lines[0])]))))


def test_a_group_is_killed_and_the_guard_told_before_a_child_is_reaped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill, heard = os.killpg, list[object]()

    def note(group: int, number: int) -> None:
        heard.append((psutil.Process(group).status(), psutil.Process(group).ppid()))
        kill(group, number)

    monkeypatch.setattr(os, "killpg", note)
    with run.child(f"{CLOSE}time.sleep(0.1); os._exit(3)", guard=heard.append) as child:
        assert ended(child).status == 3  # its end is waited for, without pipes
    number, mark = child.number, str(heard[0])[1:]
    assert heard == [f"+{mark}", f"+{number}", (psutil.STATUS_ZOMBIE, os.getpid()), f"-{number}", f"-{mark}"]


def test_no_group_is_killed_where_the_kernel_has_reaped_the_child(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "killpg", None)
    with stand_in.handling(signal.SIGCHLD, signal.SIG_IGN):  # the number may be anybody's by then
        run("pass")


def test_a_child_without_pipes_that_holds_too_much_is_stopped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LOOK_S", 0.0)
    limit_bytes = 100 << 20
    with run.child(f"held = b'x' * {2 * limit_bytes}\n{CLOSE}{HANG}", memory_bytes=limit_bytes) as child:
        exit_ = ended(child)
    assert (exit_.exceeded_bytes or 0) > limit_bytes
    assert process.group_bytes(child.number) == 0  # now that there is none
    assert (exit_.timed_out, exit_.status) == (False, -9)


def test_floods_leave_the_parent_s_memory_flat(run: Run) -> None:
    flood = "for _ in range(100):\n    for pipe in (1, 2): os.write(pipe, b'a line\\n' * 10_000)\n"
    tracemalloc.start()
    ended = run(flood + "os.write(2, b'\\xff no newline \\x1b[31m' * 100_000)")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ended.status == 0
    assert ended.stdout.endswith("a line\n") and ended.stderr.endswith("\ufffd no newline \x1b[31m")
    assert len(ended.stdout) <= process.KEEP_BYTES
    assert peak_bytes < 4 << 20  # what is read at once, and what is kept


def test_a_message_without_an_end_ends_the_child(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_LINE_BYTES", 1 << 20)
    assert run("while True: os.write(fd, b'x' * 60_000)").broke_protocol
    assert run.lines == []


def test_an_interpreter_that_is_not_there_is_an_error_that_leaks_nothing() -> None:
    before = psutil.Process().num_fds()
    with pytest.raises(FileNotFoundError):
        process.run(process.Task("/no/such/python", os.environ, b"", process.Limits(1, "1 s")), lambda line: True)
    assert psutil.Process().num_fds() == before


def test_a_child_that_reads_none_of_its_lines_breaks_the_protocol_and_slices_nobody(run: Run) -> None:
    with run.child(HANG) as child:
        for _ in range(100):
            child.say(b"x" * 4095 + b"\n")
        assert ended(child).broke_protocol


def test_what_is_said_to_a_child_that_has_gone_is_lost(run: Run) -> None:
    with run.child("os.close(0)") as child:
        stand_in.wait_for(lambda: psutil.Process(child.number).status() == psutil.STATUS_ZOMBIE)
        child.say(b"hello\n")
        assert not ended(child).broke_protocol


def test_a_parent_that_was_stopped_ends_no_child(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by Ctrl-Z and, later, fg: the child answers meanwhile, and nobody can hear it."""
    select = selectors.DefaultSelector.select

    def late(selector: selectors.DefaultSelector, timeout_s: float) -> object:
        clock.leap()
        return select(selector, timeout_s)

    monkeypatch.setattr(selectors.DefaultSelector, "select", late)
    ended = run("os.write(fd, b'done\\n')", timeout_s=900)
    assert (run.lines, ended.timed_out, ended.status) == ([b"done"], False, 0)


def test_a_child_that_nobody_can_kill_is_left_behind(run: Run) -> None:
    with patch.object(subprocess.Popen, "wait", autospec=True) as wait:
        wait.side_effect = subprocess.TimeoutExpired("worker", process.LEAVE_S)
        ended = run("time.sleep(60)", timeout_s=0.1)
    assert wait.call_args.args[0].wait(60) < 0  # here it is gone
    assert (ended.status, ended.timed_out) == (process.KILLED, True)
    wait.assert_called_once_with(ANY, process.LEAVE_S)


@pytest.mark.parametrize(
    ("before", "after", "left_share", "word"),
    [
        ((0, 0), (1, 1), 0.5, "control group"),
        ((None, 3), (None, 4), 0.5, "machine, whose"),
        ((2, 3), (2, 4), 0.5, "machine, whose"),
        ((2, 3), (2, 3), 0.5, ""),
        ((None, None), (1, 1), 0.5, ""),  # it was not counted before
        ((0, 0), (0, 0), 0.012, "1.2 % of the machine's memory was left just before"),
        ((None, None), (None, None), 0.05, ""),
    ],
)
def test_what_speaks_for_a_shortage_of_memory(before: Kills, after: Kills, left_share: float, word: str) -> None:
    places = ("its control group", "this machine")
    earlier, later = (dict(zip(places, kills, strict=True)) for kills in (before, after))
    shortage = process.shortage(earlier, later, left_share)
    assert word in shortage and bool(shortage) is bool(word)
