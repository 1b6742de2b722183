import re

from kerasbench.analysis import versus
from kerasbench.analysis.findings import Findings, findings
from kerasbench.report import html
from kerasbench.report.sections import Cell, Page, Section, Table
from kerasbench.results.record import Record
from tests import made
from tests.report.test_comparisons import by_turns


def run(*names: str, jax: float = 1.0, torch: float = 2.0) -> Record:
    trials = [
        made.trial(index, name, backend, found=made.measurement(step * (1 + index / 1000)))
        for index in (1, 2, 3)
        for name in names
        for backend, step in (("jax", jax), ("torch", torch))
    ]
    return made.record(*trials, rounds=3)


def of(*names: str) -> Findings:
    return findings(run(*names))


def test_one_row_is_one_sentence_and_many_begin_with_one_for_all() -> None:
    (only,) = html.of_results(of("dense"))
    assert only.startswith("dense: JAX is fastest")
    first, *others = html.of_results(of("dense", "conv"))
    assert first == "JAX is the fastest in 2 of 2 rows."
    assert [line.split(":")[0] for line in others] == ["dense", "conv"]


def test_text_is_a_few_lines_whatever_was_measured() -> None:
    assert html.text([]) == "Nothing was measured."
    lines = [f"{number}" for number in range(html.LINES + 1)]
    assert html.text(lines[:-1]).splitlines() == lines[:-1]
    assert html.text(lines).splitlines() == [*lines[: html.LINES - 1], "... and 2 more: print() shows all."]


def test_html_is_open_up_to_a_table_and_folded_below() -> None:
    table = Table(["x"], [[Cell("1")]])
    page = Page("", [Section("All of it", table=table), Section("More", lines=["A line."])])
    text = html.notebook(page, ["a_b is *fast*"])
    assert re.search(r"<li>a_b is \*fast\*</li>.*All of it.*<table.*<details>.*More.*</details>$", text, re.DOTALL)
    assert text.count("<details>") == 1


def test_html_without_a_table_is_its_first_section_and_the_rest_folded() -> None:
    text = html.notebook(Page("", [Section("First", lines=["a"]), Section("Second", lines=["b"])]))
    assert text.index("First") < text.index("<details>") < text.index("Second")


def test_an_explanation_is_how_long_an_epoch_takes_and_what_would_help() -> None:
    trials = [made.trial(index, found=made.with_parts()) for index in (1, 2, 3)]
    (line,) = html.of_explanation(findings(made.record(*trials, rounds=3)).breakdowns)
    assert line.startswith("dense, torch cpu: An epoch of 100 steps takes ")
    assert "would help" in line or "would make it" in line


def test_a_comparison_counts_and_names_what_is_slower_or_lost() -> None:
    old, new = run("dense", jax=1.0), run("dense", jax=3.0)
    assert html.of_comparison(versus.compare([old], [new])) == [
        "2 cases measured on both sides, 0 judged: 0 slower, 0 faster, 0 neither.",
        "Not judged: 2 cases: a verdict needs three runs of each side by turns (old, new, old, new, old, new).",
    ]
    sides = [by_turns(1), by_turns(2, 1.5)]
    assert html.of_comparison(versus.compare(*sides)) == [
        "1 case measured on both sides, 1 judged: 1 slower, 0 faster, 0 neither.",
        "dense torch cpu takes 1.50 times as long as before.",
    ]
    lost = made.record(made.trial(backend="jax", failure=made.FAILURE))
    assert "dense jax cpu fails now: died from SIGSEGV in phase 'train'" in html.of_comparison(
        versus.compare([old], [lost])
    )
