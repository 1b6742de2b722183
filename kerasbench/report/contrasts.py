"""How many times as much one case takes as another: the one table of it. Its one bar is in ``charts``."""

from collections.abc import Sequence

from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.report.sections import EMPTY, Cell, Table, texts
from kerasbench.report.words import times, took

OPEN = {Verdict.SAME: ", tie", Verdict.INCONCLUSIVE: ", undecided"}


def takes(contrast: Contrast) -> Cell:
    """Return ``2.5× (2.3–2.8), undecided``: bold where the two are clearly different."""
    doubt = ""
    if contrast.verdict is None:
        doubt = ", not judged"
    elif contrast.withheld or contrast.ratio.has_interval:
        doubt = OPEN.get(contrast.verdict, "")
    return Cell(f"{times(contrast.ratio)}{doubt}", contrast.ratio.value, strong=contrast.is_decided)


def table(
    contrasts: Sequence[Contrast], called: Sequence[str], under: str, over: str, metric: str = "", again: str = ""
) -> Table:
    """Return a line for each: the value of the one below, and how many times as much the other takes.

    ``called`` has a name for each; the others are headers, of columns that are left out where one is empty.
    """
    rows = []
    for contrast, name in zip(contrasts, called, strict=True):
        below = contrast.under.case.estimate(contrast.metric)
        cells = texts(contrast.over.row.label, name, *([BY_NAME[contrast.metric].title] if metric else []))
        cells += [Cell(took(below, contrast.metric), below.value) if below else EMPTY, takes(contrast)]
        if again:
            cells.append(EMPTY if contrast.again is None else Cell(times(contrast.again), contrast.again.value))
        rows.append(cells)
    return Table([*filter(None, ["workload", "configuration", metric, under, over, again])], rows)
