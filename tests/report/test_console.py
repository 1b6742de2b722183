"""Pages on a terminal."""

import dataclasses
import io
import re

import pytest
from rich.console import Console

from kerasbench.report import console
from kerasbench.report.sections import Bar, BarChart, BarGroup, Cell, Page, Piece, Section, Table
from tests.report.table import on_terminal
from tests.report.test_charts import parts, ratios, run


def test_every_part_of_a_section_is_shown_and_no_text_moves_the_cursor() -> None:
    table = Table(["a"], [[Cell("\x1b[31mred", strong=True)], [Cell("oom", failed=True)]])
    inner = Section("inner", lines=["a line"])
    shown = on_terminal(Page("title", [Section("outer", ["intro"], table, notes=["[b]note"], parts=[inner])]))
    for text in ("title", "outer", "intro", "[31mred", "oom", "[b]note", "inner", "• a line"):
        assert text in shown
    assert "\x1b" not in shown
    assert "\x1b[1;32mfirst" in on_terminal(
        Page("", [Section("one", table=Table(["a"], [[Cell("first", strong=True)]]))]), colour=True
    )


def test_bars_are_drawn_where_the_terminal_has_the_characters() -> None:
    bars = BarChart("Time.", [BarGroup("dense", [Bar("JAX", "fastest", [Piece("JAX", 1.0, "#0072B2")])], 1.0)])
    shown = Page("", [Section("Answer", chart=bars)])
    assert "█" * 40 in on_terminal(shown)
    file = io.TextIOWrapper(io.BytesIO(), "ascii")
    console.show(shown, Console(file=file))
    file.seek(0)
    assert file.read().strip() == "Answer"


def shown(chart: BarChart, colour: bool = False) -> str:
    return on_terminal(Page("", [Section("", chart=chart)]), colour=colour)


def test_each_bar_is_as_long_as_its_ratio() -> None:
    lines = [line for line in shown(ratios(run(jax=1.0, torch=4.0))).splitlines() if "█" in line]
    counts = [sum(line.count(one) for one in "█▓▏▎▍▌▋▊▉") for line in lines]
    assert len(counts) == 4
    assert 3 <= counts[1] / counts[0] <= 4.5
    assert "dense" in lines[0] and "JAX" in lines[0] and "fastest, 1.02 ms" in lines[0]
    assert "torch" in lines[1] and "3.9× (" in lines[1]
    coloured = next(line for line in shown(ratios(run(jax=1.0, torch=4.0)), colour=True).splitlines() if "JAX" in line)
    assert re.search(r"\x1b\[[0-9;]+m█", coloured)


@pytest.mark.parametrize("width", [50, 80, 120])
def test_each_bar_has_a_line_on_a_terminal_of_any_width(width: int) -> None:
    page = Page("", [Section("", chart=ratios(run(jax=1.0, torch=4.0)))])
    file = io.StringIO()
    console.show(page, Console(file=file, force_terminal=True, color_system=None, width=width))
    figures = [line.split("█")[-1] for line in file.getvalue().splitlines() if "█" in line]
    assert len(figures) == 4
    assert "fastest, 1.02 ms" in figures[0] and ")" in figures[1]


def test_an_interval_is_seen_and_explained() -> None:
    steps = shown(ratios(run(jax=1.0, torch=1.3)))
    assert "▓░: the 95 % interval" in " ".join(steps.split())
    assert "95 %" not in shown(ratios(run(1, jax=1.0, torch=1.3)))


def test_parts_differ_without_colours_too() -> None:
    text = shown(parts())
    bar = next(line for line in text.splitlines() if line.startswith("dense"))
    assert [bar.count(one) for one in "█▓▒░"] == [20, 4, 6, 10]
    assert "██ computation" in text and "2.00 s" in text


def test_more_bars_than_a_screen_takes_are_left_out() -> None:
    chart = ratios(run(jax=1.0, torch=4.0))
    assert "█" not in shown(dataclasses.replace(chart, groups=list(chart.groups) * 5))


def test_a_pipe_gets_markdown_and_a_terminal_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    console.print_page(Page("title", [Section("one", lines=["a"])]))
    assert capsys.readouterr().out == "# title\n\n## one\n\n- a\n\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    console.print_page(Page("title", [Section("one", lines=["a"])]))
    assert "# title" not in capsys.readouterr().out
