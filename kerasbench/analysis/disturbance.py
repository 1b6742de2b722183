"""What other processes did to a row: how much of the machine they used, and which column suffered most."""

import statistics
from dataclasses import dataclass

from kerasbench.analysis.cells import CellSummary, Row
from kerasbench.exchange.measurement import Block
from kerasbench.results.keys import Column

LEAST = 3  # slices of each sort, before one is said to take longer than the other
SUFFERS = 1.2  # times as long: less is what slices differ by anyway


@dataclass(frozen=True)
class Disturbance:
    """``share`` of all processors' time went to others while slices were disturbed, and ``card`` of a GPU.

    ``card`` is None where its driver does not tell. ``slowed`` is the column whose disturbed slices took most times as
    long as its others, and ``times`` how many; None where none took clearly longer, or where there are too few of
    either sort.
    """

    share: float
    card: float | None = None
    slowed: Column | None = None
    times: float | None = None


def disturbance(row: Row, processors: int) -> Disturbance | None:
    """Return what others did while a row was measured on a machine of so many processors; None: nothing that counts."""
    slices = [block for cell in row.cells.values() for block in _slices(cell) if block.disturbed]
    if not slices:
        return None
    taken_ns = sum((block.others_ns or 0) + (block.steal_ns or 0) for block in slices)
    share = taken_ns / (processors * sum(block.ns for block in slices))
    cards = [block.card_share for block in slices if block.card_share is not None]
    card = statistics.fmean(cards) if cards else None
    slower = {column: times for column, cell in row.cells.items() if (times := _times(_slices(cell))) is not None}
    worst = max(slower, key=lambda column: slower[column], default=None)
    if worst is None or slower[worst] < SUFFERS:
        return Disturbance(share, card)
    return Disturbance(share, card, worst, slower[worst])


def _slices(cell: CellSummary) -> list[Block]:
    return [block for _, measurement in cell.trials for block in measurement.slices]


def _times(slices: list[Block]) -> float | None:
    """Return how many times as long disturbed slices took as the others; None for too few of either."""
    disturbed, others = ([block.unit_ns for block in slices if block.disturbed is sort] for sort in (True, False))
    if min(len(disturbed), len(others)) < LEAST:
        return None
    return statistics.median(disturbed) / statistics.median(others)
