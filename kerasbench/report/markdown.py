"""Pages and tables in markdown, and text that cannot break one. ``list`` draws with it too."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from tabulate import tabulate

from kerasbench.text import MADE, one_line

if TYPE_CHECKING:  # ``list`` draws a table, and has no page
    from kerasbench.report.sections import Cell, Page, Section, Table

# Inside a word an underscore is none. A brace begins attributes on the site, and addresses become links on GitHub.
_MARKUP = re.compile(r"[\\`*\[\]<>|#~{]|&(?=#|\w+;)|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.", re.IGNORECASE)
# Of a list, of a line across the page, or of a box (!!!) on the site.
_BEGINNING = re.compile(r"^(?P<number>[0-9]*)(?P<sign>[-+.)](?= |-|$)|!(?=!!))")


def file(page: "Page", curves: str = "", data: str = "") -> str:
    """Return a page as a file has it, which says that kerasbench made it, and links to its data.

    ``curves``: the file of a sweep's chart.
    """
    source = f"\nEverything that was measured: [{escape(data)}]({quote(data)})\n" if data else ""
    return f"{rendered(page, curves)}{source}\n{MADE}\n"


def rendered(page: "Page", curves: str = "") -> str:
    """Return a page as markdown."""
    title = [f"# {escape(page.title)}"] if page.title else []
    return "\n\n".join([*title, *(section(one, curves=curves) for one in page.sections)]) + "\n"


def section(found: "Section", level: int = 2, curves: str = "") -> str:
    """Return one section below a heading of that level."""
    return "\n\n".join(_blocks(found, level, curves))


def _blocks(found: "Section", level: int, curves: str) -> Iterator[str]:
    from kerasbench.report.sections import LineChart

    yield f"{'#' * level} {escape(found.title)}"
    yield from map(escape, found.intro)
    if curves and isinstance(found.chart, LineChart):
        yield f"![{escape(found.chart.caption)}]({curves})"
    if found.table is not None:
        yield table(found.table)
    if found.lines:
        yield "\n".join(f"- {escape(line)}" for line in found.lines)
    if found.lines:  # or the two lists would be one
        yield from map(escape, found.notes)
    elif found.notes:
        yield "\n".join(f"- {escape(note)}" for note in found.notes)
    yield from (section(part, level + 1, curves) for part in found.parts)


def table(found: "Table") -> str:
    """Return a table."""
    return draw_table([escape(name) for name in found.columns], [[_cell(cell) for cell in row] for row in found.rows])


def _cell(cell: "Cell") -> str:
    text = escape(cell.shown)
    if cell.failed:
        return f"*{text}*"
    return f"**{text}**" if cell.strong else text


def draw_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are markdown already."""
    # disable_numparse: cells are text already; tabulate would reformat "1,230".
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


@lru_cache(4096)  # many cells have the same text
def escape(text: str) -> str:
    """Make text from a file or a child harmless in a markdown table: one line, no markup, no control characters."""
    return _BEGINNING.sub(r"\g<number>\\\g<sign>", _MARKUP.sub(r"\\\g<0>", one_line(text)))
