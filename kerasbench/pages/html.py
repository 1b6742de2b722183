"""HTML that needs no network and escapes all text: a file of one or more machines, and what a notebook shows."""

import json
import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.table import MEASURED, observations
from kerasbench.modes import registry
from kerasbench.pages import page
from kerasbench.pages.several import side_by_side
from kerasbench.report import svg
from kerasbench.report.kinds import KINDS
from kerasbench.report.sections import EMPTY, Cell, Page, Section, Strong, Table, Typed, Words, inlines, number
from kerasbench.report.svg import asset, escaped
from kerasbench.report.words import MANUAL, multiple, names, spelled, three_digits
from kerasbench.text import blanked, label

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)

READING = Typed(f"{MANUAL.text} reading-results")
NUMBER = ' class="number"'
INTERVAL = re.compile(r"\([0-9.,]+–[0-9.,]+\)")  # which stays in one line where its cell breaks
LONG_CELL = 40  # characters: only a cell with more breaks into lines, or a phone would show a word a line
LINES = 15  # of ``repr``: more would push what was before them off the screen
NOTHING = "Nothing was measured."
TINTS = (1.03, 1.5, 3.0, 8.0)  # times the fastest: from each on a cell is darker
SHADES = (
    '<p class="notes">Shade: how many times as long as the fastest of its row: '
    + ", ".join(f'<span class="shade tint{tint}">from {multiple(least)}</span>' for tint, least in enumerate(TINTS, 1))
    + ".</p>"
)
MADE_BY: tuple[Words, ...] = (
    [
        "Made by ",
        Strong("kerasbench"),
        ", which measures a Keras 3 model on JAX, TensorFlow and PyTorch, side by side on one machine.",
    ],
    ["Where it is installed, ", MANUAL, " lists its manual, and ", READING, " shows how to read this page."],
)


def document(machines: Sequence[tuple[str, Summary]]) -> str:
    several = len(machines) > 1
    chips = ", ".join(name for name, _ in machines)
    title = escaped(f"kerasbench on {chips}" if several else registry.title(machines[0][1]))
    parts = [_machine(f"m{place}", *machine, several) for place, machine in enumerate(machines, start=1)]
    if several:
        together = side_by_side([(name, summary) for name, summary in machines])
        parts = [_navigation([("m0-1", together)]), _section(together, "m0-1", 2), *parts]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}{'' if several else ' – kerasbench'}</title>",
            f"<style>{asset('page.css')}{asset('chart.css')}</style>\n</head>\n<body>\n<main>",
            f'<header><p class="notes">kerasbench</p><h1>{title}</h1></header>',
            _controls(machines),
            *parts,
            f"<footer>{''.join(f'<p>{_words(words)}</p>' for words in MADE_BY)}</footer>",
            f"</main>\n<script>{asset('page.js')}</script>\n</body>\n</html>\n",
        ]
    )


def _controls(machines: Sequence[tuple[str, Summary]]) -> str:
    """Return what filters the page; hidden until the script runs, without which it would do nothing."""
    boxes, rows = "", [row for _, summary in machines for row in summary.rows]
    kinds = {row.name: KINDS.get(row.scenario.kind, KINDS["other"]) for row in rows}
    offered = "".join(f'<option value="{escaped(kind)}"></option>' for kind in dict.fromkeys(kinds.values()))
    for backend in sorted({column.backend for _, summary in machines for column in summary.columns}):
        name = escaped(spelled(backend))
        boxes += f'<label><input type="checkbox" name="backend" value="{escaped(backend)}" '
        boxes += f'data-name="{name}" checked> {name}</label>'
    return "\n".join(
        [
            f'<form class="controls" aria-label="What is shown" data-kinds="{escaped(json.dumps(kinds))}" hidden>',
            '<label>Workload <input type="search" name="scenario" list="kinds" placeholder="name or kind"></label>',
            f'<datalist id="kinds">{offered}</datalist>',
            f'<div role="group" aria-label="Backends">{boxes}</div>',
            '<button type="button" name="details">Open all details</button>',
            '<button type="button" name="theme">Dark colours</button>',
            '<output name="told" aria-live="polite"></output>',
            "</form>",
        ]
    )


def _machine(anchor: str, name: str, summary: Summary, several: bool) -> str:
    """Return one machine's part; where there are several, its title is a heading and its sections are one deeper."""
    level = 3 if several else 2
    whole = page.whole(summary)
    parts = [*whole.sections, *filter(None, [all_numbers(summary)])]
    sections = [(f"{anchor}-{place}", part) for place, part in enumerate(parts, start=1)]
    heading = [f"<h2>{escaped(name)}</h2>", f"<p><strong>{escaped(whole.title)}</strong></p>"] if several else []
    return "\n".join([*heading, _navigation(sections), *(_section(part, place, level) for place, part in sections)])


def all_numbers(summary: Summary) -> Section | None:
    rows, called = [], {}
    for column, name in names(summary.columns).items():
        options = column.with_options(environment=None).options.label
        called[column.backend, column.device, options, column.options.environment] = name
    for line in observations([summary]):
        key = (line.backend, line.device, line.options, line.environment)
        if line.status != MEASURED or line.value is None or key not in called:
            continue  # the control of a configuration repeats it
        values = (line.value, line.low, line.high)
        cells = [EMPTY if value is None else Cell(three_digits(value), value) for value in values]
        over = EMPTY if line.ratio is None else Cell(multiple(line.ratio), line.ratio, ratio=line.ratio)
        metric = BY_NAME[line.metric].title + (f" ({line.unit})" if line.unit else "")
        sizes = [f"{axis}={at:g}" for axis, at in (("batch", line.batch), ("width", line.width)) if at is not None]
        workload = " ".join([label(line.scenario, line.workload), *sizes])
        rows.append([*map(Cell, [workload, called[key], metric]), *cells, over, number(line.trials)])
    headers = ["workload", "configuration", "metric", "value", "low", "high", "relative to the fastest", "trials"]
    return Section(f"All {len(rows):,} numbers", table=Table(headers, rows), folded=True) if rows else None


def _navigation(sections: Sequence[tuple[str, Section]]) -> str:
    links = [f'<li><a href="#{place}">{escaped(part.title)}</a></li>' for place, part in sections if part.title]
    return f'<nav aria-label="Sections"><details><summary>Contents</summary><ul>{"".join(links)}</ul></details></nav>'


def _section(part: Section, place: str, level: int, as_image: bool = False) -> str:
    body = list(_body(part, place, as_image))
    if not part.title:
        return "\n".join([f'<div id="{place}">', *body, "</div>"])
    heading = f'<h{level} id="{place}">{escaped(part.title)}</h{level}>'
    if part.folded:
        return "\n".join([f"<details>\n<summary>{heading}</summary>", *body, "</details>"])
    return "\n".join([heading, *body])


def _body(part: Section, place: str, as_image: bool) -> Iterator[str]:
    yield from (f"<p>{_words(line)}</p>" for line in part.intro)
    if part.code:
        yield "<pre>" + "\n".join(escaped(line) for line in part.code) + "</pre>"
    if part.chart is not None and as_image:
        # A data URI, because a notebook's page loads nothing.
        address = f"data:image/svg+xml,{quote(svg.file(part.chart))}"
        yield f'<img src="{address}" alt="{escaped(part.chart.title)}">'
    elif part.chart is not None:
        yield svg.figure(part.chart)
    if part.table is not None:
        # A box that scrolls by itself, also by the keyboard.
        box = f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{place}">'
        yield f"{box}{_table(part.table)}</div>"
        if any(_tint(cell) for row in part.table.rows for cell in row):
            yield SHADES
    yield from (f'<p class="notes">{_words(note)}</p>' for note in part.notes)
    if part.lines:
        lines = "\n".join(f"<li>{_words(line)}</li>" for line in part.lines)
        yield f'<ul class="lines">\n{lines}\n</ul>'
    if part.end:
        yield f"<p>{_words(part.end)}</p>"


def _words(words: Words) -> str:
    html = ""
    for part in inlines(words):
        match part:
            case Typed(text):
                html += f"<code>{escaped(text)}</code>"
            case Strong(text):
                html += f"<strong>{escaped(text)}</strong>"
            case str():
                html += " " * part[:1].isspace() + escaped(part) + " " * part[-1:].isspace()
    return html


def _tint(cell: Cell) -> int:
    return 0 if cell.ratio is None else sum(cell.ratio >= least for least in TINTS)


def _table(table: Table) -> str:
    numeric = [table.is_numeric(index) for index in range(len(table.columns))]
    by_ratio = [any(row[index].ratio is not None for row in table.rows) for index in range(len(table.columns))]
    heads = ""
    for name, is_number in zip(table.columns, numeric, strict=True):
        heads += f'<th scope="col"{NUMBER if is_number else ""}>{escaped(name)}</th>'
    rows = [_row(cells, numeric, by_ratio) for cells in table.rows]
    return "\n".join(["<table>", f"<thead><tr>{heads}</tr></thead>", "<tbody>", *rows, "</tbody></table>"])


def _row(cells: Sequence[Cell], numeric: Sequence[bool], by_ratio: Sequence[bool]) -> str:
    """Return a row, whose first cell is its heading. The script sorts by ``data-value``: the ratio, where one is shown.

    ``data-first``: of the cell that the ratios of its row are relative to, what it shows.
    """
    row, compared = "", sum(cell.ratio is not None for cell in cells) > 1
    for index, (cell, is_number) in enumerate(zip(cells, numeric, strict=True)):
        tag = "em" if cell.failed else "strong" if cell.strong else ""
        text = INTERVAL.sub(r"<span>\g<0></span>", escaped(cell.text)) if is_number else escaped(cell.text)
        text = cell.marked(f"<{tag}>{text}</{tag}>" if tag else text)
        value = cell.ratio if by_ratio[index] else cell.value
        key = "" if value is None else f' data-value="{float(value)!r}"'
        key += f' data-first="{escaped(cell.text)}"' if compared and cell.ratio == 1 else ""
        tint = _tint(cell)
        is_long = len(cell.text) >= LONG_CELL and not is_number
        classes = ["number"] * is_number + [f"tint{tint}"] * (tint > 0) + ["long"] * is_long
        looks = f' class="{" ".join(classes)}"' if classes else ""
        row += f"<td{looks}{key}>{text}</td>" if index else f'<th scope="row"{key}>{text}</th>'
    return f"<tr>{row}</tr>"


def text(lines: Sequence[str]) -> str:
    shown = [blanked(line) for line in lines]
    if len(lines) <= LINES:
        return "\n".join(shown) or NOTHING
    return "\n".join([*shown[: LINES - 1], f"... and {len(lines) - LINES + 1} more: print() shows all."])


def notebook(drawn: Page) -> str:
    parts = [f"<h3>{escaped(drawn.title)}</h3>"] if drawn.title else []
    for place, part in enumerate(drawn.sections, start=1):
        shown = part._replace(folded=part.folded or place > 1)
        parts.append(_section(shown, f"section-{place}", 4, as_image=True))
    return "\n".join(parts)
