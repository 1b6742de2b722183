"""Bars on a terminal.

Pages on a terminal, as wide as it is.

A page on stdout: drawn for a terminal where it is one, markdown where it is piped.
"""

import io
import sys
from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kerasbench.report import markdown
from kerasbench.report.sections import Bar, BarChart, Cell, Page, Section, Table
from kerasbench.report.sections import Group as Bars
from kerasbench.text import blanked

BAR_WIDTH = 40  # characters of the longest bar: names and numbers fit beside it into 100 columns
LABEL = 22  # characters of a row's name
FULL, EIGHTHS = "█", " ▏▎▍▌▋▊▉"
UNSURE, BEYOND = "▓", "░"  # of the interval: up to the bar's end, and beyond it
SHADES = "█▓▒░▞"  # of pieces, so that they differ without colours too
MOST_BARS = 18  # more would push the answer off the screen


def draw_chart(chart: BarChart) -> RenderableType | None:
    """Return the bars of a chart; None where they are more than a screen takes."""
    if sum(len(group.bars) for group in chart.groups) > MOST_BARS:
        return None
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(max_width=LABEL, overflow="ellipsis", no_wrap=True)
    grid.add_column(max_width=LABEL, overflow="ellipsis", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for group in chart.groups:
        for index, bar in enumerate(group.bars):
            label = blanked(group.label) if index == 0 else ""
            text = Text(blanked(bar.text), style="bold" if bar.strong else "")
            grid.add_row(Text(label), Text(blanked(bar.name)), _line(chart, group, bar), text)
    return Group(Text(), *_legend(chart), grid)


def _legend(chart: BarChart) -> list[Text]:
    caption = blanked(chart.caption_with(f"{UNSURE}{BEYOND}"))
    if not chart.legend:
        return [Text(caption, style="dim")]
    keys = [part for index, (name, colour) in enumerate(chart.legend) for part in _key(index, name, colour)]
    return [Text(caption, style="dim"), Text.assemble(*keys)]


def _key(index: int, name: str, colour: str) -> list[tuple[str, str]]:
    return [(SHADES[index % len(SHADES)] * 2, colour), (f" {name}   ", "")]


def _line(chart: BarChart, group: Bars, bar: Bar) -> Text:
    if not bar.pieces:
        return Text()
    if chart.legend:
        return _pieces(chart, group, bar)
    end, colour = chart.share(bar.size, group) * BAR_WIDTH, bar.pieces[0].colour
    if bar.low is None or bar.high is None:
        return Text(FULL * int(end) + EIGHTHS[int(end % 1 * 8)].strip() or EIGHTHS[1], style=colour)
    low, high = (round(chart.share(edge, group) * BAR_WIDTH) for edge in (bar.low, bar.high))
    tip = max(low, round(end))
    return Text(FULL * low + UNSURE * (tip - low) + BEYOND * (high - tip) or EIGHTHS[1], style=colour)


def _pieces(chart: BarChart, group: Bars, bar: Bar) -> Text:
    shades = {name: SHADES[index % len(SHADES)] for index, (name, _) in enumerate(chart.legend)}
    line, before = Text(), 0.0
    for piece in bar.pieces:
        begin, end = (round(chart.share(edge, group) * BAR_WIDTH) for edge in (before, before + piece.size))
        line.append(shades[piece.name] * (end - begin), style=piece.colour)
        before += piece.size
    return line


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
        for part in _section(section, has_bars=not console.options.ascii_only):
            console.print(part)


def _section(section: Section, has_bars: bool) -> Iterator[RenderableType]:
    """Yield what a section consists of; bars only where the terminal has the characters for them."""
    yield Text(f"\n{blanked(section.title)}", style="bold")
    yield from (Text(blanked(line)) for line in section.intro)
    if section.table is not None:
        yield _table(section.table)
    for line in section.lines:
        yield _bulleted(line)
    if has_bars and isinstance(section.chart, BarChart) and (bars := draw_chart(section.chart)) is not None:
        yield bars
    yield from (Text(blanked(note), style="dim") for note in section.notes)
    for part in section.parts:
        yield from _section(part, has_bars)


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


def print_page(page: Page) -> None:
    """Print a page."""
    if sys.stdout.isatty():
        show(page, Console(highlight=False))
    else:
        print(markdown.rendered(page))
