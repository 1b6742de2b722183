"""The page of one or more machines as one HTML file that needs no network: every section, and plots.

All text is escaped; nothing in a file is markup.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from kerasbench.analysis.findings import Findings
from kerasbench.report import curve, page, plot
from kerasbench.report.comparison import side_by_side
from kerasbench.report.sections import Cell, Page, Section, Table
from kerasbench.text import blanked

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
INSTALL = "Plots need matplotlib: <code>pip install matplotlib</code>"

LONG_CELL = 40  # characters: only a cell with more breaks into lines, or a phone would show a word a line


class Plot(NamedTuple):
    """A plot of a section, and what it shows to those who cannot see it."""

    draw: Callable[[Findings], bytes | None]
    alternative: str


# By the name of a section's picture.
PLOTS = {
    "step_times": Plot(
        plot.step_times, "Time of a training step of each scenario, a marker for each column: the numbers of the table."
    ),
    "sweep": Plot(
        curve.step_over_size,
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
    missing = [] if plot.is_available() else [f"<p>{INSTALL}</p>"]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>",
            *missing,
            *parts,
            f"</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )


def rendered(found: Page) -> str:
    """Return a page as HTML to stand inside another page, such as a notebook."""
    title = [f"<h3>{_text(found.title)}</h3>"] if found.title else []
    parts = (_section(one, f"section-{number}", 4) for number, one in enumerate(found.sections, start=1))
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
    return f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>'


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
    body = [*_blocks(found, place, level), *([picture] if picture else [])]
    if found.folded:
        return "\n".join([f"<details>\n<summary>{heading}</summary>", *body, "</details>"])
    return "\n".join([heading, *body])


def _blocks(found: Section, place: str, level: int) -> Iterator[str]:
    yield from (f"<p>{_text(line)}</p>" for line in found.intro)
    if found.table is not None:
        yield _table(found.table, place)
    yield from (_list(lines) for lines in (found.lines, found.notes) if lines)
    for part in found.parts:
        yield f"<h{level + 1}>{_text(part.title)}</h{level + 1}>"
        yield from _blocks(part, place, level + 1)


def _list(lines: Sequence[str]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{_text(line)}</li>" for line in lines) + "\n</ul>"


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


# A plot is drawn in a grey that stands on white; on black it is lifted with all its colours.
STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --soft: #5b5b66; --paper: #fff; --line: #d5d5dc; --head: #f3f3f6;
  --link: #0b57d0 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8ec; --soft: #a9a9b4; --paper: #131316; --line: #3a3a42; --head: #212126; --link: #9cc2ff }
  img { filter: brightness(1.45) }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 90rem; margin: 0 auto; padding: 1rem }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere }
h2, h3 { margin: 2.5rem 0 .75rem }
p, ul { max-width: 60rem; overflow-wrap: anywhere }
ul { padding-left: 1.25rem }
.subject { font-weight: 600 }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none }
a { color: var(--link) }
code { font: .9em ui-monospace, monospace }
.scroll { overflow-x: auto; margin: 1rem 0 }
.scroll:focus-visible, button:focus-visible { outline: 2px solid var(--link); outline-offset: 1px }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
thead th { background: var(--head); vertical-align: bottom; white-space: nowrap }
tbody th { font-weight: 400; white-space: nowrap }
td { white-space: nowrap }
.long { min-width: 14rem; max-width: 28rem; white-space: normal; overflow-wrap: anywhere }
.number { text-align: right }
td em { color: var(--soft) }
summary { cursor: pointer }
summary h2, summary h3 { display: inline-block }
button { all: unset; cursor: pointer; font-weight: 600 }
button::after { content: " \\2195"; color: var(--soft); font-weight: 400 }
[aria-sort=ascending] button::after { content: " \\2191"; color: inherit }
[aria-sort=descending] button::after { content: " \\2193"; color: inherit }
img { display: block }
@media (min-width: 40rem) { tbody th, thead th:first-child { position: sticky; left: 0; background: var(--paper) }
  thead th:first-child { background: var(--head) } }
"""

# A click sorts upwards, the next downwards, the third restores the order of the page. Cells without a number are last.
SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const compare = (a, b) => {
    if (a.dataset.value === undefined || b.dataset.value === undefined)
      return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
    return a.dataset.value - b.dataset.value;
  };
  const sort = (head, index) => {
    const next = { none: "ascending", ascending: "descending", descending: "none" };
    const order = next[head.getAttribute("aria-sort")];
    for (const other of heads) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const rows = [...original];
    const isLast = (row) => head.className === "number" && row.cells[index].dataset.value === undefined;
    if (order !== "none")
      rows.sort((a, b) => isLast(a) - isLast(b)
        || (order === "ascending" ? 1 : -1) * compare(a.cells[index], b.cells[index]));
    body.append(...rows);
  };
  heads.forEach((head, index) => {
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head, index));
    head.append(button);
    head.setAttribute("aria-sort", "none");
  });
}
"""
