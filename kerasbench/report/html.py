"""The page of one or more machines as one HTML file that needs no network: the markdown page's content, and plots.

The markdown page is the source. What is converted are the constructs that it emits, and nothing else is markup.
"""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from kerasbench.analysis.findings import Findings
from kerasbench.report import curve, markdown, page, plot
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


# By the title of the markdown section that holds the same numbers.
PLOTS = {
    "Training step": Plot(
        plot.step_times, "Time of a training step of each scenario, a marker for each column: the numbers of the table."
    ),
    "Sweep": Plot(
        curve.step_over_size,
        "Time of a step over size, a line for each column, both axes logarithmic: as in the table.",
    ),
    "CPU against GPU": Plot(
        plot.speed_ups, "Time of a step on the CPU over that on the GPU, with a line at 1: the numbers of the table."
    ),
    "Where the time of a trial goes": Plot(
        plot.phases, "A bar for each column, made of its phases one after the other: the numbers of the table."
    ),
}

_CELL = re.compile(r"((?:\\.|[^\\|])*)\|")
_INLINE = re.compile(
    r"\\(?P<literal>[!-/:-@\[-`{-~])"
    r"|`(?P<code>[^`]+)`"
    r"|\*\*(?P<strong>(?:\\.|[^*\\])+)\*\*"
    r"|\*(?P<em>(?:\\.|[^*\\])+)\*"
)
_FIGURE = re.compile(r"(?:\*\*|≈ |over )?(?P<number>-?[0-9][0-9,]*(?:\.[0-9]+)?)(?=$|[ *–%])")
_WITHOUT = re.compile(rf"{markdown.NOTHING}|\*[a-z-]+\*")  # a cell that has no number: a dash, or a failure's code


def document(machines: Sequence[tuple[str, Findings]]) -> str:
    """Return the whole file: a part for each machine, under its title."""
    title = _text(f"kerasbench on {', '.join(name for name, _ in machines)}")
    several = len(machines) > 1
    parts = [_machine(f"m{number}", name, found, several) for number, (name, found) in enumerate(machines, start=1)]
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


def fragment(text: str) -> str:
    """Return a markdown page of kerasbench's as HTML to stand inside another page, such as a notebook."""
    lines: list[str] = []
    for number, (title, blocks) in enumerate(_sections(text)):
        lines += [f"<h3>{_inline(title)}</h3>"] if title else []
        lines += _blocks(blocks, f"section-{number}")
    return "\n".join(lines)


def _machine(anchor: str, name: str, found: Findings, several: bool) -> str:
    """Return one machine's part; where there are several, its title is a heading and its sections are one deeper."""
    level = 3 if several else 2
    head, *sections = _sections(page.document(found))
    titles = [_inline(title) for title, _ in sections]
    about = [block for block in head[1] if block != f"# kerasbench on {markdown.escape(name)}"]  # said above
    links = [f'<li><a href="#{anchor}-{number}">{title}</a></li>' for number, title in enumerate(titles, start=1)]
    lines = [
        *([f"<h2>{_text(name)}</h2>"] if several else []),
        *_blocks(about, f"{anchor}-0"),
        f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>',
    ]
    for number, (title, blocks) in enumerate(sections, start=1):
        section = f"{anchor}-{number}"
        lines.append(f'<h{level} id="{section}">{titles[number - 1]}</h{level}>')
        lines += _blocks(blocks, section)
        lines += _plots(title, found, section)
    return "\n".join(lines)


def _plots(title: str, found: Findings, section: str) -> Iterator[str]:
    if title not in PLOTS or not plot.is_available():
        return
    image = PLOTS[title].draw(found)
    if image is not None:
        source = base64.b64encode(image).decode()
        alternative = escape(PLOTS[title].alternative)
        picture = f'<img alt="{alternative}" src="data:image/svg+xml;base64,{source}">'
        yield f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{section}">{picture}</div>'


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """Return the titles and the blocks below them: first those of the page, then of each of its sections."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for block in filter(None, text.strip("\n").split("\n\n")):
        if block.startswith("## ") and "\n" not in block:
            sections.append((block.removeprefix("## "), []))
        else:
            sections[-1][1].append(block)
    return sections


def _blocks(blocks: Sequence[str], section: str) -> Iterator[str]:
    for block in blocks:
        lines = block.split("\n")
        if all(line.startswith("- ") for line in lines):
            yield "<ul>\n" + "\n".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "\n</ul>"
        elif len(lines) > 1 and all(line.startswith("|") for line in lines):
            yield _table([_cells(line) for line in (lines[0], *lines[2:])], section)
        elif block.startswith("# "):
            yield f'<p class="subject">{_inline(block[2:])}</p>'
        else:
            yield f"<p>{_inline(block)}</p>"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELL.findall(line[1:])] or [""]


def _table(rows: Sequence[Sequence[str]], section: str) -> str:
    """Return a table in a box that scrolls by itself; each first cell is the heading of its row."""
    headers, *body = rows
    numeric = [_is_numeric([row[index] for row in body if index < len(row)]) for index in range(len(headers))]
    lines = [
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{section}"><table>',
        f"<thead><tr>{''.join(map(_header, headers, numeric))}</tr></thead>",
        "<tbody>",
        *(_row(row, numeric) for row in body),
        "</tbody></table></div>",
    ]
    return "\n".join(lines)


def _header(text: str, numeric: bool) -> str:
    return f'<th scope="col"{_right(numeric)}>{_inline(text)}</th>'


def _row(cells: Sequence[str], numeric: Sequence[bool]) -> str:
    first, *others = cells
    columns = [*numeric[1:], *[False] * len(cells)]
    data = "".join(_cell(cell, is_one) for cell, is_one in zip(others, columns, strict=False))
    return f'<tr><th scope="row">{_inline(first)}</th>{data}</tr>'


def _cell(text: str, numeric: bool) -> str:
    value = sort_value(text)
    key = "" if value is None else f' data-value="{value!r}"'
    look = ' class="long"' if len(text) >= LONG_CELL and not numeric else _right(numeric)
    return f"<td{look}{key}>{_inline(text)}</td>"


def _right(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _is_numeric(cells: Sequence[str]) -> bool:
    values = [sort_value(cell) for cell in cells if not _WITHOUT.fullmatch(cell)]
    return bool(values) and None not in values


def sort_value(cell: str) -> float | None:
    """Return the number that a cell begins with: 12.3 of ``**12.3 ms ±1.8 %**``, 1230 of ``≈ 1,230``; None without."""
    found = _FIGURE.match(cell)
    return float(found["number"].replace(",", "")) if found else None


def _inline(text: str) -> str:
    """Return a line's markup as HTML; all else in it is text."""
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts += [_text(text[end : found.start()]), _marked(found)]
        end = found.end()
    return "".join([*parts, _text(text[end:])])


def _marked(found: re.Match[str]) -> str:
    kind, content = str(found.lastgroup), found[str(found.lastgroup)]
    if kind == "literal":
        return _text(content)
    return f"<{kind}>{_text(content) if kind == 'code' else _inline(content)}</{kind}>"


def _text(text: str) -> str:
    return escape(blanked(text))


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
