"""Charts as SVG: in the HTML page, and as files beside the pages of results and in README.

A chart consists of parts, one below the other: a legend, a group of bars, their axis, or a panel of lines. The style is
that of ``assets/chart.css``: the HTML page has it with its own colours, and a file with those for light and for dark.
"""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from kerasbench.report.sections import (
    Bar,
    BarChart,
    BarGroup,
    Chart,
    Line,
    LineChart,
    Panel,
    even_numbers,
    round_numbers,
)
from kerasbench.text import MADE, one_line

# Lengths are in pixels, as large as text is at its normal size.
WIDTH = 760
MARGIN = 16  # of a file
ROW = 20  # height of a line of text, and of a bar with the room around it
BASELINE = 14  # of a text below the top of its row
GAP = 10  # between parts, and between a text and what it belongs to
CHARACTER = 6.8  # average width: no font is known here
STRONG = 1.15  # how many times as wide bold text is
MOST_CHARACTERS = 34  # of a name or a number beside a bar; a longer one is cut
CAP = 4  # half the height of an interval's ends
PANEL_HEIGHT = 280  # of the area within the axes

# Of a file, in light and in dark; a page's style sheet has its own.
COLOURS = {
    "ink": ("#1b1b1f", "#e8e8ec"),
    "soft": ("#55555f", "#adadb8"),
    "paper": ("#ffffff", "#0d1117"),
    "raised": ("#f5f5f8", "#1e1e23"),
    "line": ("#d8d8e0", "#3a3a42"),
}


class Part(NamedTuple):
    """A piece of a chart over the whole width. ``label``: the scenario that it is about, if it is about one."""

    label: str
    height: float
    shapes: Sequence[str]


@dataclass(frozen=True)
class Picture:
    """A chart that a notebook shows."""

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: str | Path) -> None:
        """Write it as an SVG file."""
        Path(file).write_text(self.svg, "utf-8")


def figure(chart: Chart) -> str:
    """Return a chart as an element of the HTML page."""
    lines = ['<figure class="chart">', f"<figcaption>{escaped(_caption(chart))}</figcaption>"]
    for part in _parts(chart):
        scenario = f' data-scenario="{escaped(part.label)}"' if part.label else ""
        box = f'viewBox="0 0 {WIDTH} {part.height:g}"'
        lines.append(f"<svg {box}{scenario}>{''.join(part.shapes)}</svg>")
    return "\n".join([*lines, "</figure>"])


def file(chart: Chart) -> str:
    """Return a chart as a file of its own. It has a background, for whatever page it stands on."""
    shapes = []
    height: float = MARGIN
    for line in textwrap.wrap(_caption(chart), round(WIDTH / CHARACTER)):
        shapes.append(_text(MARGIN, height + BASELINE, line, "soft"))
        height += ROW
    for part in _parts(chart):
        height += GAP
        shapes.append(f'<g transform="translate({MARGIN} {height:g})">')
        shapes += [*part.shapes, "</g>"]
        height += part.height
    width, height = WIDTH + 2 * MARGIN, height + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{width}" height="{height:g}" '
            f'viewBox="0 0 {width} {height:g}">',
            f"<style>\n{_style()}</style>",
            '<rect class="paper" width="100%" height="100%"/>',
            *shapes,
            f"</svg>\n{MADE}\n",
        ]
    )


def asset(name: str) -> str:
    return (resources.files("kerasbench.report") / "assets" / name).read_text("utf-8")


def _style() -> str:
    """Return the style of a file, with colours for variables: not everything that shows an SVG knows variables."""
    rules = asset("chart.css") + ".chart .paper { fill: var(--paper) }\n"
    coloured = "".join(rule for rule in rules.splitlines(keepends=True) if "var(" in rule)
    for name, (light, dark) in COLOURS.items():
        rules = rules.replace(f"var(--{name})", light)
        coloured = coloured.replace(f"var(--{name})", dark)
    return f"{rules}@media (prefers-color-scheme: dark) {{\n{coloured}}}\n"


def _caption(chart: Chart) -> str:
    return chart.caption_with("Line") if isinstance(chart, BarChart) else chart.caption


def _parts(chart: Chart) -> Iterator[Part]:
    if isinstance(chart, LineChart):
        for panel in chart.panels:
            yield _panel(panel)
        return
    if chart.legend:
        yield _legend(chart)
    bars = [bar for group in chart.groups for bar in group.bars]
    ends = max(_width(bar.text) * (STRONG if bar.strong else 1.0) for bar in bars)
    # Bars are drawn between their names and the texts at their ends.
    track = Axis(0, 1, max(_width(bar.name) for bar in bars) + GAP, WIDTH - ends - GAP, linear=True)
    for group in chart.groups:
        yield _group(chart, group, track)
    if chart.ticks:
        places = [(tick, track.at(chart.share(tick, chart.groups[0]))) for tick in chart.ticks]
        yield Part("", ROW, [_text(x, BASELINE, f"{number(tick)}×", "soft middle") for tick, x in places])


def _legend(chart: BarChart) -> Part:
    shapes, x = [], 0.0
    for name, colour in chart.legend:
        shapes += [_rect(x, 4, 12, 12, f'fill="{colour}"'), _text(x + 18, BASELINE, name)]
        x += 18 + _width(name) + 2 * GAP
    return Part("", ROW, shapes)


class Axis(NamedTuple):
    """An axis: which values its ends have, and where these are."""

    low: float
    high: float
    begin: float
    end: float
    linear: bool = False  # else logarithmic

    def at(self, value: float) -> float:
        if self.linear:
            share = (value - self.low) / (self.high - self.low)
        else:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)


def _group(chart: BarChart, group: BarGroup, track: Axis) -> Part:
    shapes = [_text(0, BASELINE, group.label, "strong")]
    for index, bar in enumerate(group.bars, start=1):
        shapes.append(f'<g data-backend="{escaped(bar.backend)}" transform="translate(0 {index * ROW})">')
        shapes += [*_bar(chart, group, bar, track), "</g>"]
    return Part(group.label, ROW * (len(group.bars) + 1), shapes)


def _bar(chart: BarChart, group: BarGroup, bar: Bar, track: Axis) -> Iterator[str]:
    def place(size: float) -> float:
        return track.at(chart.share(size, group))

    middle = ROW / 2
    yield _text(0, BASELINE, _cut(bar.name))
    yield _rect(track.begin, 1, track.end - track.begin, ROW - 2, 'class="track"')
    if chart.reference is not None:
        yield _line("reference", place(chart.reference), 0, place(chart.reference), ROW)
    before = 0.0
    for piece in bar.pieces:
        begin, end = place(before), place(before + piece.size)
        look = f'fill="{piece.colour}" fill-opacity="{bar.opacity:.2f}" stroke="{piece.colour}"'
        yield _rect(begin, 3, end - begin, ROW - 6, look)
        if piece.label:
            yield _text((begin + end) / 2, BASELINE, piece.label, "inside middle")
        before += piece.size
    if bar.low is not None and bar.high is not None:
        low, high = place(bar.low), place(bar.high)
        for look in ("halo", "interval"):  # the halo first, so that the line is seen on its bar too
            yield _line(look, low, middle, high, middle)
            yield _line(look, low, middle - CAP, low, middle + CAP)
            yield _line(look, high, middle - CAP, high, middle + CAP)
    yield _text(track.end + GAP, BASELINE, _cut(bar.text), "strong" if bar.strong else "")


def _panel(panel: Panel) -> Part:
    """Return a panel: its title, its axes, what is drawn within them, and the names of its lines to the right."""
    top, bottom = ROW + GAP, ROW + GAP + PANEL_HEIGHT
    right = WIDTH - max(_width(line.name) for line in panel.lines) - 3 * GAP
    numbers = even_numbers if panel.linear else round_numbers
    ticks = {tick: f"{number(tick)} {panel.unit}" for tick in numbers(*panel.bounds)}
    left = max(_width(text) for text in ticks.values()) + GAP
    first, last = panel.sizes[0], panel.sizes[-1]
    x = Axis(0, last, left, right, linear=True) if panel.linear else Axis(first / 1.2, last * 1.2, left, right)
    if panel.names:
        x = Axis(0.5, len(panel.names) + 0.5, left, right, linear=True)
    y = Axis(*panel.bounds, bottom, top, panel.linear)
    shapes = [_text(0, BASELINE, f"{panel.label}: {panel.what}" if panel.what else panel.label, "strong")]
    for tick, text in ticks.items():
        shapes.append(_line("grid", left, y.at(tick), right, y.at(tick)))
        shapes.append(_text(left - 6, y.at(tick) + 4, text, "soft right"))
    for size, text in _sizes(panel, x).items():
        shapes.append(_line("grid", x.at(size), top, x.at(size), bottom))
        shapes.append(_text(x.at(size), bottom + BASELINE, text, "soft middle"))
    shapes.append(_text((left + right) / 2, bottom + ROW + BASELINE, panel.axis, "soft middle"))
    for index, crossover in enumerate(panel.crossovers):
        place = x.at(crossover.at)
        if crossover.interval is not None:
            begin, end = (x.at(size) for size in crossover.interval)
            shapes.append(_rect(begin, top, end - begin, PANEL_HEIGHT, 'class="span"'))
        shapes.append(_line("reference", place, top, place, bottom))
        has_room = place + len(crossover.text) * CHARACTER < right
        where, anchor = (place + 4, "note") if has_room else (place - 4, "note right")
        shapes.append(_text(where, top + index * ROW + BASELINE, crossover.text, anchor))
    for line in panel.lines:
        shapes += _series(line, x, y)
    shapes += _names(panel.lines, right + GAP, y)
    return Part(panel.label, bottom + 2 * ROW, shapes)


def _sizes(panel: Panel, x: Axis) -> dict[float, str]:
    """Return what is written below an axis of sizes, and where."""
    if panel.names:
        room = int((x.end - x.begin) / len(panel.names) / CHARACTER) - 1
        return {float(at): _cut(name, max(3, room)) for at, name in enumerate(panel.names, start=1)}
    sizes = even_numbers(0, panel.sizes[-1]) if panel.linear else _apart(panel.sizes, x)
    return {size: number(size) for size in sizes}


def _apart(sizes: Sequence[float], axis: Axis) -> list[float]:
    """Return the sizes whose numbers can stand beside each other."""
    chosen = [sizes[0]]
    for size in sizes[1:]:
        if axis.at(size) - axis.at(chosen[-1]) >= (len(number(size)) + 1) * CHARACTER:
            chosen.append(size)
    return chosen


def _series(line: Line, x: Axis, y: Axis) -> Iterator[str]:
    opacity = f'opacity="{line.opacity:.2f}"'
    yield f'<g class="series" data-backend="{escaped(line.backend)}" stroke="{line.colour}" {opacity}>'
    for size, step in line.points:
        if step.low is not None and step.high is not None:
            yield _line("interval", x.at(size), y.at(step.low), x.at(size), y.at(step.high))
    places = [(x.at(size), y.at(step.value)) for size, step in line.points]
    yield f'<polyline points="{" ".join(f"{left:.1f},{top:.1f}" for left, top in places)}"/>'
    for left, top in places:
        yield f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="{line.colour}"/>'
    yield "</g>"


def _names(lines: Sequence[Line], left: float, y: Axis) -> Iterator[str]:
    """Yield the lines' names, each at the height where its line ends, but none over another."""
    ordered = sorted(lines, key=lambda line: -line.points[-1][1].value)
    above = -math.inf
    for index, line in enumerate(ordered):
        lowest = y.begin - ROW * (len(ordered) - 1 - index)  # where there is still room for those below
        above = max(above + ROW, min(y.at(line.points[-1][1].value), lowest))
        key = f'fill="{line.colour}" fill-opacity="{line.opacity:.2f}"'
        yield f'<g data-backend="{escaped(line.backend)}">'
        yield _rect(left, above - 2, 12, 4, key) + _text(left + 16, above + 4, _cut(line.name)) + "</g>"


def number(value: float) -> str:
    """Return 0.01, 5, 1,000: never an exponent."""
    return f"{value:,.12f}".rstrip("0").rstrip(".")


def escaped(text: str) -> str:
    """Return text that is safe in HTML and in SVG: on one line, without control characters and without markup."""
    return escape(one_line(text))


def _cut(text: str, most: int = MOST_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _width(text: str) -> float:
    return len(_cut(text)) * CHARACTER


def _text(x: float, y: float, text: str, look: str = "") -> str:
    kind = f' class="{look}"' if look else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}">{escaped(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def _line(look: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
