"""A figure for Python: matplotlib's own, which a notebook shows, and which is saved with all its labels.

Imported where it is asked for: matplotlib is an optional dependency.
"""

import io
from typing import Any

from matplotlib.figure import Figure

from kerasbench.analysis.findings import Findings
from kerasbench.report import bars, curve, plot
from kerasbench.report.plot import DOTS_PER_INCH, appearance


class Picture(Figure):
    """A figure whose labels and legend lie outside of its axes: saved without them it would be cut off."""

    def savefig(self, fname: Any, **how: Any) -> None:
        """Save it as matplotlib does, as large as what was drawn."""
        with appearance("png"):
            look: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.1, "dpi": DOTS_PER_INCH}
            super().savefig(fname, **(look | how))

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def of(found: Findings) -> Picture | None:
    """Return bars of ratios, where there are none the curves of a sweep, else the times; None of nothing."""
    if bars.compared(found):
        fill = bars.fill
    elif curve.panels(found):
        fill = curve.fill
    elif any(cell.estimate(row.headline) for row in found.plain.rows for cell in row.cells.values()):
        fill = plot.fill
    else:
        return None
    with appearance("png"):
        figure = Picture()
        fill(figure, found)
    return figure
