import dataclasses
import re

from kerasbench.analysis.summary import Summary, summarize
from kerasbench.host import Machine
from kerasbench.host.noise import Severity, Signal
from kerasbench.pages import html, page
from kerasbench.protocol.columns import Column
from kerasbench.protocol.messages import Code, Failure
from tests import made
from tests.made import JAX, TORCH
from tests.pages.browser import Page


def summary(text: str = "harmless") -> Summary:
    """Everything that a page can show, with this text wherever a file can put text that the tables escape."""
    columns = {JAX: 1.0, TORCH: 3.0, Column("torch", "gpu"): 1.5}
    trials = [trial for name in ("dense", text) for trial in made.in_blocks(columns, made.steps, name=name)]
    failed = made.trial(1, backend="tensorflow", failure=Failure(Code.CRASH, text, text))
    noise = [Signal("others", Severity.INVALID, text)]
    machine = Machine(text, 2, 8 << 30, text, text)
    record = made.record(*trials, failed, rounds=3)
    return summarize(dataclasses.replace(record, machine=machine, noise=noise))


def test_text_from_elsewhere_is_shown_as_it_is() -> None:
    text = "\"><img src=x onerror='alert(1)'> R&D &lt;b&gt; back\\slash\\ **bold** `code` | pipe"
    assert Page(html.document([("here", summary(text))])).cells.count(text) >= 2  # the cause and the remedy, at least


def test_nothing_is_fetched_and_the_policy_forbids_it() -> None:
    page = html.document([("here", summary())])
    assert re.search(r"https?://|url\(|@import", page) is None
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';")


def test_a_page_that_is_sent_says_what_made_it_and_how_to_read_it() -> None:
    text = Page(html.document([("here", summary())])).text
    assert "Made by kerasbench," in text and "kerasbench docs reading-results shows how to read this page" in text
    assert "another machine has other ratios: kerasbench docs limitations." in text


def test_a_chart_is_one_image_whatever_parts_it_has() -> None:
    page = Page(html.document([("here", summary())]))
    assert page.tags.count("figure") == page.values("role").count("img") == 1 < page.tags.count("svg")


def test_links_and_labels_lead_to_what_is_there_once() -> None:
    page = Page(html.document([("first", summary()), ("second", summary())]))
    places = page.values("id")
    assert len(places) == len(set(places))
    assert {link.removeprefix("#") for link in page.values("href") if link.startswith("#")} <= set(places)
    assert set(page.values("aria-labelledby")) <= set(places)
    assert "kerasbench on first, second" in page.text


def test_a_notebook_has_the_chart_as_an_image_folds_what_is_below_and_runs_no_script() -> None:
    text = html.notebook(page.whole(summary()))
    assert re.search(r'<h3>.*<img src="data:image/svg\+xml,[^"]*" .*<table.*<details>.*</details>$', text, re.DOTALL)
    assert "<script" not in text


def test_text_is_a_few_lines_whatever_was_measured() -> None:
    assert html.text([]) == "Nothing was measured."
    lines = [f"{number}" for number in range(html.LINES + 1)]
    assert html.text(lines[:-1]).splitlines() == lines[:-1]
    assert html.text(lines).splitlines() == [*lines[: html.LINES - 1], "... and 2 more: print() shows all."]
    assert html.text(["a \x1b[31mred\x9b row"]) == "a  [31mred  row"
