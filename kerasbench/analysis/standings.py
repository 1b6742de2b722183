"""Who is fastest in each row of a table, and what the others are to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, LogEstimate
from kerasbench.analysis.ratios import between
from kerasbench.analysis.verdicts import Verdict, judge_all, rounds_to_decide
from kerasbench.exchange.options import is_native
from kerasbench.results.keys import Column


@dataclass(frozen=True)
class Comparison:
    """The fastest cell of a row against one of the others: the ratio of their times, and what it means.

    ``decides``: about how many rounds in all would decide it by itself; None where no number would.
    """

    rival: Column
    ratio: LogEstimate
    verdict: Verdict
    decides: int | None


@dataclass(frozen=True)
class Standing:
    """Who is fastest in a row: one winner, or the first of several that cannot be told apart.

    Nobody is, where there is nobody to be compared with. ``proven`` is False where there are too few rounds; where no
    row of the table has enough, it is ``tentative``.
    """

    fastest: Column | None
    comparisons: list[Comparison]
    proven: bool
    tentative: bool = False

    @property
    def first(self) -> Column | None:
        """The fastest where none is level with it: beyond doubt, or of a tentative table."""
        return self.fastest if (self.proven or self.tentative) and not self.level else None

    @property
    def level(self) -> list[Column]:
        """Those that cannot be told from the fastest."""
        return [one.rival for one in self.comparisons if self.proven and one.verdict is not Verdict.FASTER]


def stand(rows: Sequence[Row], effect: float) -> list[Standing]:
    """Compare the fastest cell of each row with each of its others.

    All verdicts of the table are judged together, because their number matters.
    """
    pairs = [_pairs(row) for row in rows]
    verdicts = iter(judge_all([ratio for _, ratios in pairs for ratio in ratios.values()], effect))
    tentative = all(row.origin.rounds < MIN_TRIALS_FOR_INTERVAL for row in rows)
    standings = []
    for fastest, ratios in pairs:
        comparisons = [
            Comparison(rival, found, next(verdicts), rounds_to_decide(found, effect)) for rival, found in ratios.items()
        ]
        proven = bool(comparisons) and all(one.ratio.has_interval for one in comparisons)
        standings.append(Standing(fastest, comparisons, proven, tentative))
    return standings


def _pairs(row: Row) -> tuple[Column | None, dict[Column, LogEstimate]]:
    """Return the fastest column of a row and the ratio of its times to those of each other.

    Native twins do not compete: what they are compared with is their own backend with Keras (keras_cost.py).
    """
    competing = {column: cell for column, cell in row.cells.items() if not is_native(column[2])}
    values = {column: found.value for column, cell in competing.items() if (found := cell.estimate(row.headline))}
    if len(values) < 2:
        return None, {}
    fastest = min(values, key=lambda column: values[column])
    ratios = {
        column: between(row.cells[fastest], row.cells[column], row.headline) for column in values if column != fastest
    }
    return fastest, {column: found for column, found in ratios.items() if found is not None}
