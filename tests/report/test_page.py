"""What every page keeps to, whatever it holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.report import page
from kerasbench.report.sections import EMPTY, Cell, Section, Table
from kerasbench.results import store
from tests.report.table import brief

ROOT = Path(__file__).parents[2]
COMMITTED = sorted((ROOT / "results").glob("*.json"))
LONGEST_NOTE = 200  # two lines of a terminal


def every(sections: Iterator[Section]) -> Iterator[Section]:
    for one in sections:
        yield one
        yield from every(iter(one.parts))


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_no_note_is_longer_than_two_lines(file: Path) -> None:
    found = findings(store.load(file))
    for one in every(iter([*page.whole(found).sections, *page.screen(found).sections])):
        assert [note for note in (*one.intro, *one.notes) if len(note) > LONGEST_NOTE] == []


@pytest.mark.parametrize(
    "file", [one for one in COMMITTED if not store.load(one).config.versus], ids=lambda file: file.stem
)
def test_the_first_40_lines_tell_the_winner_and_the_ratio_of_each_row(file: Path) -> None:
    found = findings(store.load(file))
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
