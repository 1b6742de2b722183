"""What every page keeps to, whatever it holds."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.report import html, page
from kerasbench.report.sections import EMPTY, Cell, Section, Table
from kerasbench.results import store
from tests.report.table import brief, on_terminal
from tests.report.test_html import Page

COMMITTED = sorted((Path(__file__).parents[2] / "results").glob("*.json"))
LONGEST_NOTE = 200  # two lines of a terminal


def every(sections: Iterator[Section]) -> Iterator[Section]:
    for one in sections:
        yield one
        yield from every(iter(one.parts))


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_the_pages_of_a_committed_run(file: Path) -> None:
    """All at once: to read a file takes longer than to look at its pages."""
    found = findings(store.load(file))
    has_short_notes(found)
    fits_into_a_terminal(found)
    has_every_cell_in_html_too(found)
    if not found.is_versus:
        tells_the_winner_and_the_ratio_of_each_row_in_40_lines(found)


def has_short_notes(found: Findings) -> None:
    for one in every(iter([*page.whole(found).sections, *page.screen(found).sections])):
        assert [note for note in (*one.intro, *one.notes) if len(note) > LONGEST_NOTE] == []


def fits_into_a_terminal(found: Findings) -> None:
    shown = on_terminal(page.screen(found))
    assert max(map(len, shown.splitlines())) <= 100
    assert (" against " if found.is_versus else "Answer") in shown and "\x1b" not in shown


def has_every_cell_in_html_too(found: Findings) -> None:
    lines = [line for line in page.document(found).splitlines() if line.startswith("| ")]
    expected = [rendered(cell.strip()) for line in lines for cell in line.strip("|").split("|")]
    assert len(expected) > 100
    assert Page(html.document([("here", found)])).cells == expected


def rendered(cell: str) -> str:
    """Return what a reader sees of a markdown cell that has no escapes."""
    assert "\\" not in cell
    return re.sub(r"^(\*\*|\*)(.*)\1$", r"\2", cell).replace("`", "")


def tells_the_winner_and_the_ratio_of_each_row_in_40_lines(found: Findings) -> None:
    begin = brief(found).splitlines()[:40]
    for row, ranking in found.plain.ranked:
        line = next(line for line in begin if row.label in line)
        ranked = [column for column, case in row.cases.items() if column.competes and case.is_ranked]
        if len(ranked) < 2:
            continue  # nothing to be compared with: the others ran eagerly
        assert ranking.fastest is not None
        assert ranking.fastest.backend in line.lower()
        assert line.count("×") >= (1 if found.races else len(ranking.comparisons))


def test_a_column_is_of_numbers_where_all_that_is_measured_is_one() -> None:
    table = Table(
        ["name", "time"], [[Cell("a"), Cell("1.0", 1.0)], [Cell("b"), EMPTY], [Cell("c"), Cell("oom", failed=True)]]
    )
    assert [table.is_numeric(index) for index in (0, 1)] == [False, True]
    assert not Table(["time"], [[EMPTY]]).is_numeric(0)


def test_marks_that_are_characters_are_shown() -> None:
    assert Cell("1.0 ms", level=True, warned=True).shown == "≈ 1.0 ms ⚠"
