"""The cells that have no number: why, what to do, and what their children said last."""

import re
from collections.abc import Iterator

from kerasbench.analysis.summary import Summary
from kerasbench.exchange.messages import Code, Failure
from kerasbench.report.cells import column_name
from kerasbench.report.sections import Section, Table, texts
from kerasbench.text import printable

# Those that a parent has found out; an exception has said everything in the cause.
ENDED = frozenset({Code.CRASH, Code.TIMEOUT, Code.OOM, Code.INVALID})
LAST_LINES = 3
LAST_CHARACTERS = 240  # three lines of a terminal
FATAL, TRACEBACK = "Fatal Python error:", "Traceback (most recent call last)"
# The innermost frame that is neither Python's own nor an installed package's: the scenario's, or kerasbench's.
_FRAME = re.compile(
    r'^  File "(?!.*/(?:python3\.\d+|site-packages)/)(?P<file>.+)", line (?P<line>\d+) in', re.MULTILINE
)


def failures(summary: Summary) -> Section | None:
    """Return every cell without a number, with cause and remedy, and below the last words of those that left some."""
    rows = [
        texts(row.label, column_name(column), failure.code, failure.cause, failure.remedy)
        for row, column, failure in summary.failures
    ]
    if not rows:
        return None
    table = Table(["scenario", "column", "code", "cause", "remedy"], rows)
    return Section("Failures", table=table, lines=list(_last_words(summary)))


def _last_words(summary: Summary) -> Iterator[str]:
    for row, column, failure in summary.failures:
        words = "" if _is_told(failure) else last_words(failure.detail)
        if words:
            yield f"{row.label} {column_name(column)} said last: {words}"


def _is_told(failure: Failure) -> bool:
    return failure.code not in ENDED or (failure.code is not Code.CRASH and TRACEBACK in failure.detail)


def last_words(detail: str) -> str:
    """Return the end of what a child said in one line: of a traceback the last one, of a fatal error what and where."""
    lines = [" ".join(line.split()) for line in printable(detail).splitlines() if line.strip()]
    if FATAL in detail:
        return _bounded(_fatal(detail))
    if TRACEBACK in detail:
        return _bounded(lines[-1])
    return _bounded(" / ".join(lines[-LAST_LINES:]))


def _fatal(detail: str) -> str:
    """Return the first line of what Python's faulthandler writes, with the place in the current thread."""
    _, _, dump = detail.rpartition(FATAL)
    _, _, current = dump.partition("Current thread")
    found = _FRAME.search(current)
    place = f", in {found['file'].rpartition('/')[2]}, line {found['line']}" if found else ""
    what, _, _ = dump.partition("\n")
    return f"{FATAL} {what.strip()}{place}"


def _bounded(text: str) -> str:
    return text if len(text) <= LAST_CHARACTERS else f"…{text[1 - LAST_CHARACTERS :]}"
