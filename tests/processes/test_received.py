"""Which of a child's messages the parent believes."""

import pytest

from kerasbench.processes.outcome import Received
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Code, Failure, Message, Phase
from tests import made


def received(*lines: bytes) -> tuple[Received, list[bool]]:
    messages = Received(token=b"t0ken")
    return messages, [messages.take(line) for line in lines]


ANSWER = Message(measurement=made.measurement()).encode().strip()


def test_an_answer_counts_with_the_token_and_once() -> None:
    messages, accepted = received(b"t0ken " + ANSWER, b"t0ken " + ANSWER)
    assert accepted == [True, False]
    assert messages.answer is not None and messages.answer.measurement == made.measurement()


@pytest.mark.parametrize("line", [ANSWER, b"other " + ANSWER, b" " + ANSWER, b"t0ken", b"t0ken {", b"t0ken \xff", b""])
def test_a_line_that_is_no_message_of_the_worker_is_refused(line: bytes) -> None:
    messages, accepted = received(line)
    assert accepted == [False]
    assert messages.answer is None


def test_a_failure_s_texts_are_fit_for_a_terminal() -> None:
    said = Message(failure=Failure(Code.ERROR, "\x1b[2Jgone", "\x07ring", "build", "a\nb\x1b[0m")).encode()
    messages, _ = received(b"t0ken " + said.strip())
    assert messages.answer is not None
    assert messages.answer.failure == Failure(Code.ERROR, "gone", " ring", "build", "a\nb")


def test_every_child_has_a_token_of_its_own() -> None:
    assert len({Received().token for _ in range(10)}) == 10


def line(message: Message) -> bytes:
    return b"t0ken " + message.encode().strip()


def test_phases_are_kept_and_the_one_that_has_begun_is_told() -> None:
    told: list[str] = []
    messages = Received(told.append, token=b"t0ken")
    assert messages.begun == "spawn"
    assert messages.take(line(Message(begun="train"))) and messages.take(line(Message(phase=Phase("train", 1, 9, 3))))
    assert (told, messages.begun, messages.phases) == (["train"], "train", [Phase("train", 1, 9, 3)])


READY, SLICE = Message(ready="train"), Message(slice=Slice(50, 10**8, 3, 1, 10**8))


@pytest.mark.parametrize("message", [READY, SLICE])
def test_what_is_said_of_turns_is_passed_on_and_may_be_out_of_turn(message: Message) -> None:
    passed: list[Message] = []
    messages = Received(on_turn=lambda said: passed.append(said) or True, token=b"t0ken")  # type: ignore[func-returns-value]
    assert messages.take(line(message))
    messages.on_turn = lambda said: False
    assert not messages.take(line(message))
    assert (passed, messages.answer) == ([message], None)


@pytest.mark.parametrize("message", [READY, SLICE])
def test_there_are_no_turns_in_a_question_nor_after_an_answer(message: Message) -> None:
    assert not Received(token=b"t0ken").take(line(message))
    messages = Received(on_turn=lambda said: True, token=b"t0ken")
    assert messages.take(b"t0ken " + ANSWER)
    assert not messages.take(line(message))
