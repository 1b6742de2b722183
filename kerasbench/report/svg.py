"""Bars as inline SVG, one for each bar, as wide as the page leaves; names and numbers are text beside it."""

from collections.abc import Iterator
from html import escape

from kerasbench.report.sections import Bar, Chart, Group
from kerasbench.text import blanked

HEIGHT = 18  # of a bar, in pixels
MIDDLE, CAP = HEIGHT / 2, 4  # of an interval's line, and half the height of its ends


def drawn(chart: Chart) -> str:
    """Return a figure; the page's style sheet lays it out."""
    return "\n".join(
        [
            '<figure class="chart">',
            f"<figcaption>{_text(chart.told('Line'))}</figcaption>",
            *_legend(chart),
            *(line for group in chart.groups for line in _group(chart, group)),
            *_axis(chart),
            "</figure>",
        ]
    )


def _legend(chart: Chart) -> Iterator[str]:
    if chart.legend:
        keys = (
            f'<li><svg width="12" height="12" aria-hidden="true"><rect width="100%" height="100%" fill="{colour}"/>'
            f"</svg> {_text(name)}</li>"
            for name, colour in chart.legend
        )
        yield f'<ul class="legend">{"".join(keys)}</ul>'


def _group(chart: Chart, group: Group) -> Iterator[str]:
    yield f'<div class="group" data-scenario="{_text(group.label)}"><p class="subject">{_text(group.label)}</p><ul>'
    for bar in group.bars:
        text = f"<strong>{_text(bar.text)}</strong>" if bar.strong else _text(bar.text)
        yield (
            f'<li class="bar" data-backend="{_text(bar.backend)}"><span class="who">{_text(bar.name)}</span> '
            f'<svg width="100%" height="{HEIGHT}" aria-hidden="true">{"".join(_shapes(chart, group, bar))}</svg>'
            f'<span class="told">{text}</span></li>'
        )
    yield "</ul></div>"


def _axis(chart: Chart) -> Iterator[str]:
    """Yield a line of numbers below the bars, which stand as wide as these."""
    if chart.ticks:
        group = chart.groups[0]
        numbers = "".join(
            f'<text x="{chart.share(tick, group):.2%}" y="{MIDDLE + 4:g}">{tick:g}×</text>' for tick in chart.ticks
        )
        svg = f'<svg width="100%" height="{HEIGHT}">{numbers}</svg>'
        yield f'<div class="bar axis" aria-hidden="true"><span></span>{svg}<span></span></div>'


def _shapes(chart: Chart, group: Group, bar: Bar) -> Iterator[str]:
    if chart.reference is not None:
        yield _line("reference", chart.share(chart.reference, group), 0, chart.share(chart.reference, group), HEIGHT)
    before = 0.0
    for piece in bar.pieces:
        begin, end = chart.share(before, group), chart.share(before + piece.size, group)
        yield (
            f'<rect x="{begin:.2%}" y="2" width="{end - begin:.2%}" height="{HEIGHT - 4}" fill="{piece.colour}" '
            f'fill-opacity="{bar.opacity:.2f}" stroke="{piece.colour}"/>'
        )
        if piece.label:
            yield f'<text x="{(begin + end) / 2:.2%}" y="{MIDDLE + 4:g}">{_text(piece.label)}</text>'
        before += piece.size
    if bar.low is not None and bar.high is not None:
        low, high = chart.share(bar.low, group), chart.share(bar.high, group)
        for look in ("halo", "interval"):  # the halo first, so that the line is seen on its bar too
            yield _line(look, low, MIDDLE, high, MIDDLE)
            yield from (_line(look, end, MIDDLE - CAP, end, MIDDLE + CAP) for end in (low, high))


def _line(look: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{look}" x1="{x1:.2%}" y1="{y1:g}" x2="{x2:.2%}" y2="{y2:g}"/>'


def _text(text: str) -> str:
    return escape(" ".join(blanked(text).split()))
