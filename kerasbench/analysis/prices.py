"""What something costs: the time of a column over that of the one that differs from it in that alone."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import between
from kerasbench.analysis.standings import believed
from kerasbench.analysis.verdicts import Verdict, judge_all
from kerasbench.exchange.options import Options
from kerasbench.results.keys import Column

STEP, EPOCH = "steady_step_ms", "epoch_s"


@dataclass(frozen=True)
class Price:
    """The time of a step or an epoch with something over that without; above 1 it costs something."""

    row: Row
    paying: Column
    free: Column
    metric: str
    ratio: LogEstimate
    verdict: Verdict


def of_keras(rows: Sequence[Row], effect: float) -> list[Price]:
    """Return each cell that was measured with Keras and without, step before epoch."""

    def with_keras(options: Options) -> Options | None:
        return dataclasses.replace(options, native=False) if options.native else None

    return _judged(
        [(row, keras, native, metric) for row, native, keras in _pairs(rows, with_keras) for metric in (STEP, EPOCH)],
        effect,
    )


def of_busy_cores(rows: Sequence[Row], effect: float) -> list[Price]:
    """Return each cell that was measured beside busy processors and without them, by what stands for its row."""

    def undisturbed(options: Options) -> Options | None:
        return dataclasses.replace(options, busy_cores=0) if options.busy_cores else None

    return _judged([(row, busy, quiet, row.headline) for row, busy, quiet in _pairs(rows, undisturbed)], effect)


def _judged(asked: Sequence[tuple[Row, Column, Column, str]], effect: float) -> list[Price]:
    """Return the prices, all verdicts judged together.

    A cell that a failure withholds has no price: one that computes something else says nothing.
    """
    found = [
        (row, paying, free, metric, compared)
        for row, paying, free, metric in asked
        if (compared := between(row.cells[paying], row.cells[free], metric, row.cells.values())) is not None
    ]
    verdicts = judge_all([compared if believed(row) else None for row, *_, compared in found], effect)
    return [Price(*one, verdict) for one, verdict in zip(found, verdicts, strict=True)]


def _pairs(rows: Sequence[Row], counterpart: Callable[[Options], Options | None]) -> list[tuple[Row, Column, Column]]:
    """Return the columns that have a counterpart in their row, and that; None: a column asks for none."""
    found = []
    for row in rows:
        for column, cell in row.cells.items():
            other = counterpart(cell.trials[0][0].options) if cell.trials else None
            if other is not None and (*column[:2], other.terms) in row.cells:
                found.append((row, column, (*column[:2], other.terms)))
    return found
