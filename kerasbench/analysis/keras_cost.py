"""What Keras costs: each model's time over that of its native twin, of the same backend on the same device."""

import dataclasses
from dataclasses import dataclass

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import between
from kerasbench.analysis.standings import believed
from kerasbench.analysis.verdicts import Verdict, judge_all
from kerasbench.results.keys import Column

STEP, EPOCH = "steady_step_ms", "epoch_s"


@dataclass(frozen=True)
class Price:
    """The time of a step or an epoch with Keras over that without; above 1 Keras costs something."""

    row: Row
    keras: Column
    native: Column
    metric: str
    ratio: LogEstimate
    verdict: Verdict


def prices(rows: list[Row], effect: float) -> list[Price]:
    """Return each cell that was measured with Keras and without, step before epoch; all verdicts judged together.

    A cell that a failure withholds has no price: a twin that computes something else says nothing.
    """
    found = []
    for row in rows:
        for keras, native in _pairs(row):
            for metric in (STEP, EPOCH):
                compared = between(row.cells[keras], row.cells[native], metric, row.cells.values())
                if compared is not None:
                    found.append((row, keras, native, metric, compared))
    verdicts = judge_all([compared if believed(row) else None for row, *_, compared in found], effect)
    return [Price(*one, verdict) for one, verdict in zip(found, verdicts, strict=True)]


def _pairs(row: Row) -> list[tuple[Column, Column]]:
    """Return the columns that differ by their twin alone."""
    options = {column: cell.trials[0][0].options for column, cell in row.cells.items() if cell.trials}
    twins = {column: one for column, one in options.items() if one.native}
    found = {column: (*column[:2], dataclasses.replace(one, native=False).label) for column, one in twins.items()}
    return [(keras, native) for native, keras in found.items() if keras in row.cells]
