"""Which cells and rows need a warning, and which one."""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kerasbench.analysis.cells import CellSummary, Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.parity import Deviation, deviating
from kerasbench.analysis.sittings import sittings
from kerasbench.analysis.standings import Standing
from kerasbench.analysis.summary import Summary
from kerasbench.quiet.signals import SCATTER_WARN
from kerasbench.quiet.warnings import Warned
from kerasbench.results.keys import Column

COMMON = ("keras", "python")  # what every column has, and what makes more than the backend differ

IDLE_SHARE = 0.7  # of the processors that a slice of the column has in the median: see "TensorFlow's late epochs"
OFTEN = 0.03  # of the slices: on JAX and torch it is at most 1.2 % in the published rows

MARKED = (Warned.IDLE, Warned.DISTURBED, Warned.UNJUDGED)


@dataclass(frozen=True)
class Concern:
    """A warning and what it is about: a row by its label (empty: all), columns (empty: all), and a detail."""

    what: Warned
    row: str
    columns: list[Column]
    detail: str = ""


def concerns(summary: Summary) -> list[Concern]:
    """Return every warning of a summary: of its cells, of its rows, then of the whole."""
    found: list[Concern] = []
    for row, standing in zip(summary.rows, summary.standings, strict=True):
        found += _of_cells(row)
        found += _of_row(row, standing)
    return [*found, *_versions(summary)]


def is_warned(row: Row, column: Column) -> bool:
    """Tell whether a cell is marked: not for what its interval shows already."""
    marked = any(applies(row, column) for what, applies in _CELLS if what in MARKED)
    return marked or bool(_fallbacks(row, column)) or column in deviating(row.cells)


def _of_cells(row: Row) -> Iterator[Concern]:
    for what, applies in _CELLS:
        columns = [column for column in row.cells if applies(row, column)]
        if columns:
            yield Concern(what, row.label, columns)
    for column, one in deviating(row.cells).items():
        yield Concern(Warned.DEVIATES, row.label, [column], _deviation(row, column, one))
    for column, cell in row.cells.items():
        waited, of = idle_slices(cell)
        if of and waited / of >= OFTEN:
            yield Concern(Warned.WAITED, row.label, [column], f"in {waited} of {of} slices")
        counts = _fallbacks(row, column)
        if counts:
            named = ", ".join(f"{name} ({times} a step)" for name, times in sorted(counts.items()))
            yield Concern(Warned.FALLBACK, row.label, [column], named)


def _of_row(row: Row, standing: Standing) -> Iterator[Concern]:
    if standing.withheld:
        yield Concern(Warned.CONTROL, row.label, [])
    if standing.disturbed:
        yield Concern(Warned.UNDECIDED, row.label, [])
    for one in sittings(row, standing):
        if one.differ and one.apart:
            yield Concern(Warned.SITTINGS, row.label, [one.column], f"by {one.apart.value - 1:.0%}")
    if not row.origin.versus:  # who is the fastest of all is nobody's question there
        yield from _of_standing(row, standing)
    yield from (Concern(Warned.APART, row.label, columns) for columns in _apart(row))


def _of_standing(row: Row, standing: Standing) -> Iterator[Concern]:
    if standing.by_slices:
        yield Concern(Warned.SLICES, row.label, [])
    elif standing.comparisons and row.rounds < MIN_TRIALS_FOR_INTERVAL and not standing.tentative:
        yield Concern(Warned.FEW, row.label, [])


def _apart(row: Row) -> list[list[Column]]:
    """Return which columns were measured side by side, where they did not fit into memory all together."""
    groups: dict[object, dict[int, list[Column]]] = {}
    for column, cell in row.cells.items():
        for trial, _ in cell.trials:
            if trial.bout and row.origin.protocol != "published":
                meant = (*column[:2], trial.paired_terms) if row.origin.versus else ()
                groups.setdefault((trial.round, meant), {}).setdefault(trial.bout, []).append(column)
    found = next((bouts for bouts in groups.values() if len(bouts) > 1), {})
    return list(found.values())


def _versions(summary: Summary) -> Iterator[Concern]:
    """Return the packages of which columns that are compared had different versions, and which had which."""
    for package in COMMON:
        found: dict[str, dict[Column, None]] = {}
        for trial in summary.record.trials:
            if trial.measurement is None or trial.options.environment:
                continue  # columns with labels are meant to differ, and the heading says how
            if version := trial.measurement.resolved.versions.get(package):
                found.setdefault(version, {})[trial.column] = None
        if len(found) > 1:
            yield from (
                Concern(Warned.VERSIONS, "", list(columns), f"{package} {one}")
                for one, columns in sorted(found.items())
            )


def _deviation(row: Row, column: Column, one: Deviation) -> str:
    """Return by how much a column's losses differ, from whose, and what does that."""
    others = [other for other in row.cells if other != column and row.cells[other].trials]
    whom = " ".join(filter(None, others[0])) if len(others) == 1 else "the median of all columns"
    kinds = {kind for _, m in row.cells[column].trials if m.parity for kind in m.parity.sensitive}
    why = "; batch normalisation in small batches does that" if "BatchNormalization" in kinds else ""
    return f"by {100 * one.share:.2g} % from {whom} in step {one.step}{why}"


def idle_slices(cell: CellSummary) -> tuple[int, int]:
    """Return how many slices of a column used much less of the processors than its others, and of how many."""
    shares = [
        block.cpu_ns / block.ns
        for _, measurement in cell.trials
        for block in measurement.slices
        if block.cpu_ns is not None
    ]
    usual = statistics.median(shares) if shares else 0.0
    return sum(share < IDLE_SHARE * usual for share in shares), len(shares)


def _fallbacks(row: Row, column: Column) -> dict[str, int]:
    """Return the operations of a step that fell back to the CPU, and how often each."""
    return {name: n for _, measurement in row.cells[column].trials for name, n in measurement.fallbacks.items()}


def _scattered(row: Row, column: Column) -> bool:
    return (row.cells[column].scatter or 0) >= SCATTER_WARN


def _unjudged(row: Row, column: Column) -> bool:
    trials = row.cells[column].trials
    others = [cell for other, cell in row.cells.items() if other != column and cell.trials]
    steady = row.origin.protocol == "steady"
    return bool(steady and trials and others) and all(measurement.parity is None for _, measurement in trials)


_CELLS: tuple[tuple[Warned, Callable[[Row, Column], bool]], ...] = (
    (Warned.IDLE, lambda row, column: column in row.idle),
    (Warned.DISTURBED, lambda row, column: bool(row.cells[column].noisy)),
    (Warned.UNJUDGED, _unjudged),
    (Warned.SCATTERED, _scattered),
)
