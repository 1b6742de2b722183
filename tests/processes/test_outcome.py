"""What a trial may take, which of its child's messages are believed, and what becomes of them."""

import dataclasses
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

from kerasbench.processes import outcome
from kerasbench.processes.outcome import Outcome, Received
from kerasbench.processes.process import Exit, Limits
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import EXIT_PIPE_LOST, Code, Failure, Message, Phase
from kerasbench.protocol.requests import ProtocolKind
from tests import made

FINE = Exit(0, False, False, None, "", 100, 50, "", "")
LIMITS = Limits(300.0, "--timeout 300 s, the default", 4 << 30, compile_s=240.0)


@pytest.mark.parametrize(
    ("asked_s", "kind", "first_trial_s", "timeout_s"),
    [
        (None, "steady", None, 300),
        (None, "published", None, 7200),
        (None, "steady", 6.0, 60),
        (None, "steady", 9.0, 90),
        (None, "steady", 30.0, 300),
        (None, "published", 7000.0, 7200),
        (8.0, "steady", 100.0, 8),
        (9000.0, "published", 1.0, 9000),
    ],
)
def test_a_limit_follows_the_first_trial_unless_one_was_asked_for(
    asked_s: float | None, kind: ProtocolKind, first_trial_s: float | None, timeout_s: float
) -> None:
    limits = outcome.trial_limits(asked_s, None, kind, first_trial_s)
    assert limits.timeout_s == timeout_s
    assert limits.timeout.startswith(f"--timeout {timeout_s:g} s")
    assert ("the default" in limits.timeout) is (asked_s is None)
    assert ("first trial" in limits.timeout) is (asked_s is None and timeout_s not in (300, 7200))
    assert limits.compile_s == (outcome.COMPILE_S if asked_s is None else None)


def test_a_soak_has_the_time_that_it_takes_besides() -> None:
    limits = outcome.trial_limits(None, None, "steady", None, minutes=10)
    assert limits.timeout_s == 300 + 10 * 600  # short epochs leave most of their time out of slices


def line(message: Message) -> bytes:
    return b"t0ken " + message.encode().strip()


MEASURED = Message(measurement=made.measurement())
ANSWER = MEASURED.encode().strip()


@pytest.mark.parametrize("said", [ANSWER, b"other " + ANSWER, b" " + ANSWER, b"t0ken", b"t0ken {", b"t0ken \xff", b""])
def test_a_line_that_is_no_message_of_the_worker_is_refused(said: bytes) -> None:
    received = Received(token=b"t0ken")
    assert not received.take(said)
    assert received.answer is None


def test_a_failure_s_texts_are_fit_for_a_terminal() -> None:
    received = Received(token=b"t0ken")
    received.take(line(Message(failure=Failure(Code.ERROR, "\x1b[2Jgone", "\x07ring", "build", "a\nb\x1b[0m"))))
    assert received.answer is not None
    assert received.answer.failure == Failure(Code.ERROR, "gone", " ring", "build", "a\nb")


def test_phases_are_kept_and_told_when_they_begin_and_end() -> None:
    told: list[str | Phase] = []
    messages = Received(told.append, token=b"t0ken")
    assert messages.begun == "spawn"
    over = Phase("train", 1, 9, 3)
    assert messages.take(line(Message(begun="train"))) and messages.take(line(Message(phase=over)))
    assert (told, messages.begun, messages.phases) == (["train", over], "train", [over])


READY, SLICE = Message(ready="train"), Message(slice=Slice(50, 10**8, 3, 1, 10**8))


@pytest.mark.parametrize("message", [READY, SLICE])
def test_what_is_said_of_turns_is_passed_on_and_may_be_out_of_turn(message: Message) -> None:
    passed: list[Message] = []
    messages = Received(on_turn=lambda said: passed.append(said) or True, token=b"t0ken")  # type: ignore[func-returns-value]
    assert messages.take(line(message))
    messages.on_turn = lambda said: False
    assert not messages.take(line(message))
    assert (passed, messages.answer) == ([message], None)


@pytest.mark.parametrize("message", [READY, SLICE, MEASURED])
def test_there_are_no_turns_in_a_question_and_nothing_comes_after_an_answer(message: Message) -> None:
    assert Received(token=b"t0ken").take(line(message)) is (message is MEASURED)
    received = Received(on_turn=lambda said: True, token=b"t0ken")
    assert received.take(line(MEASURED))
    assert not received.take(line(message))
    assert received.answer == MEASURED


def judged(ended: Exit, answer: Message | None, phases: Sequence[Phase] = ()) -> Outcome:
    return outcome.outcome_of(ended, Received(phases=list(phases), answer=answer), LIMITS, started_alone=False)


def test_a_measurement_is_believed_with_what_only_the_parent_sees() -> None:
    assert judged(FINE, MEASURED, [Phase("worker", 110, 120), Phase("train", 120, 145, 5)]) == Outcome(
        [Phase("spawn", 100, 110), Phase("worker", 110, 120), Phase("train", 120, 145, 5), Phase("exit", 145, 150)],
        50,
        measurement=MEASURED.measurement,
        started_alone=False,
    )


@pytest.mark.parametrize(
    ("ended", "answer", "code"),
    [
        (FINE, Message(failure=made.FAILURE), made.FAILURE.code),
        (dataclasses.replace(FINE, broke_protocol=True), MEASURED, Code.INVALID),
        (dataclasses.replace(FINE, broke_protocol=True), Message(failure=made.FAILURE), Code.INVALID),
        (dataclasses.replace(FINE, exceeded_bytes=5 << 30), MEASURED, Code.OOM),
    ],
)
def test_what_else_comes_is_a_failure(ended: Exit, answer: Message | None, code: Code) -> None:
    failed = judged(ended, answer)
    assert failed.failure is not None and failed.failure.code is code
    assert (failed.measurement, failed.phases, failed.wall_ns) == (None, [], 50)


def of(**different: object) -> Failure:
    return outcome.failure_of(dataclasses.replace(FINE, **different), "train", LIMITS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("different", "code", "cause"),
    [
        ({"status": 3}, Code.CRASH, "left with exit status 3 in phase 'train' without a result"),
        ({"status": -signal.SIGSEGV}, Code.CRASH, "died from SIGSEGV in phase 'train'"),
        ({"status": -40}, Code.CRASH, "died from signal 40 in phase 'train'"),
        ({"status": -signal.SIGKILL}, Code.CRASH, "killed by SIGKILL from outside in phase 'train'"),
        ({"status": -9, "shortage": "0 B left"}, Code.OOM, "killed because memory ran out in phase 'train': 0 B left"),
        ({"status": -11, "shortage": "it ran out"}, Code.CRASH, "died from SIGSEGV in phase 'train'"),
        ({"timed_out": True, "compiled_long": True}, Code.TIMEOUT, ": compiling took more than 240 s"),
        ({"timed_out": True}, Code.TIMEOUT, "stopped in phase 'train' by --timeout 300 s, the default"),
        (
            {"exceeded_bytes": 4617089843, "shortage": "it ran out"},
            Code.OOM,
            "used 4.3 GiB in phase 'train', the limit",
        ),
        ({"broke_protocol": True}, Code.INVALID, "something other than kerasbench wrote to the result pipe in phase"),
        ({"status": EXIT_PIPE_LOST}, Code.INVALID, "the result pipe was taken from kerasbench in phase 'train'"),
    ],
)
def test_a_child_that_gave_no_answer(different: dict[str, object], code: Code, cause: str) -> None:
    failure = of(**different)
    assert (failure.code, failure.phase) == (code, "train")
    assert cause in failure.cause and failure.remedy


def test_a_failure_carries_the_last_lines_without_escape_sequences() -> None:
    assert of(status=3, stderr="one\n\x1b[31mtwo\x1b[0m\x07\n").detail == "one\ntwo "
    assert of(status=3, stdout="only this\n").detail == "only this"


def test_the_home_folder_is_named_by_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    said = 'File "/home/ada/keras/mine.py", line 3\n/mnt/home/ada/x /home/adams/y /home/ada/z'
    assert of(status=3, stderr=said).detail == 'File "~/keras/mine.py", line 3\n/mnt/home/ada/x /home/adams/y ~/z'
    monkeypatch.setenv("HOME", "/")
    assert of(status=3, stderr=said).detail == said


FIRST_AT_ONCE = """
import sys
import threading
from kerasbench.processes.outcome import Received

sys.setswitchinterval(1e-6)
ready = threading.Barrier(8)


def take():
    received = Received()
    ready.wait()
    received.take(received.token + b' {"begun": "import"}')


threads = [threading.Thread(target=take) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.processes
def test_the_first_messages_of_several_children_may_come_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
