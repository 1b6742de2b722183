"""What the functions return: an answer in a few lines, or in a notebook; tables; a chart; plain data."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kerasbench.analysis import table
from kerasbench.analysis.compare import Change, RunComparison
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.errors import UsageError
from kerasbench.modes import registry
from kerasbench.modes.versus import bisect, search
from kerasbench.modes.versus import tell as of_versions
from kerasbench.pages import data, html, page, several
from kerasbench.pages.files import SavedReport
from kerasbench.report import markdown, svg
from kerasbench.report.sections import Page
from kerasbench.report.words import case_name
from kerasbench.results.merge import merge
from kerasbench.results.run import Run
from kerasbench.results.store import load
from kerasbench.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

PlainRow = dict[str, Any]  # by the names of its columns
CHANGE = (*of_versions.CASE, "old", "new", "ratio", "low", "high", "verdict", "why")


class Shown:
    """What has a page: printed as Markdown, and shown by a notebook."""

    @property
    def page(self) -> Page:
        """What is shown; a terminal shows what is not folded."""
        raise NotImplementedError

    def to_data(self) -> PlainRow:
        """Return what ``--json`` prints, as plain data."""
        raise NotImplementedError

    def __str__(self) -> str:
        return markdown.rendered(self.page.unfolded)

    def _repr_html_(self) -> str:
        return html.notebook(self.page)


class TabularResult(Shown):
    columns: ClassVar[Sequence[str]]

    def _rows(self) -> Iterable[Iterable[object]]:
        raise NotImplementedError

    def to_dicts(self) -> list[PlainRow]:
        """Return a dictionary for each row of its table, with times in ms: polars and DuckDB take them."""
        return [dict(zip(self.columns, row, strict=True)) for row in self._rows()]

    def to_dataframe(self) -> "pd.DataFrame":
        """Return the same as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise UsageError("to_dataframe() needs pandas: pip install pandas") from None
        return pd.DataFrame(self.to_dicts(), columns=list(self.columns))


@dataclass(frozen=True, repr=False)
class Results(TabularResult):
    """The runs of one machine; a row for each case and metric, with the CSV's columns."""

    columns = table.NAMES
    mode: ClassVar[str] = ""  # whose runs are results of this type; empty: those of all others
    records: list[Run]  # everything that was measured
    files: SavedReport | None = None  # those of a run that has just been measured
    python: Sequence[str] = ()  # its interpreters, as --python takes them, that no file names

    @staticmethod
    def of(record: Run, files: SavedReport | None = None, python: Sequence[str] = ()) -> "Results":
        """Return the results of a run, in the type of its mode."""
        kinds = {kind.mode: kind for kind in Results.__subclasses__()}
        return kinds.get(record.config.mode, Results)([record], files, python)

    @cached_property
    def summary(self) -> Summary:
        """Every estimate and verdict, each computed once, for every table."""
        return self.files.summary if self.files else summarize(merge(self.records))

    @property
    def page(self) -> Page:
        return page.whole(self.summary)

    def __repr__(self) -> str:
        return html.text(registry.sentences(self.summary))

    def plot(self) -> svg.Picture:
        """Draw the chart of their page: a notebook shows it, ``save`` saves it as SVG; UsageError if there is none."""
        chart = self.page.chart
        if chart is None:
            raise UsageError("there is nothing to plot: no two configurations were compared, and nothing was swept")
        return svg.Picture(svg.file(chart))

    def to_data(self) -> PlainRow:
        return data.of_run(self.summary, self.records, self.files.kept if self.files else None).to_data()

    def _rows(self) -> Iterable[Iterable[object]]:
        return map(dataclasses.astuple, table.observations([self.summary]))


@dataclass(frozen=True, repr=False)
class Comparison(TabularResult):
    """Two sets of results: each case's ratio, its verdict where runs allow one, and ``regressions``."""

    columns = CHANGE
    comparison: RunComparison
    old: str = "old"
    new: str = "new"

    @property
    def changes(self) -> list[Change]:
        return self.comparison.changes

    @property
    def regressions(self) -> list[str]:
        """What became slower or fails now; raises Undecided where everything is undecided."""
        self.comparison.require_decided()
        return [case_name(case) for case in self.comparison.regressions]

    @property
    def page(self) -> Page:
        return several.changes(self.comparison, self.old, self.new)

    def __repr__(self) -> str:
        return html.text(several.sentences(self.comparison))

    def to_data(self) -> PlainRow:
        return data.of_comparison(self.comparison, self.old, self.new).to_data()

    def _rows(self) -> Iterable[Iterable[object]]:
        for change in self.changes:
            case, ratio = change.case, change.contrast.ratio
            of_case = (case.scenario, case.workload, case.column.backend, case.column.device, case.options.label)
            numbers = (change.old.value, change.new.value, ratio.value, ratio.low, ratio.high)
            yield (*of_case, *numbers, change.contrast.verdict, change.contrast.why)


@dataclass(frozen=True, repr=False)
class BisectResult(Shown):
    """How a search for a version ended: ``bisection`` has its probes, ``version`` the first slow one."""

    bisection: bisect.Bisection
    versions: list[str]

    @property
    def version(self) -> str | None:
        """The first slow version; None if none is slow, or if it is undecided."""
        return self.versions[self.bisection.slow] if self.bisection.outcome is bisect.SearchOutcome.FOUND else None

    def to_data(self) -> PlainRow:
        followed = self.bisection.followed
        case = followed.under.row.key(followed.under.column.paired) if followed else None
        return search.of_search(self.bisection, self.versions, case).to_data()

    @property
    def page(self) -> Page:
        followed = self.bisection.followed
        case = " ".join(bisect.case_of(followed)) if followed else ""
        return search.bisected(self.bisection, self.versions, case)

    def __repr__(self) -> str:
        return "\n".join(search.sentences(self.bisection, search.brief(self.versions)))


@dataclass(frozen=True, repr=False)
class Machines(Shown):
    """The runs of several machines, each by its name: ``machines["m1.local"]`` are its results."""

    settings: Settings
    data: Mapping[str, Path]  # the file of each machine from which records came
    failed: Mapping[str, str] = field(default_factory=dict)  # the machines that were not done, and why
    interrupted: Sequence[str] = ()  # those of them with which --resume goes on
    interpreters: Sequence[str] = ()  # what --python takes for that
    briefs: Sequence[several.MachineSummary] = ()

    def __getitem__(self, name: str) -> Results:
        """Return the results of a machine; raise UsageError for one from which nothing came."""
        if name not in self.data:
            why = self.failed.get(name, f"there are results of {', '.join(self.data) or 'no machine'}")
            raise UsageError(f"no results of {name}: {why}")
        return Results.of(load(self.data[name]))

    @property
    def page(self) -> Page:
        return several.of_machines(self.briefs, self.failed)

    def __repr__(self) -> str:
        return html.text([line for part in self.page.sections[:1] for line in part.lines if isinstance(line, str)])

    def to_data(self) -> PlainRow:
        """Return those of each machine, by its name."""
        return {name: self[name].to_data() for name in self.data}
