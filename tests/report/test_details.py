import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report import details
from kerasbench.report.details import LAST_CHARACTERS, last_output
from tests import made
from tests.report.table import plain

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
# The main thread waits for one that a feed has started.
STOPPED_DUMP = """something before

Stopped at its time limit

Thread 0x00007f01 (most recent call first):
  File "/home/me/feed.py", line 6 in __getitem__

Current thread 0x00007f02 (most recent call first):
  File "/usr/lib/python3.11/queue.py", line 171 in get
  File "/here/kerasbench/runners/keras.py", line 146 in fit
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
        (STOPPED_DUMP, "Stopped at its time limit, in feed.py, line 6"),
        ("Stopped at its time limit\n\n", "Stopped at its time limit"),
        ("x" * 100_000 + "end", "…" + "x" * (LAST_CHARACTERS - 4) + "end"),
    ],
)
def test_the_last_output_is_the_end_of_it_in_one_line(detail: str, words: str) -> None:
    assert last_output(detail) == words


ENDED = [(code, "a | <b>\n", True) for code in (Code.CRASH, Code.TIMEOUT, Code.OOM, Code.INVALID)]
SAID_ALREADY = [(Code.OOM, TRACEBACK), (Code.PARITY, "x"), (Code.CRASH, "")]


@pytest.mark.parametrize(("code", "detail", "shown"), [*ENDED, *((*said, False) for said in SAID_ALREADY)])
def test_the_last_output_of_a_child_that_was_ended_is_shown_once(code: Code, detail: str, shown: bool) -> None:
    failed = made.trial(failure=Failure(code, "because", "mend it", "build", detail))
    lines = made.known(details.failures(summarize(made.record(failed)))).lines
    assert [plain(line) for line in lines] == (["dense on PyTorch: last output: a | <b>"] if shown else [])


def test_of_an_exception_the_end_of_its_traceback_is_shown() -> None:
    frame = '  File "keras/models.py", line 7, in call\n    layer(x)\n    ~~~~~^^^\n'
    detail = TRACEBACK.replace("RuntimeError", f"{frame}RuntimeError")
    failed = made.trial(failure=Failure(Code.ERROR, "RuntimeError: no", "mend it", "build", detail))
    (line,) = made.known(details.failures(summarize(made.record(failed)))).lines
    assert plain(line) == (
        "dense on PyTorch: last lines of the traceback: "
        'File "keras/models.py", line 7, in call / layer(x) / RuntimeError: no'
    )


@pytest.mark.parametrize(
    ("loss", "sentence", "has_table"),
    [
        (2.0001, "All backends computed the same: their losses after the same steps agree to three digits.", False),
        (2.01, "All backends computed the same: their losses after the same steps differ by 0.5 % at most.", False),
        (2.5, "Losses after the same steps differ by 20 % at most; the page lists them.", True),
    ],
)
def test_losses_are_a_sentence_and_a_table_above_one_percent(loss: float, sentence: str, has_table: bool) -> None:
    trials = [
        made.trial(backend=backend, found=made.changed(made.measurement(), learning={"loss": last}))
        for backend, last in (("jax", 2.0), ("torch", loss))
    ]
    words, table = details.same_results(summarize(made.record(*trials)))
    assert words == sentence and (table is not None) is has_table
