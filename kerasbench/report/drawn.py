"""What a run leaves for its readers: the page beside its data, and the plot of a sweep."""

from dataclasses import dataclass
from pathlib import Path

from kerasbench.analysis.findings import Findings, findings
from kerasbench.errors import ResultsError
from kerasbench.plan import steps
from kerasbench.report import curve, page, plot
from kerasbench.results import atomic
from kerasbench.results.record import INTERRUPTED, Record
from kerasbench.results.store import Store


@dataclass(frozen=True)
class Drawn:
    """What was found in a run, and its files. The findings are there also where a file is not: ``unsaved`` says why.

    ``plot`` is the figure of a sweep, None where there is none.
    """

    found: Findings
    data: Path
    tables: Path
    plot: Path | None = None
    unsaved: str = ""

    @property
    def interrupted(self) -> bool:
        return self.found.summary.record.stopped_because == INTERRUPTED


def draw(record: Record, store: Store, unsaved: str = "") -> Drawn:
    """Sum up a run, and save its tables and its plot beside its data; ``unsaved`` says why these are not there.

    How long its steps took is remembered for ``list``.
    """
    found = findings(record)  # once: the tables and the figure share what it takes to compute
    steps.remember(found.summary)
    return Drawn(found, store.data, store.tables, _plot(store, found), unsaved or _save_tables(store, found))


def _save_tables(store: Store, found: Findings) -> str:
    """Save the page; return why that failed, so that the tables are shown all the same."""
    try:
        store.save_tables(page.document(found))
    except ResultsError as error:
        return str(error)
    return ""


def _plot(store: Store, found: Findings) -> Path | None:
    """Draw a sweep beside its tables, where matplotlib is installed and the disk takes it."""
    picture = curve.step_over_size(found, "png") if plot.is_available() else None
    if picture is None:
        return None
    file = store.data.with_suffix(".png")
    try:
        atomic.replace(file, picture)
    except ResultsError:
        return None  # the tables have said more
    return file
