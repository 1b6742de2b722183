"""What Python functions return: runs, explanations, comparisons.

It shows the answer first: in a few lines of text, and as HTML in a notebook. It prints as the tables of the command
line, and becomes a figure where matplotlib is, a DataFrame where pandas is.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kerasbench.analysis import changes
from kerasbench.analysis.anatomy import Anatomy
from kerasbench.analysis.changes import Change, Comparison
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.versus import Versus, require_decided
from kerasbench.errors import UsageError
from kerasbench.report import comparison, csv, explanation, glance, markdown, page, plot
from kerasbench.report import versus as report_versus
from kerasbench.report.drawn import Drawn
from kerasbench.report.sections import Page
from kerasbench.results.merge import merge
from kerasbench.results.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Results:
    """The runs of one machine. ``summary`` has every estimate and verdict, ``records`` everything that was measured.

    ``files`` are those of a run that has just been measured.
    """

    records: list[Record]
    files: Drawn | None = None

    @property
    def summary(self) -> Summary:
        return self.findings.summary

    @cached_property
    def findings(self) -> Findings:
        """What is said of them: each statement once, for every table."""
        return self.files.found if self.files else Findings(summarize(merge(self.records)))

    @property
    def page(self) -> Page:
        """What a terminal shows of them."""
        return page.screen(self.findings)

    def __str__(self) -> str:
        return markdown.rendered(self.page)

    def __repr__(self) -> str:
        return glance.text(glance.of_results(self.findings))

    def _repr_html_(self) -> str:
        return glance.notebook(self.page)

    def plot(self) -> "Figure":
        """Draw what a notebook shows, and ``savefig`` saves: ratios to the fastest by row, or the curves of a sweep.

        Of an explanation: the parts of an epoch.

        Raises:
            UsageError: matplotlib is not installed, or nothing was measured.
        """
        if not plot.is_available():
            raise UsageError("plot() needs matplotlib: pip install matplotlib")
        drawn = self._drawn()
        if drawn is None:
            raise UsageError("there is nothing to plot: no training step was measured")
        return drawn

    def _drawn(self) -> "Figure | None":
        from kerasbench.report import picture

        return picture.of(self.findings)

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame: a row for each cell and metric, with the CSV's columns but ``started``."""
        return _pandas().DataFrame(list(csv.rows(self.summary)), columns=[*csv.COLUMNS, *csv.RATIOS, *csv.LAST])


@dataclass(frozen=True, repr=False)
class Explained(Results):
    """The run of an explanation. It prints as the explanation, and has all else that results have."""

    @property
    def anatomies(self) -> list[Anatomy]:
        """What an epoch of each cell is made of, and what would help it, as estimates; empty where all have failed."""
        return self.findings.anatomies

    def to_data(self) -> list[dict[str, Any]]:
        """Return what ``explain --json`` prints: figures and sentences, a dictionary for each cell."""
        return explanation.as_data(self.anatomies)

    @property
    def page(self) -> Page:
        """What a terminal shows of it."""
        return page.explained(self.findings)

    def _drawn(self) -> "Figure | None":
        from kerasbench.report import picture

        return picture.of_parts(self.anatomies) or super()._drawn()

    def __repr__(self) -> str:
        return glance.text(glance.of_explanation(self.anatomies) or glance.of_results(self.findings))

    def _repr_html_(self) -> str:
        return glance.notebook(self.page, glance.of_explanation(self.anatomies))


@dataclass(frozen=True, repr=False)
class Versions(Results):
    """The run of a comparison of versions: in ``regressions`` what the head does worse; all else that results have."""

    @property
    def versus(self) -> list[Versus]:
        """Every figure of base and head with its ratio and verdict, for each pair of labels."""
        return self.findings.versus

    @property
    def regressions(self) -> list[str]:
        """A sentence for each figure that is significantly worse, and for each cell that fails with the head alone.

        Raises:
            Undecided: nothing could be judged.
        """
        require_decided(self.versus)
        return [line for one in self.versus for line in report_versus.worse(one)]

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame: a row for each figure that base and head have, with its ratio and verdict."""
        rows = [row for one in self.versus for row in report_versus.rows(one)]
        return _pandas().DataFrame(rows, columns=list(report_versus.COLUMNS))


@dataclass(frozen=True, repr=False)
class Compared:
    """Two sets of results: each cell's ratio, its verdict where runs allow one, and ``regressions``."""

    found: Comparison
    old: str = "old"
    new: str = "new"

    @property
    def changes(self) -> list[Change]:
        return self.found.changes

    @property
    def regressions(self) -> list[str]:
        """What became slower or fails now; raises Undecided where nothing could be judged."""
        self.found.require_decided()
        return [changes.cell_label(cell) for cell in self.found.regressions]

    @property
    def page(self) -> Page:
        """What a terminal shows of them."""
        return comparison.changes(self.found, self.old, self.new)

    def __str__(self) -> str:
        return markdown.rendered(self.page)

    def __repr__(self) -> str:
        return glance.text(glance.of_comparison(self.found))

    def _repr_html_(self) -> str:
        return glance.notebook(self.page, glance.of_comparison(self.found))

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame, one row for each cell that both sides have; times in ms; needs pandas."""
        names = ["scenario", "regime", "backend", "device", "options", "old", "new", "ratio", "low", "high"]
        rows = [
            [*one.cell, one.old.value, one.new.value, *(one.ratio.value, one.ratio.low, one.ratio.high), *verdict]
            for one in self.changes
            for verdict in [(one.verdict, one.why)]
        ]
        return _pandas().DataFrame(rows, columns=[*names, "verdict", "why"])


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_dataframe() needs pandas: pip install pandas") from None
    return pd
