"""The figure of a sweep: the time of a step over size, both logarithmic, with intervals and crossovers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.series import Swept, duels, swept
from kerasbench.analysis.summary import Summary
from kerasbench.report.plot import AXES_WIDTH_IN, COLOURS, MARKERS, Form, clean, draw, ends, legend, name, number, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN, GAP_IN = 3.4, 1.4  # the height of one regime's panel, and what its title, legend and labels need
MOST_SIZES = 14  # more names on the axis would run into each other


def step_over_size(summary: Summary, form: Form = "svg") -> bytes | None:
    """Draw a panel for each regime and axis that was swept, a line for each column; None where nothing was."""
    panels = [one for one in swept(summary) if any(one.steps_ms(column) for column in one.columns)]
    if not panels:
        return None
    return draw(lambda figure: _panels(figure, panels, summary.record.minimal_effect), form)


def _panels(figure: "Figure", panels: Sequence[Swept], effect: float) -> None:
    height_in = len(panels) * (PANEL_IN + GAP_IN)
    figure.set_size_inches(AXES_WIDTH_IN, height_in)
    for position, one in enumerate(panels):
        bottom_in = height_in - (position + 1) * (PANEL_IN + GAP_IN)
        axes = figure.add_axes((0, bottom_in / height_in, 1, PANEL_IN / height_in))
        _panel(axes, one, effect)


def _panel(axes: "Axes", found: Swept, effect: float) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    series = [(column, found.steps_ms(column)) for column in found.columns]
    series = [(column, steps) for column, steps in series if steps]
    _mark(axes, list(found.rows), [step for _, steps in series for _, step in steps])
    handles = [_line(axes, steps, position) for position, (_, steps) in enumerate(series)]
    for crossing in (crossing for duel in duels(found, effect) for crossing in duel.crossings):
        axes.axvline(crossing.at, linestyle="--", linewidth=0.8, color="#808080", gid="crossing")
        if crossing.low is not None and crossing.high is not None:
            axes.axvspan(crossing.low, crossing.high, color="#808080", alpha=0.15, linewidth=0)
    axes.set_xlabel(f"{found.axis} ({clean(found.label)}; dashed: a crossover, shaded: its interval)")
    axes.set_ylabel("step inside an epoch, ms")
    legend(axes, handles, [name(column) for column, _ in series])


def _mark(axes: "Axes", sizes: Sequence[float], steps: Sequence[Estimate]) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    shown = list(sizes)[:: math.ceil(len(sizes) / MOST_SIZES)]
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    axes.set_xticks(shown, [number(size) for size in shown], rotation=45)
    low, high = ends(steps, None)
    axes.set_ylim(low, high)
    marks = ticks(low, high)
    axes.set_yticks(marks, [number(mark) for mark in marks])
    axes.minorticks_off()
    axes.grid(color="#808080", alpha=0.3, linewidth=0.6)


def _line(axes: "Axes", steps: Sequence[tuple[float, Estimate]], position: int) -> object:
    """Draw a series, ``series-N`` in an SVG, and its intervals, ``interval-N``."""
    colour, marker = COLOURS[position % len(COLOURS)], MARKERS[position % len(MARKERS)]
    for index, (size, step) in enumerate(steps):
        if step.low is not None and step.high is not None:
            axes.plot(
                (size, size), (step.low, step.high), color=colour, linewidth=1.5, gid=f"interval-{position}-{index}"
            )
    sizes, values = [size for size, _ in steps], [step.value for _, step in steps]
    (line,) = axes.plot(
        sizes, values, marker=marker, color=colour, markersize=4, linewidth=1, gid=f"series-{position}", zorder=3
    )
    return line
