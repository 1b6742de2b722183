"""Bars as matplotlib draws them, for a PNG and for Python."""

import textwrap
from typing import TYPE_CHECKING, Any

from kerasbench.report.chart import Bar, Chart, Group
from kerasbench.report.plot import MARKER_SPREAD, Form, clean, draw, legend, number, row_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR_IN = 0.2  # the height of a bar with the room around it
WRAPPED = 95  # characters of the caption in a line
NAME_AT, TEXT_AT = -0.01, 4  # where names end, in widths of the axes; how far from its bar a number begins, in points


def image(chart: Chart | None, form: Form = "png") -> bytes | None:
    """Draw a chart; None of none."""
    return None if chart is None else draw(lambda figure: fill(figure, chart), form)


def fill(figure: "Figure", chart: Chart) -> None:
    """Draw a group of bars for each row, the first row above."""
    most = max(len(group.bars) for group in chart.groups)
    axes = row_axes(figure, [group.label for group in chart.groups], BAR_IN * (most + 1))
    longest = max(len(clean(bar.name)) for group in chart.groups for bar in group.bars)
    axes.tick_params(axis="y", pad=longest * 5.0 + 12)  # names of columns stand between the axes and the rows' names
    axes.set_xlim(0, 1)
    axes.set_xticks(
        [chart.share(tick, chart.groups[0]) for tick in chart.ticks], [f"{number(tick)}×" for tick in chart.ticks]
    )
    axes.set_xlabel(textwrap.fill(chart.told("Line"), WRAPPED), fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    if chart.reference is not None:
        axes.axvline(chart.share(chart.reference, chart.groups[0]), color="#808080", linewidth=0.8, linestyle=":")
    for index, group in enumerate(chart.groups):
        for position, bar in enumerate(group.bars):
            at = index + MARKER_SPREAD * ((position + 0.5) / len(group.bars) - 0.5)
            _bar(axes, chart, group, bar, at)
    if chart.legend:
        handles = [axes.barh([0], [0], color=colour).patches[0] for _, colour in chart.legend]
        legend(axes, handles, [name for name, _ in chart.legend])


def _bar(axes: "Axes", chart: Chart, group: Group, bar: Bar, at: float) -> None:
    """Draw one bar with its name, its interval, and the text at its end."""
    height = MARKER_SPREAD / len(group.bars) * 0.85
    axes.annotate(clean(bar.name), (NAME_AT, at), ha="right", va="center", fontsize=8, annotation_clip=False)
    before = 0.0
    for piece in bar.pieces:
        begin, end = chart.share(before, group), chart.share(before + piece.size, group)
        axes.barh([at], [end - begin], left=begin, height=height, color=piece.colour, alpha=bar.opacity)
        if piece.label:
            axes.text((begin + end) / 2, at, piece.label, ha="center", va="center", fontsize=7, color="#111111")
        before += piece.size
    tip = chart.share(bar.size, group)
    if bar.low is not None and bar.high is not None:
        low, tip = chart.share(bar.low, group), chart.share(bar.high, group)
        axes.plot((low, tip), (at, at), color="white", linewidth=3, solid_capstyle="butt")
        axes.plot((low, tip), (at, at), color="#333333", linewidth=1.2, marker="|", markersize=4, gid=f"interval-{at}")
    weight = "bold" if bar.strong else "normal"
    place: dict[str, Any] = {"xytext": (TEXT_AT, 0), "textcoords": "offset points", "annotation_clip": False}
    axes.annotate(clean(bar.text), (tip, at), va="center", fontsize=8, weight=weight, **place)
