import pytest

from kerasbench.report.console import print_page
from kerasbench.report.sections import Page, Section


def test_a_pipe_gets_markdown_and_a_terminal_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_page(Page("title", [Section("one", lines=["a"])]))
    assert capsys.readouterr().out == "# title\n\n## one\n\n- a\n\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_page(Page("title", [Section("one", lines=["a"])]))
    assert "# title" not in capsys.readouterr().out
