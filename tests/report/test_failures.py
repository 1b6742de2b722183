import dataclasses

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report import html
from kerasbench.report.conditions import LAST_CHARACTERS, failures, last_output
from tests import made
from tests.report.table import drawn

DUMP = """something before
Fatal Python error: Segmentation fault

Thread 0x00007f01 (most recent call first):
  File "/home/me/other.py", line 3 in wait

Current thread 0x00007f02 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/venv/lib/python3.11/site-packages/keras/src/models.py", line 7 in build
  File "/home/me/my scenario.py", line 7 in build
  File "/kerasbench/worker/trial.py", line 140 in build_model

Extension modules: numpy._core._multiarray_umath, h5py._errors (total: 50)
"""
TRACEBACK = 'Traceback (most recent call last):\n  File "mine.py", line 1, in <module>\nRuntimeError: no\n'


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("", ""),
        (" \n\n", ""),
        ("one\n\n two\tthree \nfour\nfive\n", "two three / four / five"),
        ("\x1b[31mred\x1b[0m \x07bell", "red bell"),
        (f"before\n{TRACEBACK}", "RuntimeError: no"),
        (DUMP, "Fatal Python error: Segmentation fault, in my scenario.py, line 7"),
        ("Fatal Python error:", "Fatal Python error: "),
    ],
)
def test_the_last_output_are_the_end_of_what_was_said(detail: str, words: str) -> None:
    assert last_output(detail) == words


def test_the_last_output_are_bounded() -> None:
    words = last_output("x" * 100_000 + "end")
    assert len(words) == LAST_CHARACTERS
    assert words.startswith("…x") and words.endswith("xend")


def section(code: Code, detail: str) -> str:
    failure = Failure(code, "because", "mend it", "build", detail)
    return drawn(failures(findings(made.record(made.trial(failure=failure)))))


@pytest.mark.parametrize("code", [Code.CRASH, Code.TIMEOUT, Code.OOM, Code.INVALID])
def test_the_last_output_of_a_child_that_was_ended_stand_below_the_table(code: Code) -> None:
    assert section(code, "a | <b>\n").endswith("|\n\n- dense torch cpu: last output: a \\| \\<b\\>")


@pytest.mark.parametrize(
    ("code", "detail"), [(Code.ERROR, TRACEBACK), (Code.OOM, TRACEBACK), (Code.PARITY, "x"), (Code.CRASH, "")]
)
def test_what_the_cause_has_said_is_not_said_again(code: Code, detail: str) -> None:
    assert "last output" not in section(code, detail)
    assert section(code, detail).count("because") == 1


def test_the_last_output_are_no_markup_on_a_web_page() -> None:
    failure = Failure(Code.CRASH, "because", "mend it", "build", "<script>alert(1)</script>\n- # `x`")
    page = html.document([("here", findings(made.record(made.trial(failure=failure))))])
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt; / - # `x`" in page


def test_no_failure_no_section() -> None:
    assert failures(findings(made.record(dataclasses.replace(made.trial())))) is None
