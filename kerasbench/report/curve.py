"""The figure of a sweep: the time of a step over size, both logarithmic, with intervals and crossovers."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.series import Crossing, Swept
from kerasbench.report.colours import looks
from kerasbench.report.naming import names
from kerasbench.report.number import about
from kerasbench.report.plot import AXES_WIDTH_IN, GRID, Form, clean, draw, draw_series, ends, legend, mark, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN, GAP_IN = 3.4, 1.4  # the height of one regime's panel, and what its title, legend and labels need
MOST_SIZES = 24  # more numbers would not fit along the axis
NAME_HEIGHT = 0.06  # of a panel: names at the ends of lines that are nearer would overlap
SHORT = 3  # characters: longer numbers are turned, or they would overlap


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
    named, seen = names(column for column, _ in series), looks(column for column, _ in series)
    _mark_axes(axes, list(found.rows), [step for _, steps in series for _, step in steps])
    handles = [
        draw_series(axes, dict(enumerate(steps)), (position, seen[column]), upright=True)
        for position, (column, steps) in enumerate(series)
    ]
    if _are_apart([steps[-1][1].value for _, steps in series], axes.get_ylim()):
        for column, steps in series:
            _name(axes, named[column], seen[column].colour, steps[-1])
    else:
        legend(axes, handles, [named[column] for column, _ in series])
    for crossing in (crossing for duel in found.duels for crossing in duel.crossings):
        _crossover(axes, found, crossing)
    axes.set_xlabel(f"{found.axis} of {clean(found.label)}, both axes logarithmic")
    axes.set_ylabel("step inside an epoch, ms")


def _are_apart(values: Sequence[float], bounds: tuple[float, float]) -> bool:
    """Tell whether a name at each of the ends would be clear of the others."""
    least = (bounds[1] / bounds[0]) ** NAME_HEIGHT
    ordered = sorted(values)
    return all(upper / lower >= least for lower, upper in pairwise(ordered))


def _name(axes: "Axes", name: str, colour: str, end: tuple[float, Estimate]) -> None:
    """Write a column's name at the end of its line."""
    look: dict[str, Any] = {"xytext": (7, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
    axes.annotate(clean(name), (end[0], end[1].value), color=colour, **look)


def _crossover(axes: "Axes", found: Swept, one: Crossing) -> None:
    """Mark where one column overtakes another: a dashed line with its place above, its interval shaded."""
    axes.axvline(one.at, linestyle="--", linewidth=1, color="#808080", gid="crossing")
    at = about(found.axis, one.at)
    if one.interval is not None:
        at += f" ({about(found.axis, one.interval[0])}–{about(found.axis, one.interval[1])})"
        axes.axvspan(*one.interval, color="#808080", alpha=0.15, linewidth=0)
    place = axes.get_xaxis_transform()
    look: dict[str, Any] = {"xytext": (4, -4), "textcoords": "offset points", "va": "top", "fontsize": 8}
    axes.annotate(f"crossover at about\n{found.axis} {at}", (one.at, 1), xycoords=place, **look)


def _mark_axes(axes: "Axes", sizes: Sequence[float], steps: Sequence[Estimate]) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    shown = [number(size) for size in _apart(sizes)]
    axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
    axes.set_xticks(_apart(sizes), shown, rotation=45 if max(map(len, shown)) > SHORT else 0)
    low, high = ends(steps, None)
    axes.set_ylim(low, high)
    mark(axes, axes.yaxis, low, high)
    axes.grid(**GRID)


def _apart(sizes: Sequence[float]) -> list[float]:
    """Return the sizes whose numbers can stand beside each other."""
    least = (sizes[-1] / sizes[0]) ** (1 / MOST_SIZES)
    found = [sizes[0]]
    for size in sizes[1:]:
        if size >= found[-1] * least:
            found.append(size)
    return found
