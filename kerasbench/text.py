"""Words and characters: sizes, labels and times in words; text that is fit to be shown.

Text from a scenario or a framework must move no cursor of a terminal and change no title. Standard library alone.
"""

import io
import os
import re
import sys
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

PIPE_COLUMNS = 100  # of what no terminal shows
MARGIN = "    "  # of what goes on in the next line
NOTHING = "–"  # in a table, where there is no number to have
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# The last line of every page that kerasbench writes: one without it is somebody else's.
MADE = "<!-- Made by kerasbench from result files. `python -m kerasbench report` writes it again. -->"


def size(memory_bytes: int) -> str:
    """Return a size in words: ``4.3 GiB``, ``500 MiB``."""
    return f"{memory_bytes / GIB:.4g} GiB" if memory_bytes >= GIB else f"{memory_bytes / MIB:.4g} MiB"


def whole_gib(memory_bytes: int) -> str:
    """Return a machine's memory in words: ``16 GiB``."""
    return f"{memory_bytes / GIB:.0f} GiB"


def label(scenario: str, workload: str) -> str:
    """Return ``mnist_dense``, or ``mnist_mlp/tiny`` where the workload has a name of its own."""
    return scenario if workload == "default" else f"{scenario}/{workload}"


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def parse_ranges(text: str) -> set[int]:
    """Return the numbers of a list as Linux writes it, ``0-3,8``; raise ValueError for anything else."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        low, dash, high = part.partition("-")
        numbers |= set(range(int(low), int(high if dash else low) + 1))
    return numbers


def format_ranges(numbers: Collection[int]) -> str:
    """Return numbers as Linux writes them, ``0-3,8``."""
    starts = sorted(number for number in numbers if number - 1 not in numbers)
    ends = sorted(number for number in numbers if number + 1 not in numbers)
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in zip(starts, ends, strict=True))


def now() -> str:
    """Return the time as it stands in files: UTC, to the second, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(moment: str) -> float:
    """Return a time as it stands in files in seconds since 1970."""
    return datetime.fromisoformat(moment).timestamp()


# ECMA-48: control sequences (colours, cursor), operating system commands (titles, links), and the two-character ones.
_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\-~])"


def printable(text: str) -> str:
    """Return text without escape sequences, and blanks for all other control characters but line breaks."""
    return "\n".join(blanked(line) for line in re.sub(_SEQUENCE, "", text).split("\n"))


def blanked(text: str) -> str:
    """Return text with blanks for all control characters, line breaks included: no page and no table may hold one."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def one_line(text: str) -> str:
    """Return text on one line, without control characters and with single blanks."""
    return " ".join(blanked(text).split())


def columns_of(stream: TextIO) -> int:
    """Return how many columns a line on it may have."""
    columns = whole_number(os.environ.get("COLUMNS", ""))
    if columns:
        return columns
    with suppress(OSError, ValueError, AttributeError):  # a pipe, a notebook's stream
        return os.get_terminal_size(stream.fileno()).columns or PIPE_COLUMNS
    return PIPE_COLUMNS


def wrapped(text: str, columns: int) -> str:
    """Break lines between words where they are longer; a command for a shell stays whole."""
    import textwrap

    lines: list[str] = []
    for line in text.split("\n"):
        margin = line[: len(line) - len(line.lstrip())]
        if len(line) <= columns or line.startswith(f"{margin}$ "):
            lines.append(line)
            continue
        lines += textwrap.wrap(
            line, columns, subsequent_indent=margin + MARGIN, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines)


def write_whatever_stdout_takes() -> None:
    """Have stdout show ``?`` for what its encoding lacks (``±`` in ASCII): no table is lost for that."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a notebook's, or none at all, has no encoding to go by
        sys.stdout.reconfigure(errors="replace")


def print_document(text: str) -> None:
    """Print a file for others to read: always in UTF-8, as HTML and JSON say of themselves."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # a name of a file need not be UTF-8
    print(text, end="")


def complain(what: str) -> None:
    """Say on stderr what is wrong; it may quote a scenario or a file, and moves no cursor."""
    line = f"kerasbench: {printable(what)}"
    with suppress(OSError):  # a full disk takes no complaint either, and the exit code says enough
        is_shown = sys.stderr is not None and sys.stderr.isatty()  # none: it was closed
        print(wrapped(line, columns_of(sys.stderr)) if is_shown else line, file=sys.stderr)
