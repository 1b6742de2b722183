"""The figure of the answer: a bar for each column of a row, as long as its step takes against the fastest one's."""

from typing import TYPE_CHECKING

from kerasbench.analysis.cells import Row
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.standings import Standing
from kerasbench.report.naming import names
from kerasbench.report.number import significant
from kerasbench.report.plot import (
    COLOURS,
    GRID,
    MARKER_IN,
    MARKER_SPREAD,
    ROW_IN,
    Form,
    draw,
    ends,
    legend,
    mark,
    row_axes,
)
from kerasbench.results.keys import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FASTEST = 1.0
STUB = 0.985  # where bars begin: a little left of 1, so that the fastest column has a bar that can be seen
ROOM = 1.6  # a number stands at the end of each bar


def ratios(found: Findings, form: Form = "svg") -> bytes | None:
    """Draw the bars; None where no row has two columns to compare."""
    return draw(lambda figure: fill(figure, found), form) if compared(found) else None


def compared(found: Findings) -> list[tuple[Row, Standing]]:
    """Return the rows in which columns were compared, with who is fastest."""
    pairs = zip(found.plain.rows, found.plain.standings, strict=True)
    return [(row, standing) for row, standing in pairs if standing.fastest is not None]


def fill(figure: "Figure", found: Findings) -> None:
    """Draw a group of bars for each row that was compared, the first row above."""
    rows = compared(found)
    columns = [column for column in found.plain.columns if any(_ratio(one, column) for _, one in rows)]
    named = names(found.plain.columns)
    height = MARKER_SPREAD / max(1, len(columns))
    axes = row_axes(figure, [row.label for row, _ in rows], max(ROW_IN, MARKER_IN * (len(columns) + 1)))
    axes.set_xscale("log")
    axes.set_xlabel("time of a training step, in times of the fastest (shorter is better)")
    _, high = ends([one.ratio.inverse for _, standing in rows for one in standing.comparisons], FASTEST)
    axes.set_xlim(STUB, high * ROOM)
    mark(axes, axes.xaxis, FASTEST, high)
    axes.grid(axis="x", **GRID)
    handles = [
        axes.barh([0], [0], left=STUB, color=COLOURS[position % len(COLOURS)]) for position in range(len(columns))
    ]
    for index, (_, standing) in enumerate(rows):
        for position, column in enumerate(columns):
            at = index + MARKER_SPREAD * ((position + 0.5) / len(columns) - 0.5)
            _bar(axes, at, height, standing, column, COLOURS[position % len(COLOURS)])
    legend(axes, [one.patches[0] for one in handles], [named[column] for column in columns])


def _bar(axes: "Axes", at: float, height: float, standing: Standing, column: Column, colour: str) -> None:
    """Draw one column's bar, its interval, and the number at its end; nothing where it has no ratio."""
    bounds = _ratio(standing, column)
    if bounds is None:
        return
    low, value, high = bounds
    axes.barh([at], [value - STUB], left=STUB, height=height, color=colour, gid=f"ratio-{at:.3f}")
    if low < high:
        axes.plot((low, high), (at, at), color="#333333", linewidth=1.2, gid=f"interval-{at:.3f}")
    text = "fastest" if column == standing.first else f"{significant(value)}×"
    axes.annotate(text, (high, at), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)


def _ratio(standing: Standing, column: Column) -> tuple[float, float, float] | None:
    """Return the lower end, the value and the upper end of a column's time over the fastest one's."""
    if column == standing.fastest:
        return FASTEST, FASTEST, FASTEST
    found = standing.over_fastest(column)
    if found is None:
        return None
    return found.low or found.value, found.value, found.high or found.value
