"""The child's end of the pipe, over a real one; the parent's end is the test's."""

import os
from collections.abc import Iterator

import msgspec
import pytest

from kerasbench.protocol.messages import EXIT_PIPE_LOST, Code, Failure, Message
from kerasbench.worker.pipe import Pipe

TOKEN = b"t0ken"


class Left(BaseException):
    """In place of the process' end."""


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    yield read_end, write_end
    for descriptor in (read_end, write_end):
        try:
            os.close(descriptor)
        except OSError:
            continue  # closed by the test


@pytest.fixture(autouse=True)
def _no_end_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(status: int) -> None:
        raise Left(status)

    monkeypatch.setattr(os, "_exit", leave)


def said(read_end: int) -> list[Message]:
    lines = os.read(read_end, 1 << 16).splitlines()
    assert all(line.startswith(TOKEN + b" ") for line in lines)
    return [msgspec.json.decode(line.removeprefix(TOKEN), type=Message) for line in lines]


def test_a_phase_is_said_when_it_begins_and_when_it_has_ended(ends: tuple[int, int]) -> None:
    pipe = Pipe(ends[1], TOKEN)
    with pipe.phase("build"):
        assert pipe.current_phase == "build"
        assert said(ends[0]) == [Message(begun="build")]
    (ended,) = said(ends[0])
    assert ended.phase is not None
    assert ended.phase.name == "build" and ended.phase.start_ns <= ended.phase.end_ns


def test_what_it_waited_for_others_is_said_of_each_phase_by_itself(ends: tuple[int, int]) -> None:
    pipe = Pipe(ends[1], TOKEN)
    with pipe.phase("train"):
        pipe.waited(20)
        pipe.waited(3)
    with pipe.phase("finish"):
        pass
    waited = [message.phase.waited_ns for message in said(ends[0]) if message.phase is not None]
    assert waited == [23, 0]


def test_a_phase_that_fails_has_no_end_and_stays_the_current_one(ends: tuple[int, int]) -> None:
    pipe = Pipe(ends[1], TOKEN)
    with pytest.raises(ZeroDivisionError), pipe.phase("train"):
        raise ZeroDivisionError
    assert said(ends[0]) == [Message(begun="train")]
    assert pipe.current_phase == "train"


def test_no_grandchild_holds_it_open(ends: tuple[int, int]) -> None:
    assert os.get_inheritable(ends[1])
    Pipe(ends[1], TOKEN)
    assert not os.get_inheritable(ends[1])


def test_a_message_is_whole_however_many_writes_it_takes(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, bytes(content)[:7]))
    message = Message(failure=Failure(Code.ERROR, "a cause that is longer than seven bytes", "±"))
    Pipe(ends[1], TOKEN).send(message)
    assert said(ends[0]) == [message]


def test_a_closed_pipe_ends_the_process_with_a_status_of_its_own(ends: tuple[int, int]) -> None:
    pipe = Pipe(ends[1], TOKEN)
    os.close(ends[1])
    with pytest.raises(Left) as left:
        pipe.send(Message(begun="train"))
    assert left.value.args == (EXIT_PIPE_LOST,)


def test_nothing_is_written_to_what_has_taken_its_place(ends: tuple[int, int]) -> None:
    pipe = Pipe(ends[1], TOKEN)
    other_read, other_write = os.pipe()
    try:
        os.dup2(other_write, ends[1])
        with pytest.raises(Left):
            pipe.send(Message(begun="train"))
        os.set_blocking(other_read, False)
        with pytest.raises(BlockingIOError):
            os.read(other_read, 1)
    finally:
        os.close(other_read)
        os.close(other_write)


def test_a_parent_that_has_gone_ends_the_process_too(ends: tuple[int, int]) -> None:
    pipe = Pipe(ends[1], TOKEN)
    os.close(ends[0])  # Python ignores SIGPIPE
    with pytest.raises(Left):
        pipe.send(Message(begun="train"))
