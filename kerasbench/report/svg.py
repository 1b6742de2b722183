"""Charts as SVG, in the HTML page and as files: of parts, one below the other, narrow enough to be read on a phone."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from kerasbench.report import sections
from kerasbench.text import MADE, one_line

# Lengths are in pixels, as large as text is at its normal size.
WIDTH = 560
MARGIN = 16  # of a file
ROW = 22  # height of a line of text, and of a bar with the room around it
BASELINE = 15  # of a text below the top of its row
GAP = 10  # between parts, and between a text and what it belongs to
CHARACTER = 7.4  # average width: no font is known here
STRONG = 1.1  # how many times as wide bold text is
MOST_CHARACTERS = 32  # of a name or a number beside a bar; a longer one is cut
LEAST_TRACK = 120  # of a bar's room: names give way to it
CAP = 4  # half the height of an interval's ends
PANEL_HEIGHT = 280  # of the area within the axes
SIZE = 5.0  # half the width of a dot

# Of a file, in light and in dark; a page's style sheet has its own.
COLOURS = {
    "ink": ("#1b1b1f", "#e8e8ec"),
    "soft": ("#55555f", "#adadb8"),
    "paper": ("#ffffff", "#0d1117"),
    "raised": ("#f5f5f8", "#1e1e23"),
    "line": ("#d8d8e0", "#3a3a42"),
}


class Part(NamedTuple):
    label: str  # the workload that it is about, if it is about one
    height: float
    shapes: Sequence[str]
    kind: str = ""  # of models: it is the heading of the parts that follow


@dataclass(frozen=True)
class Picture:
    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: str | Path) -> None:
        Path(file).write_text(self.svg, "utf-8")


def figure(chart: sections.Chart) -> str:
    """Return a chart as an element of the HTML page, whose heading is its title."""
    lines = ['<figure class="chart">', f"<figcaption>{escaped(chart.caption)}</figcaption>"]
    # One image, however many parts can be filtered: who hears the page has its numbers in the table below.
    lines.append(f'<div role="img" aria-label="{escaped(chart.title)}">')
    for part in _parts(chart):
        scenario = f' data-scenario="{escaped(part.label)}"' if part.label else ""
        scenario += f' data-kind="{escaped(part.kind)}"' if part.kind else ""
        lines.append(f'<svg viewBox="0 0 {WIDTH} {part.height:g}"{scenario}>{"".join(part.shapes)}</svg>')
    return "\n".join([*lines, "</div>", "</figure>"])


def file(chart: sections.Chart) -> str:
    """Return a chart as a file of its own, with its title. It has a background, for whatever page it stands on."""
    shapes: list[str] = []
    height: float = MARGIN
    for text, look in ((chart.title, "strong"), (chart.caption, "soft small")):
        characters = WIDTH / CHARACTER / (STRONG if look == "strong" else 0.9)
        for line in textwrap.wrap(one_line(text), round(characters)):
            shapes.append(_text(MARGIN, height + BASELINE, line, look))
            height += ROW - 4
        height += 2
    for part in _parts(chart):
        height += 0 if isinstance(chart, sections.DotChart) else GAP
        shapes.append(f'<g transform="translate({MARGIN} {height:g})">')
        shapes += [*part.shapes, "</g>"]
        height += part.height
    width, height = WIDTH + 2 * MARGIN, height + MARGIN
    # Colours stand for variables: not everything that shows an SVG knows these.
    rules = asset("chart.css") + ".chart .paper { fill: var(--paper) }\n"
    coloured = "".join(rule for rule in rules.splitlines(keepends=True) if "var(" in rule)
    for name, (light, dark) in COLOURS.items():
        rules, coloured = rules.replace(f"var(--{name})", light), coloured.replace(f"var(--{name})", dark)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{width}" height="{height:g}" '
            f'viewBox="0 0 {width} {height:g}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escaped(chart.title)}</title>\n<desc id="desc">{escaped(chart.caption)}</desc>',
            f"<style>\n{rules}@media (prefers-color-scheme: dark) {{\n{coloured}}}\n</style>",
            '<rect class="paper" width="100%" height="100%"/>',
            *shapes,
            f"</svg>\n{MADE}\n",
        ]
    )


def asset(name: str) -> str:
    return (resources.files("kerasbench.report") / "assets" / name).read_text("utf-8")


def _parts(chart: sections.Chart) -> Iterator[Part]:
    if isinstance(chart, sections.LineChart):
        return map(_panel, chart.panels)
    return _dot_parts(chart) if isinstance(chart, sections.DotChart) else _bar_parts(chart)


def _legend(names: Sequence[tuple[str, sections.SeriesStyle | str]], begin: float) -> Part:
    shapes, x, y = [], begin, 0.0
    for name, look in names:
        if x + 18 + _width(name) > WIDTH and x > begin:
            x, y = begin, y + ROW
        if isinstance(look, str):
            shapes.append(_rect(x, y + 4, 12, 12, f'fill="{look}"'))
        else:
            shapes.append(_dot_shape(x + SIZE, y + ROW / 2, look))
        shapes.append(_text(x + 18, y + BASELINE, _cut(name)))
        x += 18 + _width(name) + 2 * GAP
    return Part("", y + ROW, shapes)


class Axis(NamedTuple):
    low: float
    high: float
    begin: float  # where its ends are
    end: float
    linear: bool = False  # else logarithmic

    def at(self, value: float) -> float:
        if self.linear:
            share = (value - self.low) / (self.high - self.low)
        else:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)


def _dot_parts(chart: sections.DotChart) -> Iterator[Part]:
    widths = [_width(label) for _, groups in chart.kinds for label, _ in groups]
    widths += [STRONG * _width(kind) - GAP for kind, _ in chart.kinds]
    left = min(max(widths), WIDTH / 2) + 2 * GAP
    axis = Axis(1.0, chart.end, left, WIDTH - GAP)
    ticks = [tick for tick in sections.round_numbers(1, chart.end) if tick <= chart.end]
    grid = [(tick, axis.at(tick)) for tick in ticks]
    yield _legend(chart.names, axis.begin)
    for kind, groups in chart.kinds:
        if kind:
            yield Part("", ROW, [_text(0, BASELINE + 2, kind, "strong"), *_grid(grid)], kind)
        yield from (_dots(label, dots, axis, grid) for label, dots in groups)
    yield Part("", ROW, [_text(x, BASELINE, f"{number(tick)}×", "soft middle") for tick, x in grid])


def _grid(grid: Sequence[tuple[float, float]]) -> list[str]:
    return [_line("grid" if tick > 1 else "reference", x, 0, x, ROW) for tick, x in grid]


def _dots(label: str, dots: Sequence[sections.Bar], axis: Axis, grid: Sequence[tuple[float, float]]) -> Part:
    shapes = [_text(GAP, BASELINE, _cut(label, int(axis.begin / CHARACTER) - 1)), *_grid(grid)]
    for dot in sorted(dots, key=lambda dot: -dot.size):  # the fastest on top
        shapes.append(f'<g data-backend="{escaped(dot.backend)}"><title>{escaped(dot.tip)}</title>')
        low, x, high = (axis.at(min(max(end or 1.0, 1.0), axis.high)) for end in (dot.low, dot.size, dot.high))
        shapes += [_line("interval", low, ROW / 2, high, ROW / 2)] if dot.low is not None else []
        shapes += [_dot_shape(x, ROW / 2, dot.pieces[0].look), "</g>"]
    return Part(label, ROW, shapes)


def _dot_shape(x: float, y: float, look: sections.SeriesStyle) -> str:
    style = f'fill="{look.colour}" fill-opacity="{look.opacity:.2f}" stroke="{look.colour}" class="dot"'
    if look.shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{SIZE}" {style}/>'
    if look.shape == "square":
        return _rect(x - SIZE + 0.5, y - SIZE + 0.5, 2 * SIZE - 1, 2 * SIZE - 1, style)
    points = [(x, y - SIZE - 1), (x + SIZE + 1, y), (x, y + SIZE + 1), (x - SIZE - 1, y)]
    if look.shape == "triangle":
        points = [(x, y - SIZE - 0.5), (x + SIZE + 0.5, y + SIZE - 0.5), (x - SIZE - 0.5, y + SIZE - 0.5)]
    return f'<polygon points="{_points(points)}" {style}/>'


def _bar_parts(chart: sections.BarChart) -> Iterator[Part]:
    if chart.legend:
        yield _legend(chart.legend, 0.0)
    bars = [bar for _, group in chart.groups for bar in group]
    ends = max(_width(bar.text) * (STRONG if bar.strong else 1.0) for bar in bars)
    names = min(max(_width(bar.name) for bar in bars), WIDTH - ends - LEAST_TRACK - 2 * GAP)
    for label, group in chart.groups:
        # Bars are drawn between their names and the texts at their ends.
        end = chart.end or max(bar.size for bar in group)
        track = Axis(0, end, names + GAP, WIDTH - ends - GAP, linear=True)
        shapes = [_text(0, BASELINE, label, "strong")]
        for index, bar in enumerate(group, start=1):
            shapes.append(f'<g data-backend="{escaped(bar.backend)}" transform="translate(0 {index * ROW})">')
            shapes += [f"<title>{escaped(bar.tip)}</title>" if bar.tip else "", *_bar(bar, track), "</g>"]
        yield Part(label, ROW * (len(group) + 1), shapes)


def _bar(bar: sections.Bar, track: Axis) -> Iterator[str]:
    yield _text(0, BASELINE, _cut(bar.name, int(track.begin / CHARACTER)))
    yield _rect(track.begin, 2, track.end - track.begin, ROW - 4, 'class="track"')
    before = 0.0
    for piece in bar.pieces:
        begin, end = (track.at(min(size, track.high)) for size in (before, before + piece.size))
        colour, opacity = piece.look.colour, piece.look.opacity
        look = f'fill="{colour}" fill-opacity="{opacity:.2f}" stroke="{colour}"'
        yield _rect(begin, 4, end - begin, ROW - 8, look)
        if piece.label:
            yield _text((begin + end) / 2, BASELINE, piece.label, "inside middle")
        before += piece.size
    if bar.size > track.high:
        x = track.begin + 0.85 * (track.end - track.begin)
        yield f'<polygon class="tear" points="{x:.1f},2 {x + 8:.1f},2 {x:.1f},{ROW - 2} {x - 8:.1f},{ROW - 2}"/>'
    elif bar.low is not None and bar.high is not None:
        low, high = (track.at(min(max(size, 0.0), track.high)) for size in (bar.low, bar.high))
        for look in ("halo", "interval"):  # the halo first, so that the line is seen on its bar too
            yield _line(look, low, ROW / 2, high, ROW / 2)
            yield from (_line(look, x, ROW / 2 - CAP, x, ROW / 2 + CAP) for x in (low, high))
    yield _text(track.end + GAP, BASELINE, _cut(bar.text), "strong" if bar.strong else "")


def _panel(panel: sections.Panel) -> Part:
    top, bottom = ROW + GAP, ROW + GAP + PANEL_HEIGHT
    right = WIDTH - max(_width(line.name) for line in panel.lines) - 3 * GAP
    numbers = sections.even_numbers if panel.linear else sections.round_numbers
    ticks = {tick: f"{number(tick)} {panel.unit}" for tick in numbers(*panel.bounds)}
    left = max(_width(text) for text in ticks.values()) + GAP
    first, last = panel.sizes[0], panel.sizes[-1]
    x = Axis(0, last, left, right, linear=True) if panel.linear else Axis(first / 1.2, last * 1.2, left, right)
    if panel.names:
        x = Axis(0.5, len(panel.names) + 0.5, left, right, linear=True)
    y = Axis(*panel.bounds, bottom, top, panel.linear)
    shapes = [_text(0, BASELINE, f"{panel.label}: {panel.what}" if panel.what else panel.label, "strong")]
    for at, text in ((y.at(tick), text) for tick, text in ticks.items()):
        shapes += [_line("grid", left, at, right, at), _text(left - 6, at + 4, text, "soft right")]
    for at, text in ((x.at(size), text) for size, text in _sizes(panel, x).items()):
        shapes += [_line("grid", at, top, at, bottom), _text(at, bottom + BASELINE, text, "soft middle")]
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
    shapes += [shape for line in panel.lines for shape in _series(line, panel, x, y)]
    return Part(panel.label, bottom + 2 * ROW, [*shapes, *_names(panel.lines, right + GAP, y)])


def _sizes(panel: sections.Panel, x: Axis) -> dict[float, str]:
    if panel.names:
        room = int((x.end - x.begin) / len(panel.names) / CHARACTER) - 1
        return {float(at): _cut(name, max(3, room)) for at, name in enumerate(panel.names, start=1)}
    sizes = sections.even_numbers(0, panel.sizes[-1]) if panel.linear else panel.sizes[:1]
    for size in [] if panel.linear else panel.sizes:  # whose numbers can stand beside each other
        if x.at(size) - x.at(sizes[-1]) >= (len(number(size)) + 1) * CHARACTER:
            sizes.append(size)
    return {size: number(size) for size in sizes}


def _series(line: sections.Line, panel: sections.Panel, x: Axis, y: Axis) -> Iterator[str]:
    drawn = f'stroke="{line.look.colour}" opacity="{line.look.opacity:.2f}"'
    yield f'<g class="series" data-backend="{escaped(line.backend)}" {drawn}>'
    for size, value in line.points:
        if value.low is not None and value.high is not None:
            yield _line("interval", x.at(size), y.at(value.low), x.at(size), y.at(value.high))
    places = [(x.at(size), y.at(value.value)) for size, value in line.points]
    yield f'<polyline points="{_points(places)}"/>'
    few = len(line.points) <= 2 * len(panel.sizes) and not (panel.linear and len(line.points) > 20)
    for (left, top), (size, value) in zip(places, line.points, strict=True) if few else ():
        ends = [number3(end) for end in (value.low, value.high) if end is not None]
        interval = f" ({'–'.join(ends)})" if ends else ""
        tip = f"{line.name} at {panel.axis} {number3(size)}: {number3(value.value)} {panel.unit}{interval}"
        yield f"<g><title>{escaped(tip)}</title>{_dot_shape(left, top, line.look)}</g>"
    yield "</g>"


def _names(lines: Sequence[sections.Line], left: float, y: Axis) -> Iterator[str]:
    """Yield the lines' names, each at the height where its line ends, but none over another."""
    ordered = sorted(lines, key=lambda line: -line.points[-1][1].value)
    above = -math.inf
    for index, line in enumerate(ordered):
        lowest = y.begin - ROW * (len(ordered) - 1 - index)  # where there is still room for those below
        above = max(above + ROW, min(y.at(line.points[-1][1].value), lowest))
        yield f'<g data-backend="{escaped(line.backend)}">'
        yield _dot_shape(left + SIZE, above, line.look) + _text(left + 16, above + 4, _cut(line.name)) + "</g>"


def number(value: float) -> str:
    """Return 0.01, 5, 1,000: never an exponent."""
    return f"{value:,.12f}".rstrip("0").rstrip(".")


def number3(value: float) -> str:
    return number(float(f"{value:.3g}"))


def escaped(text: str) -> str:
    """Return text that is safe in HTML and in SVG: on one line, without control characters and without markup."""
    return escape(one_line(text))


def _points(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _cut(text: str, most: int = MOST_CHARACTERS) -> str:
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"


def _width(text: str) -> float:
    return len(_cut(text)) * CHARACTER


def _text(x: float, y: float, text: str, look: str = "") -> str:
    kind = f' class="{look}"' if look else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}">{escaped(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def _line(look: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
