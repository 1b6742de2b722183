"""The published figures beside what is measured here."""

from collections.abc import Sequence

from kerasbench.analysis.cells import HEADLINE, Row
from kerasbench.analysis.published import Figure, Side, figures
from kerasbench.analysis.summary import Summary
from kerasbench.report.cells import column_names, value
from kerasbench.report.markdown import NOTHING, draw_table, escape
from kerasbench.report.number import significant
from kerasbench.results.keys import Column


def beside_published(summary: Summary) -> str:
    """Return the published figures beside what was measured here, all as ms a step, and what else was published."""
    known = figures()
    rows = [
        _beside(row, figure, summary.columns)
        for row in summary.rows
        if (figure := known.get((row.scenario.name, row.regime.name)))
    ]
    if not rows:
        return ""
    headers = [
        "scenario",
        "published CPU",
        "published GPU",
        "GPU / CPU",
        "their machine",
        *column_names(summary.columns),
    ]
    notes = [
        f"- {escape(row.label)}: {escape('; '.join(remarks))}."
        for row in summary.rows
        if (figure := known.get((row.scenario.name, row.regime.name))) and (remarks := figure.remarks)
    ]
    explanation = (
        "ms a step, with validation and all else that an epoch had: the published total over its steps, or what was "
        "published of an epoch or a step. Above 1, the author's GPU was the slower one. ⚠: a figure not to be believed."
    )
    parts = ["## Beside the published figures", draw_table(headers, rows), explanation, "\n".join(notes)]
    return "\n\n".join(parts).rstrip()


def _beside(row: Row, figure: Figure, columns: Sequence[Column]) -> list[str]:
    steps = row.regime.steps
    ratio = figure.gpu_over_cpu(steps)
    return [
        escape(row.label),
        _side(figure.cpu, steps),
        _side(figure.gpu, steps),
        NOTHING if ratio is None else f"{ratio:.2f}",
        escape(f"{figure.hardware}; {figure.software}"),
        *(value(row, column, HEADLINE) for column in columns),
    ]


def _side(side: Side | None, steps: int) -> str:
    span = side.ms_per_step(steps) if side else None
    if side is None or span is None:
        return NOTHING
    low, high = (significant(value) for value in span)
    return (low if low == high else f"{low}–{high}") + (" ⚠" if side.flag else "")
