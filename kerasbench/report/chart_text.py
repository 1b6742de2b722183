"""Bars on a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kerasbench.report.chart import Bar, Chart
from kerasbench.report.chart import Group as Bars
from kerasbench.text import blanked

WIDTH = 40  # characters of the longest bar: names and numbers fit beside it into 100 columns
LABEL = 22  # characters of a row's name
FULL, EIGHTHS = "█", " ▏▎▍▌▋▊▉"
UNSURE, BEYOND = "▓", "░"  # of the interval: up to the bar's end, and beyond it
SHADES = "█▓▒░▞"  # of pieces, so that they differ without colours too
MOST_BARS = 18  # more would push the answer off the screen


def drawn(chart: Chart) -> RenderableType | None:
    """Return the bars of a chart; None where they are more than a screen takes."""
    if sum(len(group.bars) for group in chart.groups) > MOST_BARS:
        return None
    grid = Table.grid(padding=(0, 1, 0, 0))
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


def _legend(chart: Chart) -> list[Text]:
    caption = blanked(chart.told(f"{UNSURE}{BEYOND}"))
    if not chart.legend:
        return [Text(caption, style="dim")]
    keys = [part for index, (name, colour) in enumerate(chart.legend) for part in _key(index, name, colour)]
    return [Text(caption, style="dim"), Text.assemble(*keys)]


def _key(index: int, name: str, colour: str) -> list[tuple[str, str]]:
    return [(SHADES[index % len(SHADES)] * 2, colour), (f" {name}   ", "")]


def _line(chart: Chart, group: Bars, bar: Bar) -> Text:
    if not bar.pieces:
        return Text()
    if chart.legend:
        return _pieces(chart, group, bar)
    end, colour = chart.share(bar.size, group) * WIDTH, bar.pieces[0].colour
    if bar.low is None or bar.high is None:
        return Text(FULL * int(end) + EIGHTHS[int(end % 1 * 8)].strip() or EIGHTHS[1], style=colour)
    low, high = (round(chart.share(edge, group) * WIDTH) for edge in (bar.low, bar.high))
    tip = max(low, round(end))
    return Text(FULL * low + UNSURE * (tip - low) + BEYOND * (high - tip) or EIGHTHS[1], style=colour)


def _pieces(chart: Chart, group: Bars, bar: Bar) -> Text:
    shades = {name: SHADES[index % len(SHADES)] for index, (name, _) in enumerate(chart.legend)}
    line, before = Text(), 0.0
    for piece in bar.pieces:
        begin, end = (round(chart.share(edge, group) * WIDTH) for edge in (before, before + piece.size))
        line.append(shades[piece.name] * (end - begin), style=piece.colour)
        before += piece.size
    return line
