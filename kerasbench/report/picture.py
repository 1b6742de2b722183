"""A figure for Python: matplotlib's own, which a notebook shows, and which is saved with all its labels.

Imported where it is asked for: matplotlib is an optional dependency.
"""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.findings import Findings
from kerasbench.report import charts, plot


class Picture(Figure):
    """A figure whose labels and legend lie outside of its axes: saved without them it would be cut off."""

    def savefig(self, fname: Any, **how: Any) -> None:
        """Save it as matplotlib does, as large as what was drawn."""
        with plot.appearance("png"):
            look: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.1, "dpi": plot.DOTS_PER_INCH}
            super().savefig(fname, **(look | how))

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def figure_of_parts(found: Sequence[StepBreakdown]) -> Picture | None:
    """Return what an epoch of each cell is made of; None of nothing."""
    chart = charts.epoch_chart(found)
    if chart is None:
        return None
    with plot.appearance("png"):
        figure = Picture()
        plot.fill_chart(figure, chart)
    return figure


def figure_of(found: Findings) -> Picture | None:
    """Return bars of ratios, where there are none the curves of a sweep, else the times; None of nothing."""
    ratios = charts.ratios(found)
    with plot.appearance("png"):
        figure = Picture()
        if ratios is not None:
            plot.fill_chart(figure, ratios)
        elif plot.panels(found):
            plot.fill_curve(figure, found)
        elif any(cell.estimate(row.headline) for row in found.plain.rows for cell in row.cases.values()):
            plot.fill_steps(figure, found)
        else:
            return None
    return figure
