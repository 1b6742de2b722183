"""Ratios within runs, over many runs: by their date, or by a version.

The time of a step in two runs is that of two hours of the machine. A ratio within a run is not, so it can be followed.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import in_row
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.versus import versus
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.results.run import Run
from kerasbench.results.store import distinct


@dataclass(frozen=True)
class Point:
    """A ratio of one run."""

    started: str  # of the run
    commit: str
    versions: dict[str, str]  # of the column that is followed: python, keras, the backend's packages
    ratio: LogEstimate
    case: CaseKey
    over: Column  # what it is compared with
    metric: str


@dataclass(frozen=True)
class Series:
    """A column of a row over a column that is the same in all runs of a machine, or over ``@BASE``."""

    row: str
    column: str
    over: str
    backend: str
    points: list[Point]
    machine: str = ""  # where there are several

    @property
    def label(self) -> str:
        return f"{self.row} ({self.machine})" if self.machine else self.row


def history(records: Sequence[Run]) -> list[Series]:
    """Return the series of each machine's runs, from the oldest run on. What has one point alone is none.

    A column is compared with that column of its row which most runs have measured. In a comparison of versions it is
    the head that is compared, with the base.
    """
    machines: dict[object, list[Run]] = {}
    for record in distinct(records):
        machines.setdefault(record.machine.identity, []).append(record)
    return [
        dataclasses.replace(one, machine=own[0].machine.title if len(machines) > 1 else "")
        for own in machines.values()
        for one in _of_machine(own)
    ]


def _of_machine(records: Sequence[Run]) -> list[Series]:
    found: dict[tuple[str, str, str, str], list[Point]] = {}
    summaries = [summarize(record).plain for record in sorted(records, key=lambda record: record.started)]
    references = _references(summaries)
    for summary in summaries:
        for row, column, over, ratio in [*_of_versions(summary), *_of_columns(summary, references)]:
            name, other = _names(column, over)
            versions = row.cases[column].trials[0][1].resolved.versions
            run = summary.record
            point = Point(run.started, run.commit, versions, ratio, row.key(column), over, row.headline)
            found.setdefault((row.label, name, other, column.backend), []).append(point)
    return [Series(*key, points) for key, points in sorted(found.items()) if len(points) > 1]


Found = tuple[Row, Column, Column, LogEstimate]


def _of_versions(summary: Summary) -> Iterator[Found]:
    for one in versus(summary):
        for difference in one.headlines:
            yield difference.pair.row, difference.pair.head, difference.pair.base, difference.ratio


def _of_columns(summary: Summary, references: dict[str, Column]) -> Iterator[Found]:
    for row in summary.rows:
        reference, measured = references.get(row.label), _measured(row)
        if reference is None or reference not in measured:
            continue
        for column in measured:
            ratio = in_row(row, column, reference, row.headline) if column != reference else None
            if ratio is not None:
                yield row, column, reference, ratio


def _measured(row: Row) -> list[Column]:
    """Return the columns of a row that took turns and have figures; none of a comparison of versions."""
    origin = row.origin
    if origin.in_pairs or origin.agenda.in_full:
        return []
    return [column for column, case in row.cases.items() if column.competes and case.failure is None and case.trials]


def _references(summaries: Sequence[Summary]) -> dict[str, Column]:
    """Return for each row the column that most runs have measured, of several the first by name."""
    counts: dict[str, Counter[Column]] = {}
    for summary in summaries:
        for row in summary.rows:
            counts.setdefault(row.label, Counter()).update(_measured(row))
    return {
        row: min(columns, key=lambda column: (-columns[column], column.label))
        for row, columns in counts.items()
        if columns
    }


def _names(column: Column, over: Column) -> tuple[str, str]:
    """Return how a series calls its columns: of two versions what they have in common, and the base's label."""
    if column.paired == over.paired and column.options.environment:
        return column.paired.label, f"@{over.options.environment}"
    return column.label, over.label
