"""Which of a child's messages are believed."""

import pytest

from kerasbench import trial
from kerasbench.wire import Code, Failure, Message
from tests import made


def received(*lines: bytes) -> tuple[trial._Received, list[bool]]:
    messages = trial._Received(token=b"t0ken")
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
    assert len({trial._Received().token for _ in range(10)}) == 10
