"""A figure for Python: matplotlib's own, which a notebook shows, and which is saved with all that stands around its axes.

Imported where it is asked for: matplotlib is an optional dependency.
"""

import io
from typing import Any

from matplotlib.figure import Figure

from kerasbench.analysis.findings import Findings
from kerasbench.report import bars, curve
from kerasbench.report.plot import DOTS_PER_INCH, appearance


class Picture(Figure):
    """A figure whose labels and legend lie outside of its axes: saved without them it would be cut off."""

    def savefig(self, fname: Any, **how: Any) -> None:
        """Save it as matplotlib does, as large as what was drawn."""
        with appearance("png"):
            super().savefig(fname, **({"bbox_inches": "tight", "pad_inches": 0.1, "dpi": DOTS_PER_INCH} | how))

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def of(found: Findings) -> Picture | None:
    """Return the curves of a sweep, or bars of ratios where something was measured at its own size; None of neither."""
    fill = bars.fill if bars.compared(found) else curve.fill if curve.panels(found) else None
    if fill is None:
        return None
    with appearance("png"):
        figure = Picture()
        fill(figure, found)
    return figure
