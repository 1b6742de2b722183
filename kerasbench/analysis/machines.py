"""Several machines in one table: descriptive, because machines differ in too many ways for a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.summary import Summary
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.options import competes
from kerasbench.results.keys import Column

MachineColumn = tuple[str, Column]  # the machine's name, and one of its columns


@dataclass(frozen=True)
class Abreast:
    """One row over machines: its cells, the fastest column of each machine, and that of all.

    ``ratios`` are times over that of the fastest of all. Native twins have one, but are not the fastest of anything.
    """

    label: str
    cells: Mapping[MachineColumn, Estimate | Failure]
    firsts: frozenset[MachineColumn]
    fastest: MachineColumn | None
    ratios: Mapping[MachineColumn, float]


def abreast(summaries: Sequence[tuple[str, Summary]]) -> tuple[list[MachineColumn], list[Abreast]]:
    """Return the columns of all machines, and a row for each regime and size that one of them measured."""
    columns = [(name, column) for name, summary in summaries for column in summary.columns]
    labels = dict.fromkeys(row.label for _, summary in summaries for row in summary.rows)
    return columns, [_row(label, summaries) for label in labels]


def _row(label: str, summaries: Sequence[tuple[str, Summary]]) -> Abreast:
    cells: dict[MachineColumn, Estimate | Failure] = {}
    firsts: list[MachineColumn] = []
    times: dict[MachineColumn, float] = {}
    for name, summary in summaries:
        own: dict[MachineColumn, float] = {}
        for row in (row for row in summary.rows if row.label == label):
            for column in (one for one in summary.columns if one in row.cells):
                found = row.cells[column].estimate(row.headline)
                known = found or row.cells[column].failure
                if known is not None:
                    cells[name, column] = known
                if found is not None:
                    own[name, column] = found.value
        first = _fastest(own)
        firsts += [first] if first else []
        times |= own
    fastest = _fastest(times)
    ratios = {column: value / times[fastest] for column, value in times.items()} if fastest else {}
    return Abreast(label, cells, frozenset(firsts), fastest, ratios)


def _fastest(times: Mapping[MachineColumn, float]) -> MachineColumn | None:
    """Return the column with the shortest time among those that run Keras; None where there is none."""
    competing = [one for one in times if competes(one[1][2])]
    return min(competing, key=lambda one: times[one], default=None)
