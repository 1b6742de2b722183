"""No text that came from a file is ever markup: pages have the same parts whatever stands in their strings."""

import csv
import io
import json
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown import Markdown
from markdown_it import MarkdownIt
from properdocs.utils.yaml import yaml_load

from kerasbench.analysis import compare
from kerasbench.analysis.summary import summarize
from kerasbench.pages import files, html, page, several
from kerasbench.pages.files import as_csv
from kerasbench.report import markdown
from kerasbench.report.sections import Section
from kerasbench.results.run import SCHEMA, Run
from kerasbench.results.store import load
from kerasbench.text import one_line
from kerasbench.variants import of_file
from tests import hostile
from tests.pages.browser import Page
from tests.report.table import brief, drawn
from tests.repository import ROOT

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
    run = summarize(record)
    compared, text = compare.compare([record], [record]), f"{text}z"  # a title is never empty
    return [
        markdown.rendered(page.whole(run)),
        brief(run),
        drawn(several.changes(compared, text, text)),
        drawn(several.side_by_side([(text, run)])),
    ]


def parts(text: str) -> list[str]:
    """Return what a markdown reader makes of a page: its slices and their markup, without the texts."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [f"{part.type} {part.tag}" for token in tokens for part in (token, *(token.children or ()))]


@cache
def harmless() -> tuple[list[list[str]], Page]:
    run = record("z")
    return [parts(text) for text in pages(run, "z")], Page(html.document([("z", summarize(run))]))


def on_site(text: str) -> Page:
    """Return what the site makes of a page of markdown."""
    with (ROOT / "properdocs.yml").open(encoding="utf-8") as settings:
        listed = yaml_load(settings)["markdown_extensions"]
    named = [entry for entry in listed if isinstance(entry, str)]
    options = {name: chosen for entry in listed if isinstance(entry, dict) for name, chosen in entry.items()}
    shown = Markdown(extensions=[*named, *options], extension_configs=options, output_format="html").convert(text)
    return Page(shown)


def on_github(text: str) -> Page:
    return Page(
        MarkdownIt("commonmark", {"html": True, "xhtmlOut": False}).enable(["table", "strikethrough"]).render(text)
    )


def made_of(content: bytes, folder: Path) -> tuple[dict[str, Page], dict[str, set[str]]]:
    """Return each page that a file leads to as a browser has it, and the elements of each chart."""
    folder.mkdir()
    file = folder / "2026-01-02T030405.json"
    file.write_bytes(content)
    run = load(file)
    texts = {path.name: text for path, text in files.made_from([folder]).items()}
    texts |= {f"brief {place}": text for place, text in enumerate(pages(run, run.machine.chip))}
    texts["folded"] = markdown.section(Section(run.scenarios[0].description.name, ["a"], folded=True))
    texts |= runpy.run_path(str(ROOT / "docs" / "tools" / "machines.py"))["made"](folder)
    shown, charts = {"notebook": Page(html.notebook(page.whole(summarize(run))))}, {}
    for name, text in texts.items():
        if name.endswith(".svg"):
            charts[re.sub("[0-9a-f]{6}", "", name)] = {part.tag for part in ElementTree.fromstring(text).iter()}
        elif name.endswith(".html"):
            shown[name] = Page(text)
        else:
            shown |= {f"{name} on the site": on_site(text), f"{name} on GitHub": on_github(text)}
    return shown, charts


@pytest.mark.parametrize("schema", [SCHEMA, hostile.COMPARED])
def test_nothing_that_reading_lets_through_is_markup_or_code_on_any_page(schema: int, tmp_path: Path) -> None:
    content, refused = hostile.planted(hostile.EVIL, schema)
    assert "trials.*.backend" in refused and not {"scenario", "workload", "machine.chip"} & {*refused}
    shown, charts = made_of(content, tmp_path / "evil")
    expected, expected_charts = made_of(
        content.replace(json.dumps(hostile.EVIL)[1:-1].encode(), b"z"), tmp_path / "harmless"
    )
    assert sum("pwned" in seen.text for seen in shown.values()) > len(shown) / 2
    for (name, seen), known in zip(shown.items(), expected.values(), strict=True):
        assert {*seen.tags} <= {*known.tags}, name
        assert {attribute for attribute, _ in seen.attributes} <= {attribute for attribute, _ in known.attributes}, name
        assert seen.tags.count("script") == known.tags.count("script"), name
        addresses = [*seen.values("href"), *seen.values("src")]
        assert not any(address.strip().lower().startswith("javascript:") for address in addresses), name
    assert list(charts.values()) == list(expected_charts.values())


@given(TEXTS)
@example("<img src=x onerror=document.title='pwned'//>")
@example("<script>alert(1)</script>")
@example("&lt;script&gt;")
def test_the_heading_of_a_fold_is_the_text_that_was_given(text: str) -> None:
    """A browser reads it as HTML on the site and on GitHub alike."""
    drawn = markdown.section(Section(f"a{text}", ["b"], folded=True))
    for shown in (on_site(drawn), on_github(drawn)):
        assert shown.tags == ["details", "summary", "p"]
        assert shown.text.split() == f"{one_line(f'a{text}')} b".split()


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
    shown = Page(html.document([(text, summarize(run))]))
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
