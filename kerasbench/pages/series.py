"""Ratios within runs, which can be followed over many runs: times depend on the hour of the machine."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerasbench import variants
from kerasbench.analysis.contrasts import Contrast, between, control_ratio_of
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.modes import registry
from kerasbench.protocol.columns import Column
from kerasbench.report.kinds import grouped
from kerasbench.results.merge import distinct
from kerasbench.results.run import Run


@dataclass(frozen=True)
class Series:
    """A column of a row over a column that is the same in all runs of a machine, or over ``@BASE``."""

    row: str
    column: str
    over: str
    backend: str
    points: list[Contrast]  # of a run each, the oldest first
    machine: str  # where there are several

    @property
    def label(self) -> str:
        return f"{self.row} ({self.machine})" if self.machine else self.row


def history(records: Sequence[Run]) -> list[Series]:
    """Return the series of each machine's runs, from the oldest run on. What has one point alone is none.

    A column is compared with that of its row which most runs have; in a comparison of versions the head, with the base.
    """
    machines = grouped((record.machine.identity, record) for record in distinct(records))
    named = [(runs, runs[0].machine.title if len(machines) > 1 else "") for runs in machines.values()]
    return [series for runs, machine in named for series in _of_machine(runs, machine)]


def _of_machine(records: Sequence[Run], machine: str) -> list[Series]:
    in_order = sorted(records, key=lambda record: record.started)
    summaries = [summarize(record).plain for record in in_order]
    counts: defaultdict[str, Counter[Column]] = defaultdict(Counter)  # of the runs that measured a column, by row
    for row in (row for summary in summaries for row in summary.rows):
        counts[row.label].update(_measured(row))
    contrasts = (contrast for summary in summaries for contrast in _followed(summary, counts))
    points = grouped((_names(contrast), contrast) for contrast in contrasts)
    return [Series(*key, of_series, machine) for key, of_series in sorted(points.items()) if len(of_series) > 1]


def _followed(summary: Summary, counts: Mapping[str, Counter[Column]]) -> Iterator[Contrast]:
    config = summary.record.config
    contrasts = registry.mode_report(config.mode).contrasts(summary) if config.paired else ()
    yield from (contrast for contrast, more in contrasts if contrast.is_headline and not any(more.values()))
    for row in summary.rows:
        most, measured = counts[row.label], _measured(row)
        reference = min(most, key=lambda column: (-most[column], column.label), default=None)
        if reference in measured:
            again = control_ratio_of(row)
            pairs = (between(row, column, reference, row.headline, again) for column in measured if column != reference)
            yield from filter(None, pairs)


def _names(contrast: Contrast) -> tuple[str, str, str, str]:
    """Return row, column, the other column and backend: of two versions what they have in common, and the base."""
    row, column, over = contrast.over.row.label, contrast.over.column, contrast.under.column
    if column.paired == over.paired and column.options.environment:
        return row, column.paired.label, f"@{over.options.environment}", column.backend
    return row, column.label, over.label, column.backend


def _measured(row: Row) -> list[Column]:
    if row.origin.config.paired or row.origin.agenda.in_full:
        return []
    columns = [column for column, case in row.cases.items() if case.failure is None and case.trials]
    return list(filter(variants.competes, columns))


def versions_at(point: Contrast) -> dict[str, str]:
    return point.over.case.trials[0][1].resolved.versions
