"""The HTML page, and what Python shows of results as text and in a notebook."""

import dataclasses
import itertools
import re

from kerasbench.analysis import versus
from kerasbench.analysis.findings import Findings
from kerasbench.host import Machine
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report import compare, html, markdown, page, sections
from kerasbench.report.sections import Section
from kerasbench.results.run import Run
from tests import made
from tests.records import CROSSING, by_turns, swept
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


def levels(page: Page) -> list[int]:
    return [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]


def test_one_machine_has_its_title_above_and_sections_below() -> None:
    page = Page(html.document([("Chip 9", Findings.of(made.record(made.trial())))]))
    assert levels(page)[0] == 1
    assert set(levels(page)[1:]) == {2}
    assert page.text.count("A training step of dense takes") == 2  # the title of the window and the heading


def test_each_of_several_machines_is_a_heading_of_its_own() -> None:
    page = Page(html.document([("first", summary()), ("second", summary())]))
    found = levels(page)
    assert (found.count(1), found.count(2)) == (1, 3)
    assert all(after - before <= 1 for before, after in itertools.pairwise(found))
    assert "kerasbench on first, second" in page.text


def test_links_and_labels_lead_to_what_is_there_once() -> None:
    page = Page(html.document([("first", summary()), ("second", summary())]))
    places = page.values("id")
    assert len(places) == len(set(places))
    assert {link.removeprefix("#") for link in page.values("href") if link.startswith("#")} <= set(places)
    assert set(page.values("aria-labelledby")) <= set(places)


def test_charts_stand_in_their_sections_and_can_be_filtered() -> None:
    page = Page(html.document([("here", summary()), ("there", Findings.of(swept(**CROSSING)))]))
    assert page.tags.count("figure") == 2
    assert {"dense", "harmless"} <= set(page.values("data-scenario"))
    assert {"jax", "torch"} <= set(page.values("data-backend"))


def test_a_column_of_numbers_stays_one_where_a_cell_has_failed() -> None:
    trials = [made.trial(backend="jax"), made.trial(name="conv", backend="jax", failure=made.FAILURE)]
    page = html.document([("here", Findings.of(made.record(*trials)))])
    assert '<th scope="col" class="number">JAX</th>' in page
    assert '<td class="number" data-value="2.1">2.10 ms</td>' in page
    assert '<td class="number"><em>crash</em> ⚠¹</td>' in page
    assert '<td class="number" data-value="32.0">32</td>' in page


def test_a_ratio_is_tinted_by_its_size() -> None:
    cells = [sections.Cell(f"{ratio}", ratio, ratio=ratio) for ratio in (1.0, 1.2, 2.0, 4.0, 30.0)]
    page = html.notebook(
        sections.Page("", [Section("", table=sections.Table(["a"] * 6, [[sections.Cell("x"), *cells]]))])
    )
    assert re.findall(r'<td class="number(?: tint(\d))?"', page) == ["", "1", "2", "3", "4"]


def run(*names: str, jax: float = 1.0, torch: float = 2.0) -> Run:
    trials = [
        one
        for name in names
        for backend, step_ms in (("jax", jax), ("torch", torch))
        for one in made.thrice(step_ms, name=name, backend=backend)
    ]
    return made.record(*trials, rounds=3)


def test_text_is_a_few_lines_whatever_was_measured() -> None:
    assert html.text([]) == "Nothing was measured."
    lines = [f"{number}" for number in range(html.LINES + 1)]
    assert html.text(lines[:-1]).splitlines() == lines[:-1]
    assert html.text(lines).splitlines() == [*lines[: html.LINES - 1], "... and 2 more: print() shows all."]


def test_text_of_a_file_moves_no_cursor_in_a_notebook_s_text() -> None:
    assert html.text(["a \x1b[31mred\x9b row"]) == "a  [31mred  row"


def test_a_notebook_has_the_chart_of_a_page_and_folds_what_is_below() -> None:
    found = Findings.of(run("dense", "conv"))
    text = html.notebook(page.whole(found))
    assert re.search(r'<img src="data:image/svg\+xml,[^"]*" alt="JAX trains dense and conv fastest">', text)
    assert re.search(r"<h3>JAX trains.*<table.*<details>.*Before you use these numbers.*</details>$", text, re.DOTALL)
    assert "<script" not in text


def test_a_comparison_counts_and_names_what_is_slower_or_lost() -> None:
    old, new = run("dense", jax=1.0), run("dense", jax=3.0)
    assert compare.sentences(versus.compare([old], [new])) == [
        "2 cases measured on both sides, 0 judged: 0 slower, 0 faster, 0 neither.",
        "Not judged: 2 cases: a verdict needs three runs of each side by turns (old, new, old, new, old, new).",
    ]
    assert compare.sentences(versus.compare(by_turns(1), by_turns(2, 1.5))) == [
        "1 case measured on both sides, 1 judged: 1 slower, 0 faster, 0 neither.",
        "dense torch cpu takes 1.50× as long as before.",
    ]
    lost = made.record(made.trial(backend="jax", failure=made.FAILURE))
    assert "dense jax cpu fails now: died from SIGSEGV in phase 'train'" in compare.sentences(
        versus.compare([old], [lost])
    )
