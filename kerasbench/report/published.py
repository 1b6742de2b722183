"""The published figures beside what is measured here."""

from collections.abc import Sequence

from kerasbench.analysis.cells import HEADLINE, Row
from kerasbench.analysis.published import Figure, Side, figures
from kerasbench.analysis.summary import Summary
from kerasbench.report.cells import column_names, value
from kerasbench.report.number import significant
from kerasbench.report.sections import EMPTY, Cell, Section, Table
from kerasbench.results.keys import Column


def beside_published(summary: Summary) -> Section | None:
    """Return the published figures beside what was measured here, all as ms a step, and what else was published."""
    known = figures()
    shown = [
        (row, figure)
        for row in summary.rows
        if not row.own
        for figure in known.get((row.scenario.name, row.regime.name), [])
    ]
    rows = [_beside(row, figure, summary.columns) for row, figure in shown]
    if not rows:
        return None
    names = ["published CPU", "published GPU", "GPU / CPU", "their machine"]
    table = Table(["scenario", *names, *column_names(summary.columns)], rows)
    lines = [f"{row.label}: {'; '.join(remarks)}." for row, figure in shown if (remarks := figure.remarks)]
    notes = [
        "All figures are milliseconds a step, with validation and everything else in an epoch. A published total or "
        "epoch is divided by its steps.",
        "GPU / CPU above 1: the author's GPU was the slower one. ⚠ at a published figure: it cannot be right.",
    ]
    return Section("Published figures", table=table, lines=lines, notes=notes, folded=True)


def _beside(row: Row, figure: Figure, columns: Sequence[Column]) -> list[Cell]:
    steps = row.regime.steps
    ratio = figure.gpu_over_cpu(steps)
    return [
        Cell(row.label),
        _side(figure.cpu, steps),
        _side(figure.gpu, steps),
        EMPTY if ratio is None else Cell(f"{ratio:.2f}", ratio),
        Cell("; ".join(_machine(figure))),
        *(value(row, column, HEADLINE) for column in columns),
    ]


def _machine(figure: Figure) -> list[str]:
    batch = [] if figure.batch is None else [f"batch {figure.batch}"]
    return [figure.hardware, figure.software, *batch, *([figure.precision] if figure.precision else [])]


def _side(side: Side | None, steps: int) -> Cell:
    span = side.ms_per_step(steps) if side else None
    if side is None or span is None:
        return EMPTY
    low, high = (significant(value) for value in span)
    return Cell(low if low == high else f"{low}–{high}", span[0], warned=bool(side.flag))
