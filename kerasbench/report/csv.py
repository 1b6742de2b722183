"""Everything that a run amounts to, as tidy CSV: one row for each cell and metric of each run."""

import csv
import dataclasses
import io
from collections.abc import Iterator, Sequence

from kerasbench.analysis.cases import CaseSummary, Row
from kerasbench.analysis.metrics import METRICS, Metric
from kerasbench.analysis.ratios import between
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column, Size
from kerasbench.text import blanked

# A contract: scripts rely on these names and their order; what is new comes last.
COLUMNS = (
    "machine", "scenario", "workload", "backend", "device", "status", "metric", "value", "low", "high", "unit",
    "trials", "options", "device_name", "batch", "width",
)  # fmt: skip
RATIOS = ("ratio", "ratio_low", "ratio_high")  # of the case's value over that of the fastest of its row
LAST = ("environment", "host")  # the label of the interpreter; what tells machines of equal parts apart
# started: of each run, which stand below each other and are not merged
CSV_COLUMNS = (*COLUMNS, "started", *RATIOS, *LAST)
MEASURED = "ok"
Line = list[str | float | None]


def document(summaries: Sequence[Summary]) -> str:
    """Return the CSV of one or more runs, with a line of names above."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for summary in summaries:
        started = summary.record.started
        for row in rows(summary):
            known, more = row[: len(COLUMNS)], row[len(COLUMNS) :]
            writer.writerow([_text(value) for value in (*known, started, *more)])
    return text.getvalue()


def rows(summary: Summary) -> Iterator[Line]:
    """Yield a run's rows in the order of COLUMNS, RATIOS and LAST; figures are numbers, None where there is none."""
    chip, host = summary.record.machine.chip, summary.record.machine.identifier
    for row, ranking in zip(summary.rows, summary.rankings, strict=True):
        fastest = row.cases[ranking.fastest] if ranking.fastest else None
        for column, cell in row.cases.items():
            subject, rest = _subject(chip, row, column, cell), _rest(row, column, cell)
            last = (column.options.environment, host)
            if cell.failure is not None:
                yield [*subject, "", None, None, None, "", 0, *rest, None, None, None, *last]
                continue
            for metric in METRICS:
                found = cell.estimate(metric.name)
                if found is not None:
                    figures: Line = [metric.name, found.value, found.low, found.high, metric.unit, found.trials]
                    yield [*subject, *figures, *rest, *_ratio(row, cell, fastest, metric), *last]


def _ratio(row: Row, cell: CaseSummary, fastest: CaseSummary | None, metric: Metric) -> list[float | None]:
    """Return the value over that of the fastest with its interval; losses and accuracies, without a unit, have none."""
    if fastest is None or not metric.unit:
        return [None, None, None]
    if cell is fastest:
        return [1.0, None, None]
    found = between(cell, fastest, metric.name, row.cases.values())
    return [None, None, None] if found is None else [found.value, found.low, found.high]


def _subject(chip: str, row: Row, column: Column, cell: CaseSummary) -> list[str]:
    status = MEASURED if cell.failure is None else cell.failure.code
    return [chip, row.scenario.name, row.workload.name, column.backend, column.device, status]


def _rest(row: Row, column: Column, cell: CaseSummary) -> list[str | float | None]:
    """Return options but for the label, the GPU's name, and in a sweep batch and width, where it varies them."""
    size, options = row.size or Size(), dataclasses.replace(row.key(column).options, environment="")
    return [options.label, cell.device_title, size.batch, size.width]


def _text(value: str | float | None) -> str:
    """Return a value as it stands in the file; text is no formula to a spreadsheet and has no control characters."""
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    printable = blanked(value)
    return f"'{printable}" if printable[:1] in ("=", "+", "-", "@") else printable
