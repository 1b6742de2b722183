"""The figure of a sweep: the time of a step over size, both logarithmic, with intervals and crossovers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.series import Swept
from kerasbench.report.plot import AXES_WIDTH_IN, GRID, Form, clean, draw, draw_series, ends, legend, mark, name, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN, GAP_IN = 3.4, 1.4  # the height of one regime's panel, and what its title, legend and labels need
MOST_SIZES = 14  # more names on the axis would run into each other


def step_over_size(found: Findings, form: Form = "svg") -> bytes | None:
    """Draw a panel for each regime and axis that was swept, a line for each column; None where nothing was."""
    return draw(lambda figure: fill(figure, found), form) if panels(found) else None


def panels(found: Findings) -> list[Swept]:
    """Return the sweeps that have a panel: those of which a step was measured."""
    return [one for one in found.sweeps if any(one.steps_ms(column) for column in one.columns)]


def fill(figure: "Figure", found: Findings) -> None:
    """Draw the panels, one below the other."""
    drawn = panels(found)
    height_in = len(drawn) * (PANEL_IN + GAP_IN)
    figure.set_size_inches(AXES_WIDTH_IN, height_in)
    for position, one in enumerate(drawn):
        bottom_in = height_in - (position + 1) * (PANEL_IN + GAP_IN)
        axes = figure.add_axes((0, bottom_in / height_in, 1, PANEL_IN / height_in))
        _panel(axes, one)


def _panel(axes: "Axes", found: Swept) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    series = [(column, found.steps_ms(column)) for column in found.columns]
    series = [(column, steps) for column, steps in series if steps]
    _mark_axes(axes, list(found.rows), [step for _, steps in series for _, step in steps])
    handles = [
        draw_series(axes, dict(enumerate(steps)), position, upright=True) for position, (_, steps) in enumerate(series)
    ]
    for crossing in (crossing for duel in found.duels for crossing in duel.crossings):
        axes.axvline(crossing.at, linestyle="--", linewidth=0.8, color="#808080", gid="crossing")
        if crossing.interval is not None:
            axes.axvspan(*crossing.interval, color="#808080", alpha=0.15, linewidth=0)
    axes.set_xlabel(f"{found.axis} ({clean(found.label)}; dashed: a crossover, shaded: its interval)")
    axes.set_ylabel("step inside an epoch, ms")
    legend(axes, handles, [name(column) for column, _ in series])


def _mark_axes(axes: "Axes", sizes: Sequence[float], steps: Sequence[Estimate]) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    shown = list(sizes)[:: math.ceil(len(sizes) / MOST_SIZES)]
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    axes.set_xticks(shown, [number(size) for size in shown], rotation=45)
    low, high = ends(steps, None)
    axes.set_ylim(low, high)
    mark(axes, axes.yaxis, low, high)
    axes.grid(**GRID)
