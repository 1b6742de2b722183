"""Messages to the parent and turns from it; standard input over real processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from queue import SimpleQueue
from types import SimpleNamespace

import msgspec
import pytest

from kerasbench.protocol.measurement import Slice, Turn, encode_turn
from kerasbench.protocol.messages import EXIT_PIPE_LOST, Code, Failure, Message
from kerasbench.protocol.requests import Sizes
from kerasbench.worker import pipe as module
from kerasbench.worker.memory import PhaseMemory
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


class Card:
    def held(self) -> int:
        return 5 << 20

    def peak(self) -> int:
        return 7 << 20

    def reset(self) -> bool:
        return True


def test_a_phase_is_reported_when_it_begins_and_ends_with_peaks_of_memory(ends: tuple[int, int], pipe: Pipe) -> None:
    with pipe.phase("build"):
        assert pipe.current_phase == "build"
        assert said(ends[0]) == [Message(begun="build")]
    with pipe.phase("finish"):
        pipe.on_device = PhaseMemory(Card())
    build, _, finish = [message.phase for message in said(ends[0])]
    assert build is not None and finish is not None
    assert build.name == "build" and build.start_ns <= build.end_ns
    assert build.peak_rss_bytes and finish.peak_rss_bytes
    assert 1 << 20 < build.peak_rss_bytes <= finish.peak_rss_bytes
    assert (build.peak_device_bytes, finish.peak_device_bytes, finish.device_bytes) == (None, 7 << 20, 5 << 20)
    assert build.rss_bytes and finish.most_device_bytes is None  # the phase that takes the device began without it
    with pytest.raises(ZeroDivisionError), pipe.phase("train"):
        raise ZeroDivisionError
    assert said(ends[0]) == [Message(begun="train")]  # it has no end, and stays the current one
    assert pipe.current_phase == "train"


def test_a_message_is_whole(ends: tuple[int, int], pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not os.get_inheritable(ends[1])  # no grandchild holds the pipe open
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
            self._lines.put(encode_turn(next(self.answers)))


def test_a_child_waits_after_it_is_ready_and_after_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, slice_ = Answered(monkeypatch, Turn(0, 2), Turn(1, 0), None), Slice(4, 8)
    messages = [Message(ready="train"), Message(slice=slice_), Message(slice=slice_)]
    with pipe.phase("train"):
        assert [pipe.ask(message) for message in messages] == [Turn(0, 2), Turn(1, 0), None]
    assert pipe.said[1:-1] == messages
    with pipe.phase("finish"):
        pass
    waited_ns = [message.phase.waited_ns for message in pipe.said if message.phase]
    assert waited_ns == [1_500, 0]  # from before each message, for the child may be stopped with it
    pipe = Answered(monkeypatch, Turn(1, 0), made.SIZES)  # of the pilot too
    assert [pipe.ask(Message(slice=Slice(1, ns))) for ns in (8, 9)] == [Turn(1, 0), made.SIZES]


LISTENS = """
import sys
from kerasbench.worker.pipe import listen
lines = listen()
sys.stdin.read()
sys.stdin.close()
sys.stdin = open("/dev/null")
print(lines.get().strip(), lines.get().strip(), flush=True)
while True: pass
"""


@pytest.mark.processes
def test_lines_come_whole_whatever_a_scenario_does_with_its_input_and_their_end_ends_the_process() -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        for piece in (b"nu", b'll\n{"cycle"', b": 1}\n"):  # however they are cut
            child.stdin.write(piece)
            child.stdin.flush()
        assert child.stdout.readline() == b"b'null' b'{\"cycle\": 1}'\n"
        child.stdin.close()
        assert child.wait(60) == 1
