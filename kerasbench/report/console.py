"""A page on stdout: for a terminal with its bars, as wide as it is; as markdown where it is piped."""

import sys
from collections.abc import Iterator

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kerasbench.report import markdown
from kerasbench.report.sections import Bar, BarChart, BarGroup, Page, Section, Table
from kerasbench.text import blanked

LEAST_BAR, MOST_BAR = 10, 40  # characters of the longest bar
LABEL = 22  # characters of a row's name
GAPS = 3  # between the row, the column, the bar and its figures
FULL, EIGHTHS = "█", " ▏▎▍▌▋▊▉"
UNSURE, BEYOND = "▓", "░"  # of the interval: up to the bar's end, and beyond it
SHADES = "█▓▒░▞"  # of pieces, so that they differ without colours too
MOST_BARS = 18  # more would push the answer off the screen


def print_page(page: Page) -> None:
    """Print a page."""
    if sys.stdout.isatty():
        show(page, Console(highlight=False))
    else:
        print(markdown.rendered(page))


def show(page: Page, console: Console) -> None:
    """Print a page on a terminal."""
    if page.title:
        console.print(Text(blanked(page.title), style="bold"))
    for section in page.sections:
        for part in _section(section, 0 if console.options.ascii_only else console.width):
            console.print(part)


def _section(section: Section, width: int) -> Iterator[RenderableType]:
    """Yield what a section shows; with bars, if the terminal has the characters for them (else ``width`` is 0)."""
    yield Text(f"\n{blanked(section.title)}", style="bold")
    yield from (Text(blanked(line)) for line in section.intro)
    if section.table is not None:
        yield _table(section.table)
    yield from (Padding(Text(f"• {blanked(line)}"), (0, 0, 0, 1)) for line in section.lines)
    if width and isinstance(section.chart, BarChart):
        yield from _chart(section.chart, width)
    yield from (Text(blanked(note), style="dim") for note in section.notes)
    for part in section.parts:
        yield from _section(part, width)


def _table(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for index, name in enumerate(table.columns):
        grid.add_column(Text(blanked(name)), justify="right" if table.is_numeric(index) else "left", overflow="fold")
    for row in table.rows:
        cells = []
        for cell in row:
            style = "bold green" if cell.strong else "italic" if cell.failed else ""
            cells.append(Text(blanked(cell.shown), style=style))
        grid.add_row(*cells)
    return grid


def _chart(chart: BarChart, width: int) -> Iterator[RenderableType]:
    """Yield a caption, a legend, and the bars of a chart; nothing where these are more than a screen takes."""
    bars = [bar for group in chart.groups for bar in group.bars]
    if len(bars) > MOST_BARS:
        return
    texts = [[group.label for group in chart.groups], [bar.name for bar in bars], [bar.text for bar in bars]]
    rows, names, figures = (max(map(cell_len, column), default=0) for column in texts)
    taken = min(LABEL, rows) + min(LABEL, names) + figures + GAPS
    length = max(LEAST_BAR, min(MOST_BAR, width - taken))  # of the longest bar
    yield Text()
    yield Text(blanked(chart.caption_with(f"{UNSURE}{BEYOND}")), style="dim")
    if chart.legend:
        legend = Text()
        for (name, colour), shade in zip(chart.legend, SHADES, strict=False):
            legend.append(shade * 2, style=colour)
            legend.append(f" {name}   ")
        yield legend
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(max_width=LABEL, overflow="ellipsis", no_wrap=True)
    grid.add_column(max_width=LABEL, overflow="ellipsis", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for group in chart.groups:
        for index, bar in enumerate(group.bars):
            label = blanked(group.label) if index == 0 else ""
            text = Text(blanked(bar.text), style="bold" if bar.strong else "")
            line = (_pieces if chart.legend else _bar)(chart, group, bar, length)
            grid.add_row(Text(label), Text(blanked(bar.name)), line, text)
    yield grid


def _bar(chart: BarChart, group: BarGroup, bar: Bar, length: int) -> Text:
    if not bar.pieces:
        return Text()
    end, colour = chart.share(bar.size, group) * length, bar.pieces[0].colour
    if bar.low is None or bar.high is None:
        line = FULL * int(end) + EIGHTHS[int(end % 1 * 8)].strip()
    else:
        low, high = (round(chart.share(edge, group) * length) for edge in (bar.low, bar.high))
        tip = max(low, round(end))
        line = FULL * low + UNSURE * (tip - low) + BEYOND * (high - tip)
    return Text(line or EIGHTHS[1], style=colour)


def _pieces(chart: BarChart, group: BarGroup, bar: Bar, length: int) -> Text:
    shades = {name: shade for (name, _), shade in zip(chart.legend, SHADES, strict=False)}
    line, before = Text(), 0.0
    for piece in bar.pieces:
        begin, end = (round(chart.share(edge, group) * length) for edge in (before, before + piece.size))
        line.append(shades[piece.name] * (end - begin), style=piece.colour)
        before += piece.size
    return line
