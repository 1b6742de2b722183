"""HTML: one file with the page of one or more machines, and what a notebook shows of results.

The file needs no network: ``assets`` has its style sheet and its script, which sorts, filters, and changes between
light and dark. All text is escaped; nothing in a result file is taken for markup.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.versus import RunComparison
from kerasbench.report import answer, comparisons, explanation, page, svg
from kerasbench.report.comparisons import side_by_side
from kerasbench.report.figures import SPELLED, case_name
from kerasbench.report.sections import Cell, Page, Section, Table
from kerasbench.report.svg import asset, escaped
from kerasbench.text import blanked, count

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)

NUMBER = ' class="number"'
LONG_CELL = 40  # characters: only a cell with more breaks into lines, or a phone would show a word a line
LINES = 15  # of ``repr``: more would push what was before them off the screen
NOTHING = "Nothing was measured."


def document(machines: Sequence[tuple[str, Findings]]) -> str:
    """Return the whole file: a part for each machine, under its title."""
    title = escaped(f"kerasbench on {', '.join(name for name, _ in machines)}")
    several = len(machines) > 1
    parts = [_machine(f"m{number}", name, found, several) for number, (name, found) in enumerate(machines, start=1)]
    if several:
        together = side_by_side([(name, found.summary) for name, found in machines])
        parts = [_navigation([("m0-1", together)]), _section(together, "m0-1", 2), *parts]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title>\n<style>{asset('page.css')}{asset('chart.css')}</style>\n</head>\n<body>\n<main>",
            f"<header><h1>{title}</h1></header>",
            _controls(machines),
            *parts,
            f"</main>\n<script>{asset('page.js')}</script>\n</body>\n</html>\n",
        ]
    )


def _controls(machines: Sequence[tuple[str, Findings]]) -> str:
    """Return what filters the page; hidden until the script runs, without which it would do nothing."""
    backends = sorted({column.backend for _, found in machines for column in found.summary.columns})
    boxes = (
        f'<label><input type="checkbox" name="backend" value="{escaped(backend)}" checked> '
        f"{escaped(SPELLED.get(backend, backend))}</label>"
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


def _machine(anchor: str, name: str, found: Findings, several: bool) -> str:
    """Return one machine's part; where there are several, its title is a heading and its sections are one deeper."""
    level = 3 if several else 2
    sections = [(f"{anchor}-{number}", one) for number, one in enumerate(page.whole(found).sections, start=1)]
    return "\n".join(
        [
            *([f"<h2>{escaped(name)}</h2>"] if several else []),
            _navigation(sections),
            *(_section(one, place, level) for place, one in sections),
        ]
    )


def _navigation(sections: Sequence[tuple[str, Section]]) -> str:
    links = [f'<li><a href="#{place}">{escaped(one.title)}</a></li>' for place, one in sections]
    return f'<nav aria-label="Sections"><details><summary>Contents</summary><ul>{"".join(links)}</ul></details></nav>'


def _section(found: Section, place: str, level: int, anchored: bool = True) -> str:
    """Return a section below its heading; a folded one opens by a click. ``place``: the anchor of the outermost."""
    anchor = f' id="{place}"' if anchored else ""
    heading = f"<h{level}{anchor}>{escaped(found.title)}</h{level}>"
    body = _body(found, place, level)
    if found.folded:
        return "\n".join([f"<details>\n<summary>{heading}</summary>", *body, "</details>"])
    return "\n".join([heading, *body])


def _body(found: Section, place: str, level: int) -> Iterator[str]:
    chart = [] if found.chart is None else [_scrolling(svg.figure(found.chart), place)]
    yield from (f"<p>{escaped(line)}</p>" for line in found.intro)
    if found.table is not None:
        yield from chart
        yield _scrolling(_table(found.table), place)
    if found.lines:
        yield _list(found.lines, "lines")
    if found.table is None:
        yield from chart
    if found.notes:
        yield _list(found.notes, "notes")
    yield from (_section(part, place, level + 1, anchored=False) for part in found.parts)


def _scrolling(content: str, place: str) -> str:
    """Return content in a box that scrolls by itself, also by the keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{place}">{content}</div>'


def _list(lines: Sequence[str], look: str) -> str:
    return f'<ul class="{look}">\n' + "\n".join(f"<li>{escaped(line)}</li>" for line in lines) + "\n</ul>"


def _table(found: Table) -> str:
    numeric = [found.is_numeric(index) for index in range(len(found.columns))]
    heads = [
        f'<th scope="col"{NUMBER if is_number else ""}>{escaped(name)}</th>'
        for name, is_number in zip(found.columns, numeric, strict=True)
    ]
    rows = [_row(cells, numeric) for cells in found.rows]
    return "\n".join(["<table>", f"<thead><tr>{''.join(heads)}</tr></thead>", "<tbody>", *rows, "</tbody></table>"])


def _row(cells: Sequence[Cell], numeric: Sequence[bool]) -> str:
    """Return a row, whose first cell is its heading. The script sorts by ``data-value``."""
    row = ""
    for index, (cell, is_number) in enumerate(zip(cells, numeric, strict=True)):
        text = escaped(cell.shown)
        if cell.failed:
            text = f"<em>{text}</em>"
        elif cell.strong:
            text = f"<strong>{text}</strong>"
        key = "" if cell.value is None else f' data-value="{float(cell.value)!r}"'
        look = NUMBER if is_number else ' class="long"' if len(cell.text) >= LONG_CELL else ""
        row += f"<td{look}{key}>{text}</td>" if index else f'<th scope="row"{key}>{text}</th>'
    return f"<tr>{row}</tr>"


def of_results(found: Findings) -> list[str]:
    """Return a sentence for each row; where there are many, first one for all of them."""
    if found.is_versus:
        return [line for one in found.versus for line in comparisons.sentences(one)]
    are_many = len(found.plain.rows) > 1 and not found.races and not found.soaks
    return [*([answer.overall(found)] if are_many else []), *answer.sentences(found)]


def of_explanation(found: Sequence[StepBreakdown]) -> list[str]:
    """Return for each case how long an epoch takes, and what would help."""
    lines = []
    for one in found:
        first, *others = explanation.sentences(one)
        advice = others[-max(1, len(one.advice)) :]  # the last ones: advice, or that there is none
        lines.append(" ".join([f"{one.row.label}, {one.column.label}:", first, *advice]))
    return lines


def of_comparison(found: RunComparison) -> list[str]:
    """Return how many cases became faster or slower, and which became slower or fail now."""
    counts = Counter(one.verdict for one in found.changes)
    faster, slower = counts[Verdict.FASTER], counts[Verdict.SLOWER]
    shared = f"{count(len(found.changes), 'case')} measured on both sides"
    judged = len(found.changes) - found.unjudged.total()
    lines = [f"{shared}, {judged} judged: {slower} slower, {faster} faster, {judged - slower - faster} neither."]
    lines += [f"Not judged: {count(number, 'case')}: {why}." for why, number in found.unjudged.items()]
    slow = [one for one in found.changes if one.verdict is Verdict.SLOWER]
    lines += [f"{case_name(one.case)} takes {one.ratio.value:.2f} times as long as before." for one in slow]
    return [*lines, *(f"{case_name(case)} fails now: {failure.cause}" for case, failure in found.failed)]


def text(lines: Sequence[str]) -> str:
    """Return what ``repr`` shows: the first lines, and how to see all."""
    shown = [blanked(line) for line in lines]
    if len(lines) <= LINES:
        return "\n".join(shown) or NOTHING
    return "\n".join([*shown[: LINES - 1], f"... and {len(lines) - LINES + 1} more: print() shows all."])


def notebook(page: Page, answers: Sequence[str] = ()) -> str:
    """Return a page as HTML: answers, where the page has none itself, what follows up to a table, the rest folded."""
    sections = [*([Section("Answer", lines=answers)] if answers else []), *page.sections]
    shown = next((number for number, one in enumerate(sections, start=1) if one.table is not None), 1)
    parts = []
    for number, one in enumerate(sections, start=1):
        plain = dataclasses.replace(one, chart=None, folded=one.folded or number > shown)  # charts need a style sheet
        parts.append(_section(plain, f"section-{number}", 4))
    return "\n".join(parts)
