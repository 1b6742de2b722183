import pytest

from kerasbench.report import console
from kerasbench.report.sections import Cell, Page, Section, Strong, Table, Typed
from tests.report.table import on_terminal


def test_every_part_of_a_section_is_shown_and_no_text_moves_the_cursor() -> None:
    table = Table(["a"], [[Cell("\x1b[31mred", strong=True, marks=[1, 2])], [Cell("oom", failed=True)]])
    words: list[str | Strong | Typed] = ["intro ", Strong("strong"), " ", Typed("typed")]
    section = Section("outer", [words], ["a line to copy"], None, table, ["[b]note"], ["a line"], "the end")
    shown = on_terminal(Page("title", [section, Section("hidden", lines=["below the fold"], folded=True)]))
    for text in ("intro strong typed", "    a line to copy", "[31mred ⚠¹ ²", "oom", "[b]note", "• a line"):
        assert text in shown
    assert "\x1b" not in shown and "hidden" not in shown
    bold = Page("", [Section("one", table=Table(["a"], [[Cell("first", strong=True)]]))])
    assert "\x1b[1;32mfirst" in on_terminal(bold, colour=True)


def test_only_a_pipe_gets_markdown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page("title", [Section("one", lines=["a"]), Section("two", lines=["b"], folded=True)])
    console.print_page(page)
    assert capsys.readouterr().out == "# title\n\n## one\n\n- a\n\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    console.print_page(page)
    assert "# title" not in capsys.readouterr().out
