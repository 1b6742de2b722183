import pytest
from markdown_it import MarkdownIt

from kerasbench.report.markdown import draw_table, escape

INSIDE = [
    *("a|b", "<b>", "`x`", "*a*", "_a_", "[a](b)", "a\nb", "&lt;", "~~a~~", "\\|"),
    *("a {: .b }", "www.a.b http://a.b"),
]
AT_THE_BEGINNING = ["# a", "- a", "+ a", "1. a", "1) a", "---", "!!! a"]


@pytest.mark.parametrize("text", [*INSIDE, *AT_THE_BEGINNING])
def test_no_text_is_markup(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(escape(text))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    parts = tokens[1].children or []
    assert {part.type for part in parts} <= {"text", "text_special"}
    assert "".join(part.content for part in parts) == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("x {: autofocus onfocus=alert(1) }", r"x \{: autofocus onfocus=alert(1) }"),
        ("!!! danger", r"\!!! danger"),
        ("see http://a.b, HTTPS://a.b", r"see http\://a.b, HTTPS\://a.b"),
        ("(WWW.a.b)", r"(WWW\.a.b)"),
    ],
)
def test_what_is_markup_on_the_site_or_on_github_alone_is_none(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(
    "text", ["mixed_float16", "batch=64 width=2", "gpu:1", "mnist_mlp/tiny", "12.3 ms", "a: b!", "awww.b"]
)
def test_names_stay_as_they_are(text: str) -> None:
    assert escape(text) == text


def test_a_cell_stays_in_its_column_whatever_it_holds() -> None:
    lines = draw_table(["a", "b"], [["1,230", escape("x|y")], ["007", "1e5"]]).splitlines()
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert lines[-1].split() == ["|", "007", "|", "1e5", "|"]  # no number is written anew
