import dataclasses
import signal
import subprocess
import sys
from unittest.mock import Mock, call

import pytest

from kerasbench.processes import outcome
from kerasbench.processes.outcome import Outcome, ReceivedMessages, trial_limits
from kerasbench.processes.process import Exit, Limits
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import EXIT_PIPE_LOST, STOPPED, Code, Failure, Message, Phase
from tests import made

FINE = Exit(0, False, False, None, "", 100, 50, "", "")
MEASURED, FAILED = Message(measurement=made.measurement()), Message(failure=made.FAILURE)
READY, SLICE = Message(ready="train"), Message(slice=Slice(50, 10**8, 3, 1, 10**8))
ANSWER = MEASURED.encode().strip()
LIMITS = Limits(300.0, "--timeout 300 s, the default", 4 << 30, compile_s=240.0)


@pytest.mark.parametrize(
    ("limits", "timeout_s", "why"),
    [
        (trial_limits(None, None, "steady", None), 300, "the default"),
        (trial_limits(None, None, "published", None), 7200, "the default"),
        (trial_limits(None, None, "steady", 6.0), 60, "first trial"),
        (trial_limits(None, None, "steady", 9.0), 90, "first trial"),
        (trial_limits(None, None, "steady", 30.0), 300, "the default"),
        (trial_limits(None, None, "published", 7000.0), 7200, "the default"),
        (trial_limits(8.0, None, "steady", 100.0), 8, ""),
        (trial_limits(9000.0, None, "published", 1.0), 9000, ""),
        # Short epochs of a soak leave most of their time out of slices.
        (trial_limits(None, None, "steady", None, long_s=600), 300 + 10 * 600, "the default"),
    ],
)
def test_a_limit_follows_the_first_trial_unless_one_was_asked_for(limits: Limits, timeout_s: int, why: str) -> None:
    assert limits.timeout_s == timeout_s
    assert limits.timeout.startswith(f"--timeout {timeout_s:g} s") and why in limits.timeout
    assert limits.compile_s == (outcome.COMPILE_S if why else None)


def line(message: Message) -> bytes:
    return b"t0ken " + message.encode().strip()


@pytest.mark.parametrize("said", [ANSWER, b"other " + ANSWER, b" " + ANSWER, b"t0ken", b"t0ken {", b"t0ken \xff", b""])
def test_a_line_that_is_no_message_of_the_worker_is_refused(said: bytes) -> None:
    received = ReceivedMessages(token=b"t0ken")
    assert not received.take(said)
    assert received.answer is None


def test_a_failure_s_texts_are_fit_for_a_terminal() -> None:
    received = ReceivedMessages(token=b"t0ken")
    received.take(line(Message(failure=Failure(Code.ERROR, "\x1b[2Jgone", "\x07ring", "build", "a\nb\x1b[0m"))))
    assert received.answer is not None
    assert received.answer.failure == Failure(Code.ERROR, "gone", " ring", "build", "a\nb")


def test_phases_are_kept_and_told_when_they_begin_and_end() -> None:
    told: list[str | Phase] = []
    messages = ReceivedMessages(told.append, token=b"t0ken")
    assert messages.begun == "spawn"
    over = Phase("train", 1, 9, 3)
    assert messages.take(line(Message(begun="train"))) and messages.take(line(Message(phase=over)))
    assert (told, messages.begun, messages.phases) == (["train", over], "train", [over])


@pytest.mark.parametrize("message", [READY, SLICE])
def test_what_is_said_of_turns_is_passed_on_and_may_be_out_of_turn(message: Message) -> None:
    on_turn = Mock(side_effect=[True, False])
    received = ReceivedMessages(on_turn=on_turn, token=b"t0ken")
    assert [received.take(line(message)) for _ in range(2)] == [True, False]
    assert on_turn.call_args_list == [call(message)] * 2 and received.answer is None
    assert not ReceivedMessages(token=b"t0ken").take(line(message))  # there are no turns in a question


def test_nothing_comes_after_an_answer() -> None:
    received = ReceivedMessages(on_turn=lambda said: True, token=b"t0ken")
    assert received.take(line(MEASURED))
    assert not any(received.take(line(message)) for message in (READY, SLICE, MEASURED, FAILED))
    assert received.answer == MEASURED


def test_a_measurement_is_believed_with_what_only_the_parent_sees() -> None:
    told = [Phase("worker", 110, 120), Phase("train", 120, 145, 5)]
    phases = [Phase("spawn", 100, 110), *told, Phase("exit", 145, 150)]
    judged = outcome.outcome_of(FINE, ReceivedMessages(phases=told, answer=MEASURED), LIMITS, False, True)
    assert judged == Outcome(phases, 50, measurement=MEASURED.measurement, started_alone=False, had_turn=True)


@pytest.mark.parametrize(
    ("ended", "answer", "code"),
    [
        (FINE, FAILED, made.FAILURE.code),
        *((dataclasses.replace(FINE, broke_protocol=True), answer, Code.INVALID) for answer in (MEASURED, FAILED)),
        (dataclasses.replace(FINE, exceeded_bytes=5 << 30), MEASURED, Code.OOM),
    ],
)
def test_what_else_comes_is_a_failure(ended: Exit, answer: Message, code: Code) -> None:
    failed = outcome.outcome_of(ended, ReceivedMessages(answer=answer), LIMITS, False, True)
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
        ({"exceeded_bytes": 4617089843, "shortage": "out"}, Code.OOM, "used 4.3 GiB in phase 'train', the limit"),
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
    stacks = "\n".join([STOPPED, *["  File"] * 60])
    assert of(timed_out=True, stderr=f"before\n{stacks}\n").detail == stacks  # however many threads there are


def test_the_home_folder_is_named_by_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    said = 'File "/home/ada/keras/mine.py", line 3\n/mnt/home/ada/x /home/adams/y /home/ada/z'
    assert of(status=3, stderr=said).detail == 'File "~/keras/mine.py", line 3\n/mnt/home/ada/x /home/adams/y ~/z'
    monkeypatch.setenv("HOME", "/")
    assert of(status=3, stderr=said).detail == said


FIRST_AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from kerasbench.processes.outcome import ReceivedMessages
sys.setswitchinterval(1e-6)
ready = Barrier(8)
take = lambda received: (ready.wait(), received.take(received.token + b' {"begun": "import"}'))
list(ThreadPoolExecutor(8).map(take, [ReceivedMessages() for _ in range(8)]))
"""


@pytest.mark.processes
def test_the_first_messages_of_several_children_may_come_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
