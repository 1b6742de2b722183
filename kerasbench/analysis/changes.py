"""Two sets of results beside each other: what became faster, slower, new, or was lost."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kerasbench.analysis.estimates import LogEstimate, estimate, welch
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.verdicts import Verdict, judge_all
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.options import is_control, is_native
from kerasbench.exchange.requests import ProtocolKind
from kerasbench.machine import told_apart
from kerasbench.results.keys import CellKey
from kerasbench.results.merge import merge
from kerasbench.results.record import Record
from kerasbench.text import count, label


@dataclass(frozen=True)
class Change:
    """One cell that both sides measured. ``ratio`` is new over old.

    ``verdict`` is None between two machines, and where the cell was measured by different protocols.
    """

    cell: CellKey
    old: LogEstimate
    new: LogEstimate
    ratio: LogEstimate
    verdict: Verdict | None
    source_changed: bool


@dataclass(frozen=True)
class Comparison:
    """What became of every cell. ``failed`` were measured before and are not any more.

    ``incomparable`` says why some or all ratios have no verdict; empty where all that can have one do.
    """

    incomparable: str
    changes: list[Change]
    added: list[CellKey]
    vanished: list[CellKey]
    failed: list[tuple[CellKey, Failure]]

    @property
    def regressions(self) -> list[CellKey]:
        """The cells that became significantly slower, and those that were measured before and now fail."""
        slower = [change.cell for change in self.changes if change.verdict is Verdict.SLOWER]
        return slower + [cell for cell, _ in self.failed]

    @property
    def overall(self) -> float | None:
        """The geometric mean of the ratios over all cells that both sides have, new over old; None without any."""
        logs = [change.ratio.log_centre for change in self.changes]
        return math.exp(statistics.fmean(logs)) if logs else None


def cell_label(cell: CellKey) -> str:
    """Return ``mnist_mlp/tiny jax cpu``, with the options where there are any."""
    scenario, regime, *column = cell
    return " ".join([label(scenario, regime), *(part for part in column if part)])


def compare(old: Sequence[Record], new: Sequence[Record]) -> Comparison:
    """Compare the training step of every cell: Welch's interval on logarithms, for trials are not paired between runs.

    Each side is one run or several of one machine. Between different machines or protocols there are ratios, but no
    verdicts.
    """
    before, after = _Side.of(old), _Side.of(new)
    common = [cell for cell in before.measured if cell in after.measured]
    alike = [cell for cell in common if before.protocols[cell] == after.protocols[cell]]
    is_one = len(told_apart([record.machine for record in (*old, *new)])) == 1
    ratios = {cell: welch(after.measured[cell], before.measured[cell]) for cell in common}
    judged = alike if is_one else []
    effect = max(before.record.minimal_effect, after.record.minimal_effect)
    verdicts = dict(zip(judged, judge_all([ratios[cell] for cell in judged], effect), strict=True))
    return Comparison(
        incomparable=_incomparable(is_one, differing=len(common) - len(alike)),
        changes=[_change(cell, before, after, ratios[cell], verdicts.get(cell)) for cell in common],
        added=[cell for cell in after.measured if cell not in before.measured],
        vanished=[cell for cell in before.measured if cell not in after.measured and cell not in after.failed],
        failed=[(cell, after.failed[cell]) for cell in before.measured if cell in after.failed],
    )


def _change(cell: CellKey, before: "_Side", after: "_Side", ratio: LogEstimate, verdict: Verdict | None) -> Change:
    old, new = estimate(before.measured[cell]), estimate(after.measured[cell])
    return Change(cell, old, new, ratio, verdict, before.source(cell) != after.source(cell))


def _incomparable(is_one_machine: bool, differing: int) -> str:
    if not is_one_machine:
        return "Different machines"
    if differing:
        return f"Different protocols in {count(differing, 'cell')} (the published epochs hold the compilation)"
    return ""


@dataclass(frozen=True)
class _Side:
    """One of the two sets: each cell's steps in ms and its protocol, and the cells that failed."""

    record: Record
    measured: dict[CellKey, list[float]]
    protocols: dict[CellKey, ProtocolKind]
    failed: dict[CellKey, Failure]

    @classmethod
    def of(cls, records: Sequence[Record]) -> "_Side":
        record = merge(records)
        side = cls(record, {}, {}, {})
        for row in summarize(record).rows:
            for column, cell in row.cells.items():
                if is_control(column[2]):  # it is the column that it repeats
                    continue
                key = row.key(column)
                if cell.failure is not None:
                    side.failed[key] = cell.failure
                elif cell.steps_ms:
                    side.measured[key] = cell.steps_ms
                    side.protocols[key] = row.origin.protocol
        return side

    def source(self, cell: CellKey) -> tuple[str, str]:
        """Return what tells a changed cell from an unchanged one."""
        scenario, _, backend, _, options = cell
        found = next(one for one in self.record.scenarios if one.description.name == scenario)
        return found.source(backend, is_native(options))
