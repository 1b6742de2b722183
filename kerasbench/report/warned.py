"""The warnings of a page: what each means, which cells it is about, and what to do."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kerasbench.analysis.summary import Summary
from kerasbench.analysis.warnings import Concern, concerns
from kerasbench.quiet.warnings import WORDS, Warned
from kerasbench.report.cells import column_name
from kerasbench.report.sections import Cell, Section, Table, texts
from kerasbench.text import count

LONGEST = 200  # characters of a line: two of a terminal


def warnings(summary: Summary) -> Section | None:
    """Return one line for each kind of warning: the cells that it is about, or their number, and what to do."""
    lines = list(_lines(concerns(summary)))
    return Section("Warnings", lines=lines) if lines else None


def warned_cells(summary: Summary) -> Section | None:
    """Return a table of each warning with its cells."""
    rows = [_row(one) for one in concerns(summary)]
    if not rows:
        return None
    table = Table(["scenario", "column", "warning", "what to do"], rows)
    return Section("Warnings by cell", table=table, folded=True)


def advice(signal: str) -> str:
    """Return what a signal of noise means and what to do, ``others: other programs used the processors; ...``."""
    if signal not in set(Warned):  # of a file that another version wrote
        return signal
    words = WORDS[Warned(signal)]
    return f"{signal}: {words.meaning}. Remedy: {words.remedy}."


def _lines(found: Sequence[Concern]) -> Iterator[str]:
    for what, alike in groupby(sorted(found, key=lambda one: list(Warned).index(one.what)), lambda one: one.what):
        cells = [_cells(one) for one in alike]
        words = WORDS[what]
        begin, end = f"{words.meaning[0].upper()}{words.meaning[1:]}: ", f". Remedy: {words.remedy}."
        named = "; ".join(cells)
        fits = len(begin) + len(named) + len(end) <= LONGEST
        where = named if fits else f"{count(len(cells), 'row')} (the page lists them by cell)"
        yield f"{begin}{where}{end}"


def _cells(one: Concern) -> str:
    """Return ``mnist_dense jax cpu, torch cpu``, with what is said of them."""
    columns = ", ".join(column_name(column) for column in one.columns)
    return " ".join(filter(None, [one.row, columns, f"({one.detail})" if one.detail else ""]))


def _row(one: Concern) -> list[Cell]:
    words = WORDS[one.what]
    columns = ", ".join(column_name(column) for column in one.columns)
    meaning = f"{words.meaning}: {one.detail}" if one.detail else words.meaning
    return texts(one.row or "all", columns or "all", meaning, words.remedy)
