"""A chart as a figure of matplotlib, for ``plot()`` in Python. Imported there alone: matplotlib is optional."""

import io
import textwrap
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kerasbench.report.sections import BarChart, Chart, Panel, round_numbers
from kerasbench.report.svg import number
from kerasbench.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# "$" and "\" in a name are themselves.
RULES = {"text.parse_math": False, "text.usetex": False}
GREY = "#808080"
WIDTH_IN, BAR_IN, PANEL_IN = 8.0, 0.25, 3.6
WRAPPED = 100  # characters of the caption in a line


class NotebookFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png", dpi=150)
        return image.getvalue()


def figure(chart: Chart) -> NotebookFigure:
    """Draw a chart."""
    with matplotlib.rc_context(RULES):
        drawn = NotebookFigure(layout="constrained")
        if isinstance(chart, BarChart):
            _bars(drawn, chart)
        else:
            drawn.set_size_inches(WIDTH_IN, PANEL_IN * len(chart.panels) + 0.5)
            drawn.suptitle(textwrap.fill(chart.caption, WRAPPED), fontsize=9)
            for axes, panel in zip(drawn.subplots(len(chart.panels), squeeze=False)[:, 0], chart.panels, strict=True):
                _panel(axes, panel)
    return drawn


def _bars(figure: Figure, chart: BarChart) -> None:
    """Draw axes for each group, whose width is 1."""
    heights = [len(group.bars) + 1 for group in chart.groups]
    figure.set_size_inches(WIDTH_IN, BAR_IN * sum(heights) + 1)
    figure.suptitle(textwrap.fill(chart.caption_with("Line"), WRAPPED), fontsize=9)
    rows: list[Axes] = list(figure.subplots(len(heights), squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0])
    for axes, group in zip(rows, chart.groups, strict=True):
        axes.set_title(one_line(group.label), loc="left", fontsize=10)
        axes.set_yticks(range(len(group.bars)), [one_line(bar.name) for bar in group.bars])
        axes.set_xlim(0, 1)
        axes.set_ylim(len(group.bars) - 0.5, -0.5)
        axes.set_xticks([])
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        if chart.reference is not None:
            axes.axvline(chart.share(chart.reference, group), color=GREY, linewidth=0.8, linestyle=":")
        for index, bar in enumerate(group.bars):
            before = 0.0
            for piece in bar.pieces:
                begin, end = chart.share(before, group), chart.share(before + piece.size, group)
                axes.barh([index], [end - begin], left=begin, color=piece.colour, alpha=bar.opacity)
                axes.text((begin + end) / 2, index, piece.label, ha="center", va="center", fontsize=8)
                before += piece.size
            if bar.low is not None and bar.high is not None:
                ends = [chart.share(bar.low, group), chart.share(bar.high, group)]
                axes.plot(ends, [index, index], color="black", linewidth=1.2, marker="|")
            axes.text(1.02, index, one_line(bar.text), va="center", weight="bold" if bar.strong else "normal")
    ticks = [chart.share(tick, chart.groups[-1]) for tick in chart.ticks]
    rows[-1].set_xticks(ticks, [f"{number(tick)}×" for tick in chart.ticks])
    if chart.legend:
        keys = [Patch(color=colour) for _, colour in chart.legend]
        figure.legend(keys, [name for name, _ in chart.legend], loc="outside lower center", ncols=len(keys))


def _panel(axes: "Axes", panel: Panel) -> None:
    axes.set_title(one_line(panel.label), loc="left", fontsize=10)
    axes.set(xscale="log", yscale="log", xlabel=panel.axis, ylabel="step inside an epoch, ms", ylim=panel.bounds_ms)
    axes.set_xticks(panel.sizes, [number(size) for size in panel.sizes])
    ticks = round_numbers(*panel.bounds_ms)
    axes.set_yticks(ticks, [number(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    for line in panel.lines:
        sizes = [size for size, _ in line.points]
        axes.plot(
            sizes, [step.value for _, step in line.points], color=line.colour, alpha=line.opacity, marker="o",
            label=one_line(line.name),
        )  # fmt: skip
        for size, step in line.points:
            if step.low is not None and step.high is not None:
                axes.plot([size, size], [step.low, step.high], color=line.colour, alpha=line.opacity)
    for crossover in panel.crossovers:
        axes.axvline(crossover.at, color=GREY, linestyle="--", linewidth=1, label=crossover.text)
        if crossover.interval is not None:
            axes.axvspan(*crossover.interval, color=GREY, alpha=0.15, linewidth=0)
    axes.legend()
