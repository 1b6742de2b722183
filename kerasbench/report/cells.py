"""What tables of figures are made of: figures with their intervals, names of columns."""

import math
from collections.abc import Sequence

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.standings import Standing
from kerasbench.analysis.summary import Summary
from kerasbench.analysis.warnings import is_warned
from kerasbench.report.number import BELOW, NOT_TOLD, factor, significant, with_interval
from kerasbench.report.sections import EMPTY, Cell, Section, Table, texts
from kerasbench.results.keys import Column
from kerasbench.text import count


def metric_section(
    summary: Summary, title: str, names: Sequence[str], notes: Sequence[str], needed: str = ""
) -> Section | None:
    """Return a section with a row for each regime and figure; none where no cell has the ``needed`` one."""
    if needed and not any(cell.estimate(needed) for row in summary.rows for cell in row.cells.values()):
        return None
    rows = [
        [*texts(row.label, title_of(name)), *values]
        for row in summary.rows
        for name in names
        for values in [[value(row, column, name) for column in summary.columns]]
        if any(one != EMPTY for one in values)
    ]
    if not rows:
        return None
    table = Table(["scenario", "figure", *column_names(summary.columns)], rows)
    return Section(title, table=table, notes=notes, folded=True)


def title_of(name: str) -> str:
    metric = BY_NAME[name]
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def value(row: Row, column: Column, name: str, unit: str = "") -> Cell:
    cell = row.cells.get(column)
    found = cell.estimate(name) if cell else None
    if cell is None or found is None:
        return EMPTY
    if BY_NAME[name].difference and (sign := cell.sign(name)) < 1:
        return Cell(BELOW if sign else NOT_TOLD)
    return estimated(found, unit)


def estimated(found: Estimate, unit: str = "") -> Cell:
    """Return a figure with its interval."""
    return Cell(with_interval(found, unit), found.value)


def timed(row: Row, column: Column, place: Standing) -> Cell:
    """Return the step of a cell as it stands in a table of steps, with its marks and its place.

    ``2.45 ms`` for the fastest, ``8.62 ms, 3.52× ±2 %`` for the others. A cell that is compared with no other has its
    own interval.
    """
    cell = row.cells.get(column)
    found = cell.estimate(row.headline) if cell else None
    if cell is None or found is None:
        return failed(row, column)
    text = _time(found, BY_NAME[row.headline].unit, column, place)
    level = bool(place.level) and column in (place.fastest, *place.level)
    return Cell(
        text, found.value, strong=column == place.first, level=level, warned=place.disturbed or is_warned(row, column)
    )


def failed(row: Row, column: Column) -> Cell:
    """Return what stands where there is no number: the failure's code, or nothing."""
    cell = row.cells.get(column)
    return Cell(cell.failure.code, failed=True) if cell and cell.failure else EMPTY


def _time(found: Estimate, unit: str, column: Column, place: Standing) -> str:
    if column == place.fastest and place.comparisons:
        return f"{significant(found.value)} {unit}"
    ratio = place.over_fastest(column)
    return with_interval(found, unit) if ratio is None else f"{significant(found.value)} {unit}, {factor(ratio)}"


def column_names(columns: Sequence[Column]) -> list[str]:
    return [column_name(column) for column in columns]


def column_name(column: Column) -> str:
    """Return a column's name, ``jax cpu threads=1``."""
    return " ".join(part for part in column if part)


def whole_steps(steps: float) -> str:
    """Return ``78 steps`` for anything above 77, three digits of what is larger; the first step is always made."""
    return f"{significant(steps)} steps" if steps >= 100 else count(max(1, math.ceil(steps)), "step")
