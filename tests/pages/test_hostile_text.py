"""No text that came from a file is ever markup: pages have the same parts whatever stands in their strings."""

import csv
import io
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kerasbench.analysis import compare
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import summarize
from kerasbench.cli import printing
from kerasbench.pages import html, page, several
from kerasbench.pages.files import as_csv
from kerasbench.plan.catalog import Entry
from kerasbench.report import markdown
from kerasbench.results.run import Run
from kerasbench.variants import of_file
from tests import hostile
from tests.pages.browser import Page
from tests.report.table import brief, drawn

# What is one of a few words decides how a file is read, and is never shown as it stands.
WORDS = {"mode", "platform", "kind", "fp32", "unit", "code", "severity", "subnormals", "malloc"}
DATA = {"synthetic", "real"}
PIECES = (
    "<script>alert(1)</script>", "</title></style>", "<b", "&lt;", "&#60;", "|", "\\", "\\|", "`", "``", "*", "**",
    "_", "__", "~~", "~~~", "[a](b)", "![a](b)", "[a]: b", "<http://a.b>", "\n", "\r\n", "\n\n# a\n\n", "\n- a\n",
    "\t", "\x00", "\x1b[31m", "\u202e", "\u2066", "\u200b", "\ufeff", "- ", "+ ", "1. ", "=== ", "--- ", "> ", "# ",
    "=1+1", "@a", "a", "7", " ", "'", '"', "é", "日", "{{", "$a$", "{: .a }", "!!! ", "http://", "www.",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)


def with_text(content: Any, text: str, name: str = "") -> Any:
    """Put a text before every string of a file, names in its dictionaries included."""
    if isinstance(content, dict):
        named = name in ("versions", "history", "cores_by_kind")
        return {text + key if named else key: with_text(value, text, key) for key, value in content.items()}
    if isinstance(content, list):
        return [with_text(value, text, name) for value in content]
    return text + content if isinstance(content, str) and name not in WORDS and content not in DATA else content


def record(text: str) -> Run:
    return msgspec.convert(
        with_text(msgspec.json.decode(hostile.encoded()), text), type=Run, dec_hook=lambda _, values: of_file(values)
    )


def pages(record: Run, text: str) -> list[str]:
    """Return every markdown page that shows what stands in a file."""
    run = Findings.of(record)
    compared, text = compare.compare([record], [record]), f"{text}z"  # a title is never empty
    return [
        markdown.rendered(page.whole(run)),
        brief(run),
        drawn(several.changes(compared, text, text)),
        drawn(several.side_by_side([(text, run.summary)])),
        printing.as_table([Entry(Path("a.py"), "", facts.description) for facts in record.scenarios]),
    ]


def parts(text: str) -> list[str]:
    """Return what a markdown reader makes of a page: its slices and their markup, without the texts."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [f"{part.type} {part.tag}" for token in tokens for part in (token, *(token.children or ()))]


@cache
def harmless() -> tuple[list[list[str]], Page]:
    run = record("z")
    return [parts(text) for text in pages(run, "z")], Page(html.document([("z", Findings.of(run))]))


@given(TEXTS)
@example("<script>alert(1)</script>|`*\n\n# a\n\n\u202e")
@example("\"><img src=x onerror='alert(1)'>")
@example("- ")
@example("1. ")
@example("~~~")
@example("---\n")
@example("_a_")
@example("&lt;b&gt;")
def test_no_text_of_a_file_changes_what_a_page_consists_of(text: str) -> None:
    run = record(text)
    known, known_html = harmless()
    for drawn_page, expected in zip(pages(run, text), known, strict=True):
        assert parts(drawn_page) == expected
        assert all(c.isprintable() or c == "\n" for c in drawn_page)
    shown = Page(html.document([(text, Findings.of(run))]))
    assert shown.tags == known_html.tags
    assert {name for name, _ in shown.attributes} == {name for name, _ in known_html.attributes}
    assert all(c.isprintable() or c == "\n" for c in shown.text)


@given(TEXTS)
@example("=1+1")
@example("\t=1+1")
def test_no_text_of_a_file_changes_the_rows_of_the_csv_or_is_a_formula(text: str) -> None:
    lines = list(csv.reader(io.StringIO(as_csv([summarize(record(text))]))))
    expected = list(csv.reader(io.StringIO(as_csv([summarize(record("z"))]))))
    assert [len(line) for line in lines] == [len(line) for line in expected]
    texts = [cell for line in lines for cell in (*line[:7], line[10], line[12])]
    assert all(cell.isprintable() and not cell.startswith(("=", "+", "-", "@")) for cell in texts)
