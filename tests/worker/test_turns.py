"""What a child says before it waits, what it hears, and how long that took; standard input over real processes."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.protocol.measurement import Slice, Turn, encode_turn
from kerasbench.protocol.messages import Message
from kerasbench.worker import pipe as module
from kerasbench.worker.pipe import Turns

ROOT = Path(__file__).parents[2]
LISTENS = "from kerasbench.worker.pipe import listen; lines = listen(); {}"


class Parent:
    """In place of the pipe: it lets a clock run while the child waits, and notes what it was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Turn | None) -> None:
        self.now_ns, self.cpu_ns, self.waited_ns = 1_000, 100, 0
        self.said: list[Message] = []
        self.answers = iter(answers)
        self.lines = SimpleQueue[bytes]()
        clocks = SimpleNamespace(monotonic_ns=lambda: self.now_ns, process_time_ns=lambda: self.cpu_ns)
        monkeypatch.setattr(module, "time", clocks)

    def send(self, message: Message) -> None:
        self.said.append(message)
        self.now_ns += 500  # the others' turns
        self.cpu_ns += 3
        self.lines.put(encode_turn(next(self.answers)).rstrip(b"\n"))

    def waited(self, ns: int) -> None:
        self.waited_ns += ns

    def turns(self) -> Turns:
        pipe: Any = self
        return Turns(pipe, self.lines)


def test_a_child_says_that_it_is_ready_then_each_slice_until_the_stage_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    parent, slice_ = Parent(monkeypatch, Turn(0, 2), Turn(1, 0), None), Slice(4, 8)
    turns = parent.turns()
    assert turns.next("train") == Turn(0, 2)
    assert turns.next("train", slice_) == Turn(1, 0)
    assert turns.next("train", slice_) is None
    assert parent.said == [Message(ready="train"), Message(slice=slice_), Message(slice=slice_)]


def test_waiting_counts_from_before_the_message_for_it_may_be_stopped_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = Parent(monkeypatch, Turn(0, 0), None)
    turns = parent.turns()
    turns.next("train")
    turns.next("train", Slice(1, 1))
    assert parent.waited_ns == 1_000


def heard(then: str, *said: bytes) -> tuple[Sequence[str], int]:
    """Return what a child that listens prints, and its exit status; its input comes in these pieces, and ends."""
    command = [sys.executable, "-c", LISTENS.format(then)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdin is not None and child.stdout is not None
        for piece in said:
            child.stdin.write(piece)
            child.stdin.flush()
        shown = [child.stdout.readline().decode().strip() for _ in range(then.count("print"))]
        child.stdin.close()
        return shown, child.wait(60)


def test_lines_come_one_by_one_however_they_are_cut() -> None:
    then = "print(lines.get(), flush=True); print(lines.get(), flush=True); lines.get()"
    assert heard(then, b"nu", b'll\n{"cycle"', b": 1}\n") == (["b'null'", "b'{\"cycle\": 1}'"], 1)


@pytest.mark.parametrize("upset", ["sys.stdin.close()", "sys.stdin = open('/dev/null')", "sys.stdin.read()"])
def test_what_a_scenario_does_with_its_own_input_takes_no_turn_away(upset: str) -> None:
    then = f"import sys; {upset}; print('upset', flush=True); print(lines.get(), flush=True)"
    assert heard(then, b"null\n")[0] == ["upset", "b'null'"]


def test_the_end_of_input_ends_the_process_whatever_it_does() -> None:
    assert heard("print('busy', flush=True)\nwhile True: pass") == (["busy"], 1)
