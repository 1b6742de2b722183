"""The HTML page, and what Python shows of results as text and in a notebook."""

import dataclasses
import re

from kerasbench.analysis.findings import Findings
from kerasbench.host import Machine
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report import html, markdown, page
from tests import made
from tests.report.browser import Page

GPU = Device("cuda", 0, "NVIDIA H200")


def summary(text: str = "harmless") -> Findings:
    """Everything that a page can show, with this text wherever a file can put text that the tables escape."""
    noise = (Signal("others", Severity.INVALID, text),)
    trials = [
        made.trial(
            index,
            name,
            backend,
            found=made.measurement(step_ms=step_ms * (1 + index / 1000)),
            device=device,
            noise=noise if index == 2 else (),
        )
        for index in (1, 2, 3)
        for name in ("dense", text)
        for backend, device, step_ms in (("jax", made.CPU, 1.0), ("torch", made.CPU, 3.0), ("torch", GPU, 1.5))
    ]
    failed = made.trial(1, backend="tensorflow", failure=Failure(Code.CRASH, text, text))
    record = made.record(*trials, failed, rounds=3)
    machine = Machine(text, 2, 8 << 30, text, text)
    return Findings.of(dataclasses.replace(record, machine=machine, noise=list(noise)))


def test_every_line_of_the_markdown_page_is_on_the_page() -> None:
    found = summary()
    seen = Page(html.document([("there", found)])).text
    lines = [line for line in markdown.file(page.whole(found)).splitlines() if line and not line.startswith(("|", "<"))]
    assert len(lines) > 15
    for line in lines:
        text = re.sub(r"^(- |#+ )", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line))
        assert re.sub(r"[`*\\]", "", text) in seen


def test_text_from_elsewhere_is_shown_as_it_is() -> None:
    text = "\"><img src=x onerror='alert(1)'> R&D &lt;b&gt; back\\slash\\ **bold** `code` | pipe"
    assert Page(html.document([("here", summary(text))])).cells.count(text) >= 2  # the cause and the remedy, at least


def test_nothing_is_fetched_and_the_policy_forbids_it() -> None:
    page = html.document([("here", summary())])
    assert re.search(r"https?://|url\(|@import", page) is None
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';")


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
