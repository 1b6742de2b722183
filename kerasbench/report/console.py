"""Pages on a terminal, as wide as it is."""

import io
from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kerasbench.report import chart_text
from kerasbench.report.sections import Cell, Page, Section, Table
from kerasbench.text import blanked

WIDTH = 100  # where the width of the terminal is not known


def rendered(page: Page, width: int = WIDTH, colour: bool = False) -> str:
    """Return a page as a terminal of that many columns shows it."""
    console = Console(file=io.StringIO(), width=width, force_terminal=colour, highlight=False)
    with console.capture() as shown:
        show(page, console)
    return shown.get()


def show(page: Page, console: Console) -> None:
    """Print a page."""
    if page.title:
        console.print(Text(blanked(page.title), style="bold"))
    for section in page.sections:
        for part in _section(section, has_blocks=not console.options.ascii_only):
            console.print(part)


def _section(section: Section, has_blocks: bool) -> Iterator[RenderableType]:
    """Yield what a section consists of; bars only where the terminal has the characters for them."""
    yield Text(f"\n{blanked(section.title)}", style="bold")
    yield from (Text(blanked(line)) for line in section.intro)
    if section.table is not None:
        yield _table(section.table)
    for line in section.lines:
        yield _bulleted(line)
    if has_blocks and section.chart is not None and (bars := chart_text.drawn(section.chart)) is not None:
        yield bars
    yield from (Text(blanked(note), style="dim") for note in section.notes)
    for part in section.parts:
        yield from _section(part, has_blocks)


def _bulleted(line: str) -> Padding:
    return Padding(Text(f"• {blanked(line)}"), (0, 0, 0, 1))


def _table(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for index, name in enumerate(table.columns):
        grid.add_column(Text(blanked(name)), justify="right" if table.is_numeric(index) else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(_cell(cell) for cell in row))
    return grid


def _cell(cell: Cell) -> Text:
    style = "bold green" if cell.strong else "italic" if cell.failed else ""
    return Text(blanked(cell.shown), style=style)
