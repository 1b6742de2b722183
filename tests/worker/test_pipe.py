"""Messages to the parent and turns from it; standard input over real processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import msgspec
import pytest

from kerasbench.protocol.measurement import Slice, Turn, encode_turn
from kerasbench.protocol.messages import EXIT_PIPE_LOST, Code, Failure, Message
from kerasbench.protocol.requests import Sizes
from kerasbench.worker import pipe as module
from kerasbench.worker.pipe import Pipe
from tests import made

TOKEN = b"t0ken"


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    yield read_end, write_end
    for descriptor in (read_end, write_end):
        with suppress(OSError):  # closed by the test
            os.close(descriptor)


@pytest.fixture
def pipe(ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> Pipe:
    monkeypatch.setattr(os, "_exit", sys.exit)  # which tests can catch
    return Pipe(ends[1], TOKEN, SimpleQueue())


def said(read_end: int) -> list[Message]:
    lines = os.read(read_end, 1 << 16).splitlines()
    assert all(line.startswith(TOKEN + b" ") for line in lines)
    return [msgspec.json.decode(line.removeprefix(TOKEN), type=Message) for line in lines]


def test_a_phase_is_reported_when_it_begins_and_ends_with_peaks_of_memory(ends: tuple[int, int], pipe: Pipe) -> None:
    with pipe.phase("build"):
        assert pipe.current_phase == "build"
        assert said(ends[0]) == [Message(begun="build")]
    with pipe.phase("finish"):
        pipe.peak_device_bytes = lambda: 7 << 20
    build, _, finish = [message.phase for message in said(ends[0])]
    assert build is not None and finish is not None
    assert build.name == "build" and build.start_ns <= build.end_ns
    assert build.peak_rss_bytes and finish.peak_rss_bytes
    assert 1 << 20 < build.peak_rss_bytes <= finish.peak_rss_bytes
    assert (build.peak_device_bytes, finish.peak_device_bytes) == (None, 7 << 20)


def test_a_phase_that_fails_has_no_end_and_stays_the_current_one(ends: tuple[int, int], pipe: Pipe) -> None:
    with pytest.raises(ZeroDivisionError), pipe.phase("train"):
        raise ZeroDivisionError
    assert said(ends[0]) == [Message(begun="train")]
    assert pipe.current_phase == "train"


def test_no_grandchild_holds_it_open(ends: tuple[int, int]) -> None:
    assert os.get_inheritable(ends[1])
    Pipe(ends[1], TOKEN, SimpleQueue())
    assert not os.get_inheritable(ends[1])


def test_a_message_is_whole(ends: tuple[int, int], pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, bytes(content)[:7]))
    message = Message(failure=Failure(Code.ERROR, "a cause that is longer than seven bytes", "±"))
    pipe.send(message)
    assert said(ends[0]) == [message]


@pytest.mark.parametrize("closed", [0, 1])  # Python ignores SIGPIPE
def test_a_pipe_that_is_closed_ends_the_process(ends: tuple[int, int], pipe: Pipe, closed: int) -> None:
    os.close(ends[closed])
    with pytest.raises(SystemExit) as left:
        pipe.send(Message(begun="train"))
    assert left.value.code == EXIT_PIPE_LOST


def test_nothing_is_written_to_what_has_taken_its_place(ends: tuple[int, int], pipe: Pipe) -> None:
    other_read, other_write = os.pipe()
    os.dup2(other_write, ends[1])
    with pytest.raises(SystemExit):
        pipe.send(Message(begun="train"))
    os.close(other_write)
    os.close(ends[1])
    assert os.read(other_read, 1) == b""
    os.close(other_read)


ROOT = Path(__file__).parents[2]


class Answered(Pipe):
    """A pipe whose parent answers: it lets a clock run while the child waits, and notes what it was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Turn | Sizes | None) -> None:
        super().__init__(os.open(os.devnull, os.O_WRONLY), TOKEN, SimpleQueue())
        self.now_ns = 1_000
        self.said: list[Message] = []
        self.answers = iter(answers)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: self.now_ns))

    def send(self, message: Message) -> None:
        self.said.append(message)
        if message.ready or message.slice:
            self.now_ns += 500  # the others' turns
            self._lines.put(encode_turn(next(self.answers)).rstrip(b"\n"))


def test_a_child_waits_after_it_is_ready_and_after_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, slice_ = Answered(monkeypatch, Turn(0, 2), Turn(1, 0), None), Slice(4, 8)
    messages = [Message(ready="train"), Message(slice=slice_), Message(slice=slice_)]
    assert [pipe.ask(message) for message in messages] == [Turn(0, 2), Turn(1, 0), None]
    assert pipe.said == messages
    pipe = Answered(monkeypatch, Turn(1, 0), made.SIZES)  # of the pilot too
    assert [pipe.ask(Message(slice=Slice(1, ns))) for ns in (8, 9)] == [Turn(1, 0), made.SIZES]


def test_a_phase_tells_how_long_it_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Answered(monkeypatch, Turn(0, 2), None)
    with pipe.phase("train"):
        pipe.ask(Message(ready="train"))
        pipe.ask(Message(slice=Slice(4, 8)))
    with pipe.phase("finish"):
        pass
    waited_ns = [message.phase.waited_ns for message in pipe.said if message.phase]
    assert waited_ns == [1_000, 0]  # from before each message, for the child may be stopped with it


def heard(then: str, *said: bytes) -> tuple[list[str], int]:
    """Return what a child that listens prints, and its exit status; its input comes in these pieces, and ends."""
    command = [sys.executable, "-c", f"from kerasbench.worker.pipe import listen; lines = listen(); {then}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdin is not None and child.stdout is not None
        for piece in said:
            child.stdin.write(piece)
            child.stdin.flush()
        shown = [child.stdout.readline().decode().strip() for _ in range(then.count("print"))]
        child.stdin.close()
        return shown, child.wait(60)


@pytest.mark.processes
def test_lines_come_one_by_one_however_they_are_cut_and_their_end_ends_the_process() -> None:
    then = "print(lines.get(), flush=True); print(lines.get(), flush=True)\nwhile True: pass"
    assert heard(then, b"nu", b'll\n{"cycle"', b": 1}\n") == (["b'null'", "b'{\"cycle\": 1}'"], 1)


def test_what_a_scenario_does_with_its_own_input_takes_no_turn_away() -> None:
    upset = "import sys; sys.stdin.read(); sys.stdin.close(); sys.stdin = open('/dev/null'); print('', flush=True)"
    assert heard(f"{upset}; print(lines.get(), flush=True)", b"null\n")[0] == ["", "b'null'"]
