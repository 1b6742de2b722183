"""The page of one or more machines as one HTML file that needs no network: the answer, bars, sections, and plots.

``assets`` has its style sheet and its script, which sorts, filters, and changes between light and dark.

All text is escaped; nothing in a file is markup.

What Python shows: the answer in a few lines, and in a notebook also a table, with the details folded.
"""

import base64
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources
from typing import NamedTuple

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.versus import Comparison
from kerasbench.report import answer, comparisons, explanation, page, plot, svg
from kerasbench.report.comparisons import side_by_side
from kerasbench.report.figures import SPELLED, case_name, column_name
from kerasbench.report.sections import Cell, Page, Section, Table
from kerasbench.text import blanked, count

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
INSTALL = "Plots need matplotlib: <code>pip install matplotlib</code>"

LONG_CELL = 40  # characters: only a cell with more breaks into lines, or a phone would show a word a line


class Plot(NamedTuple):
    """A plot of a section, what it shows to those who cannot see it, and whether it stands before the table."""

    draw: Callable[[Findings], bytes | None]
    alternative: str
    first: bool = True


# By the name of a section's picture.
PLOTS = {
    "step_times": Plot(
        plot.step_times,
        "Time of a training step of each scenario, a marker for each column: the numbers of the table.",
        first=False,  # bars of ratios stand above the table already
    ),
    "sweep": Plot(
        plot.step_over_size,
        "Time of a step over size, a line for each column, both axes logarithmic: as in the table.",
    ),
    "speed_ups": Plot(
        plot.speed_ups, "Time of a step on the CPU over that on the GPU, with a line at 1: the numbers of the table."
    ),
    "phases": Plot(
        plot.phases, "A bar for each column, made of its phases one after the other: the numbers of the table."
    ),
}


def document(machines: Sequence[tuple[str, Findings]]) -> str:
    """Return the whole file: a part for each machine, under its title."""
    title = _text(f"kerasbench on {', '.join(name for name, _ in machines)}")
    several = len(machines) > 1
    parts = [_machine(f"m{number}", name, found, several) for number, (name, found) in enumerate(machines, start=1)]
    if several:
        together = side_by_side([(name, found.summary) for name, found in machines])
        parts = [_navigation([("m0-1", together)]), _section(together, "m0-1", 2), *parts]
    missing = [] if plot.is_available() else [f'<p class="hint">{INSTALL}</p>']
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title>\n<style>{_asset('page.css')}</style>\n</head>\n<body>\n<main>",
            f"<header><h1>{title}</h1></header>",
            _controls(machines),
            *parts,
            *missing,
            f"</main>\n<script>{_asset('page.js')}</script>\n</body>\n</html>\n",
        ]
    )


def _asset(name: str) -> str:
    return (resources.files("kerasbench.report") / "assets" / name).read_text("utf-8")


def _controls(machines: Sequence[tuple[str, Findings]]) -> str:
    """Return what filters the page; hidden until the script runs, without which it would do nothing."""
    backends = sorted({column.backend for _, found in machines for column in found.summary.columns})
    boxes = (
        f'<label class="chip"><input type="checkbox" name="backend" value="{_text(backend)}" checked> '
        f"{_text(SPELLED.get(backend, backend))}</label>"
        for backend in backends
    )
    return "\n".join(
        [
            '<form class="controls" aria-label="What is shown" hidden>',
            '<label>Scenario <input type="search" name="scenario" placeholder="part of a name"></label>',
            f'<div role="group" aria-label="Backends">{"".join(boxes)}</div>',
            '<button type="button" name="details" aria-pressed="false">Open all details</button>',
            '<button type="button" name="theme" aria-pressed="false">Dark</button>',
            '<output name="told" aria-live="polite"></output>',
            "</form>",
        ]
    )


def rendered(found: Page) -> str:
    """Return a page as HTML to stand inside another page, such as a notebook."""
    title = [f"<h3>{_text(found.title)}</h3>"] if found.title else []
    plain = (dataclasses.replace(one, chart=None) for one in found.sections)  # bars need the style sheet of a page
    parts = (_section(one, f"section-{number}", 4) for number, one in enumerate(plain, start=1))
    return "\n".join([*title, *parts])


def _machine(anchor: str, name: str, found: Findings, several: bool) -> str:
    """Return one machine's part; where there are several, its title is a heading and its sections are one deeper."""
    level = 3 if several else 2
    sections = [(f"{anchor}-{number}", one) for number, one in enumerate(page.whole(found).sections, start=1)]
    return "\n".join(
        [
            *([f"<h2>{_text(name)}</h2>"] if several else []),
            _navigation(sections),
            *(_section(one, place, level, _picture(one, found, place)) for place, one in sections),
        ]
    )


def _navigation(sections: Sequence[tuple[str, Section]]) -> str:
    links = [f'<li><a href="#{place}">{_text(one.title)}</a></li>' for place, one in sections]
    return f'<nav aria-label="Sections"><details><summary>Contents</summary><ul>{"".join(links)}</ul></details></nav>'


def _picture(section: Section, found: Findings, place: str) -> str:
    if section.picture not in PLOTS or not plot.is_available():
        return ""
    image = PLOTS[section.picture].draw(found)
    if image is None:
        return ""
    source = base64.b64encode(image).decode()
    alternative = escape(PLOTS[section.picture].alternative)
    picture = f'<img alt="{alternative}" src="data:image/svg+xml;base64,{source}">'
    return f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{place}">{picture}</div>'


def _section(found: Section, place: str, level: int, picture: str = "") -> str:
    """Return a section below its heading; a folded one opens by a click."""
    heading = f'<h{level} id="{place}">{_text(found.title)}</h{level}>'
    blocks = list(_blocks(found, place, level))
    body = [picture, *blocks] if picture and PLOTS[found.picture].first else [*blocks, picture]
    if found.folded:
        return "\n".join([f"<details>\n<summary>{heading}</summary>", *body, "</details>"])
    return "\n".join([heading, *body])


def _blocks(found: Section, place: str, level: int) -> Iterator[str]:
    bars = [] if found.chart is None else [svg.drawn(found.chart)]
    yield from (f"<p>{_text(line)}</p>" for line in found.intro)
    if found.table is not None:
        yield from bars
        yield _table(found.table, place)
    if found.lines:
        yield _list(found.lines, "lines")
    if found.table is None:
        yield from bars
    if found.notes:
        yield _list(found.notes, "notes")
    for part in found.parts:
        heading = f"<h{level + 1}>{_text(part.title)}</h{level + 1}>"
        yield f"<details>\n<summary>{heading}</summary>" if part.folded else heading
        yield from _blocks(part, place, level + 1)
        if part.folded:
            yield "</details>"


def _list(lines: Sequence[str], what: str) -> str:
    return f'<ul class="{what}">\n' + "\n".join(f"<li>{_text(line)}</li>" for line in lines) + "\n</ul>"


def _table(found: Table, place: str) -> str:
    """Return a table in a box that scrolls by itself; each first cell is the heading of its row."""
    numeric = [found.is_numeric(index) for index in range(len(found.columns))]
    heads = (
        f'<th scope="col"{_right(is_one)}>{_text(name)}</th>'
        for name, is_one in zip(found.columns, numeric, strict=True)
    )
    lines = [
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{place}"><table>',
        f"<thead><tr>{''.join(heads)}</tr></thead>",
        "<tbody>",
        *(_row(row, numeric) for row in found.rows),
        "</tbody></table></div>",
    ]
    return "\n".join(lines)


def _row(cells: Sequence[Cell], numeric: Sequence[bool]) -> str:
    first, *others = cells
    data = "".join(_cell(cell, is_one) for cell, is_one in zip(others, numeric[1:], strict=True))
    key = "" if first.value is None else f' data-value="{first.value!r}"'
    return f'<tr><th scope="row"{key}>{_marked(first)}</th>{data}</tr>'


def _cell(cell: Cell, numeric: bool) -> str:
    key = "" if cell.value is None else f' data-value="{float(cell.value)!r}"'
    look = ' class="long"' if len(cell.text) >= LONG_CELL and not numeric else _right(numeric)
    return f"<td{look}{key}>{_marked(cell)}</td>"


def _marked(cell: Cell) -> str:
    text = _text(cell.shown)
    if cell.failed:
        return f"<em>{text}</em>"
    return f"<strong>{text}</strong>" if cell.strong else text


def _right(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _text(text: str) -> str:
    return escape(" ".join(blanked(text).split()))


LINES = 15  # more would push what was before them off the screen
NOTHING = "Nothing was measured."


def of_results(found: Findings) -> list[str]:
    """Return a sentence for each row; where there are many, first one for all of them."""
    if found.is_versus:
        return [line for one in found.versus for line in comparisons.sentences(one)]
    rows = len(found.plain.rows)
    return [*([answer.overall(found)] if rows > 1 else []), *answer.sentences(found)]


def of_explanation(found: Sequence[StepBreakdown]) -> list[str]:
    """Return for each cell how long an epoch takes, and what would help."""
    return [_explained(one) for one in found]


def _explained(one: StepBreakdown) -> str:
    first, *others = explanation.sentences(one)
    advice = others[-max(1, len(one.advice)) :]  # the last ones: advice, or that there is none
    return blanked(" ".join([f"{one.row.label}, {column_name(one.column)}:", first, *advice]))


def of_comparison(found: Comparison) -> list[str]:
    """Return how many cells became faster or slower, and which became slower or fail now."""
    counts = Counter(one.verdict for one in found.changes)
    faster, slower = counts[Verdict.FASTER], counts[Verdict.SLOWER]
    shared = f"{count(len(found.changes), 'case')} measured on both sides"
    judged = len(found.changes) - found.unjudged.total()
    lines = [f"{shared}, {judged} judged: {slower} slower, {faster} faster, {judged - slower - faster} neither."]
    lines += [f"Not judged: {count(cells, 'case')}: {why}." for why, cells in found.unjudged.items()]
    slow = [one for one in found.changes if one.verdict is Verdict.SLOWER]
    lines += [f"{case_name(one.case)} takes {one.ratio.value:.2f} times as long as before." for one in slow]
    lines += [f"{case_name(cell)} fails now: {failure.cause}" for cell, failure in found.failed]
    return [blanked(line) for line in lines]


def text(lines: Sequence[str]) -> str:
    """Return what ``repr`` shows: the first lines, and how to see all."""
    if len(lines) <= LINES:
        return "\n".join(lines) or NOTHING
    return "\n".join([*lines[: LINES - 1], f"... and {len(lines) - LINES + 1} more: print() shows all."])


def notebook(page: Page, answers: Sequence[str] = ()) -> str:
    """Return a page as HTML: answers, where the page has none itself, what follows up to a table, the rest folded."""
    sections = [*([Section("Answer", lines=answers)] if answers else []), *page.sections]
    tables = [index for index, one in enumerate(sections) if one.table is not None]
    shown = tables[0] + 1 if tables else 1
    folded = [dataclasses.replace(one, folded=True) for one in sections[shown:]]
    return rendered(Page("", [*sections[:shown], *folded]))
