"""A page on stdout: for a terminal with its bars, as wide as it is; as markdown where it is piped."""

import sys
from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kerasbench.report import markdown
from kerasbench.report.sections import Bar, BarChart, BarGroup, Page, Section, Table
from kerasbench.text import blanked

BAR_WIDTH = 40  # characters of the longest bar: names and numbers fit beside it into 100 columns
LABEL = 22  # characters of a row's name
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
        for part in _section(section, has_bars=not console.options.ascii_only):
            console.print(part)


def _section(section: Section, has_bars: bool) -> Iterator[RenderableType]:
    yield Text(f"\n{blanked(section.title)}", style="bold")
    yield from (Text(blanked(line)) for line in section.intro)
    if section.table is not None:
        yield _table(section.table)
    yield from (Padding(Text(f"• {blanked(line)}"), (0, 0, 0, 1)) for line in section.lines)
    if has_bars and isinstance(section.chart, BarChart):
        yield from _chart(section.chart)
    yield from (Text(blanked(note), style="dim") for note in section.notes)
    for part in section.parts:
        yield from _section(part, has_bars)


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


def _chart(chart: BarChart) -> Iterator[RenderableType]:
    """Yield a caption, a legend, and the bars of a chart; nothing where these are more than a screen takes."""
    if sum(len(group.bars) for group in chart.groups) > MOST_BARS:
        return
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
            line = _pieces(chart, group, bar) if chart.legend else _bar(chart, group, bar)
            grid.add_row(Text(label), Text(blanked(bar.name)), line, text)
    yield grid


def _bar(chart: BarChart, group: BarGroup, bar: Bar) -> Text:
    if not bar.pieces:
        return Text()
    end, colour = chart.share(bar.size, group) * BAR_WIDTH, bar.pieces[0].colour
    if bar.low is None or bar.high is None:
        line = FULL * int(end) + EIGHTHS[int(end % 1 * 8)].strip()
    else:
        low, high = (round(chart.share(edge, group) * BAR_WIDTH) for edge in (bar.low, bar.high))
        tip = max(low, round(end))
        line = FULL * low + UNSURE * (tip - low) + BEYOND * (high - tip)
    return Text(line or EIGHTHS[1], style=colour)


def _pieces(chart: BarChart, group: BarGroup, bar: Bar) -> Text:
    shades = {name: shade for (name, _), shade in zip(chart.legend, SHADES, strict=False)}
    line, before = Text(), 0.0
    for piece in bar.pieces:
        begin, end = (round(chart.share(edge, group) * BAR_WIDTH) for edge in (before, before + piece.size))
        line.append(shades[piece.name] * (end - begin), style=piece.colour)
        before += piece.size
    return line
