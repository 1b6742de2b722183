"""Pages on a terminal."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from kerasbench.analysis.findings import findings
from kerasbench.report import console, page
from kerasbench.report.sections import Bar, Cell, Chart, Group, Page, Piece, Section, Table
from kerasbench.results import store

COMMITTED = sorted((Path(__file__).parents[2] / "results").glob("*.json"))


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_a_page_fits_into_a_terminal(file: Path) -> None:
    found = findings(store.load(file))
    shown = console.rendered(page.screen(found))
    assert max(map(len, shown.splitlines())) <= console.WIDTH
    assert (" against " if found.is_versus else "Answer") in shown and "\x1b" not in shown


def test_every_part_of_a_section_is_shown_and_no_text_moves_the_cursor() -> None:
    table = Table(["a"], [[Cell("\x1b[31mred", strong=True)], [Cell("oom", failed=True)]])
    inner = Section("inner", lines=["a line"])
    shown = console.rendered(Page("title", [Section("outer", ["intro"], table, notes=["[b]note"], parts=[inner])]))
    for text in ("title", "outer", "intro", "[31mred", "oom", "[b]note", "inner", "• a line"):
        assert text in shown
    assert "\x1b" not in shown


def test_the_winner_is_coloured() -> None:
    table = Table(["a"], [[Cell("first", strong=True)], [Cell("second")]])
    shown = console.rendered(Page("", [Section("one", table=table)]), colour=True)
    assert "\x1b[1;32mfirst" in shown


def test_bars_are_drawn_where_the_terminal_has_the_characters() -> None:
    bars = Chart("Time.", [Group("dense", [Bar("JAX", "fastest", [Piece("JAX", 1.0, "#0072B2")])], 1.0)])
    shown = Page("", [Section("Answer", chart=bars)])
    assert "█" * 40 in console.rendered(shown)
    file = io.TextIOWrapper(io.BytesIO(), "ascii")
    console.show(shown, Console(file=file))
    file.seek(0)
    assert file.read().strip() == "Answer"
