"""What the end of a child that gave no answer means."""

import dataclasses
import signal

import pytest

from kerasbench.processes import outcome
from kerasbench.processes.outcome import Limits
from kerasbench.processes.process import Exit
from kerasbench.protocol.messages import EXIT_PIPE_LOST, Code, Failure

LIMITS = Limits(300.0, "--timeout 300 s, the default", 4 << 30)
FINE = Exit(0, False, False, None, "", 0.0, 0, 1, "", "")


def of(**different: object) -> Failure:
    return outcome.failure_of(dataclasses.replace(FINE, **different), "train", LIMITS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("different", "code", "cause"),
    [
        ({"status": 3}, Code.CRASH, "left with exit status 3 in phase 'train' without a result"),
        ({"status": -signal.SIGSEGV}, Code.CRASH, "died from SIGSEGV in phase 'train'"),
        ({"status": -40}, Code.CRASH, "died from signal 40 in phase 'train'"),
        ({"status": -signal.SIGKILL}, Code.CRASH, "killed by SIGKILL from outside in phase 'train'"),
        ({"status": -9, "shortage": "it ran out"}, Code.OOM, "killed for want of memory in phase 'train': it ran out"),
        ({"status": -11, "shortage": "it ran out"}, Code.CRASH, "died from SIGSEGV in phase 'train'"),
        ({"status": -9, "timed_out": True}, Code.TIMEOUT, "stopped in phase 'train' by --timeout 300 s, the default"),
        (
            {"status": -9, "exceeded_bytes": 4617089843, "shortage": "it ran out"},
            Code.OOM,
            "used 4.3 GiB in phase 'train', the limit is 4 GiB (--memory-limit)",
        ),
        (
            {"status": -9, "broke_protocol": True},
            Code.INVALID,
            "something other than kerasbench wrote to the result pipe in phase 'train'",
        ),
        ({"status": EXIT_PIPE_LOST}, Code.INVALID, "the result pipe was taken from kerasbench in phase 'train'"),
    ],
)
def test_a_child_that_gave_no_answer(different: dict[str, object], code: Code, cause: str) -> None:
    failure = of(**different)
    assert (failure.code, failure.cause, failure.phase) == (code, cause, "train")
    assert failure.remedy


def test_a_failure_carries_the_last_lines_without_escape_sequences() -> None:
    assert of(status=3, stderr="one\n\x1b[31mtwo\x1b[0m\x07\n").detail == "one\ntwo "
    assert of(status=3, stdout="only this\n").detail == "only this"


def test_the_home_folder_is_named_by_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    said = 'File "/home/ada/keras/mine.py", line 3\n/mnt/home/ada/x /home/adams/y /home/ada/z'
    assert of(status=3, stderr=said).detail == 'File "~/keras/mine.py", line 3\n/mnt/home/ada/x /home/adams/y ~/z'
    monkeypatch.setenv("HOME", "/")
    assert of(status=3, stderr=said).detail == said
