"""Sittings: the ratios that each of them found, and whether these differ by more than their intervals allow."""

from dataclasses import dataclass

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import in_sittings
from kerasbench.analysis.standings import Standing
from kerasbench.results.keys import Column


@dataclass(frozen=True)
class Sittings:
    """The time of ``column`` over that of the fastest of its row, in each sitting."""

    row: Row
    column: Column
    fastest: Column
    ratios: dict[int, LogEstimate]

    @property
    def apart(self) -> LogEstimate | None:
        """The larger ratio of two sittings over the smaller; of more, their interval tells how they differ."""
        if len(self.ratios) != 2:
            return None
        first, last = self.ratios.values()
        found = first.and_then(last.inverse)
        return found if found.log_centre > 0 else found.inverse

    @property
    def differ(self) -> bool:
        """Whether two sittings differ by more than their intervals allow."""
        low = self.apart.low if self.apart else None
        return low is not None and low > 1


def sittings(row: Row, standing: Standing) -> list[Sittings]:
    """Return what each sitting found of a row's columns; nothing for a row that had one."""
    if standing.fastest is None:
        return []
    fastest = row.cells[standing.fastest]
    found = [
        Sittings(row, one.rival, standing.fastest, in_sittings(row.cells[one.rival], fastest, row.headline))
        for one in standing.comparisons
    ]
    return [one for one in found if len(one.ratios) > 1]
