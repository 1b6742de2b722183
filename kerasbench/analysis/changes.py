"""Two sets of results beside each other: what became faster, slower, new, or was lost."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kerasbench.analysis.estimates import Estimate, estimate, welch
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.verdicts import Verdict, judge_all
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.options import is_native
from kerasbench.exchange.requests import ProtocolKind
from kerasbench.machine import told_apart
from kerasbench.results.merge import merge
from kerasbench.results.record import Record
from kerasbench.text import label

Cell = tuple[str, str, str, str, str]  # scenario, regime, backend, device, options


@dataclass(frozen=True)
class Change:
    """One cell that both sides measured. ``ratio`` is new over old.

    ``verdict`` is None between two machines, and where the cell was measured by different protocols.
    """

    cell: Cell
    old: Estimate
    new: Estimate
    ratio: Estimate
    verdict: Verdict | None
    source_changed: bool


@dataclass(frozen=True)
class Comparison:
    """What became of every cell. ``failed`` were measured before and are not any more.

    ``incomparable`` says why some or all ratios have no verdict; empty where all that can have one do.
    """

    incomparable: str
    changes: list[Change]
    added: list[Cell]
    vanished: list[Cell]
    failed: list[tuple[Cell, Failure]]

    @property
    def regressions(self) -> list[Cell]:
        """The cells that became slower beyond doubt, and those that were measured before and now fail."""
        slower = [change.cell for change in self.changes if change.verdict is Verdict.SLOWER]
        return slower + [cell for cell, _ in self.failed]

    @property
    def overall(self) -> float | None:
        """The geometric mean of the ratios over all cells that both sides have, new over old; None without any."""
        logs = [math.log(change.ratio.value) for change in self.changes]
        return math.exp(statistics.fmean(logs)) if logs else None


def cell_label(cell: Cell) -> str:
    """Return ``mnist_mlp/tiny jax cpu``, with the options where there are any."""
    scenario, regime, *column = cell
    return " ".join([label(scenario, regime), *(part for part in column if part)])


def compare(old: Sequence[Record], new: Sequence[Record]) -> Comparison:
    """Compare the training step of every cell: Welch's interval on logarithms, for trials are not paired between runs.

    Each side is one run or several of one machine. Between different machines or protocols there are ratios, but no
    verdicts.
    """
    before, after = merge(old), merge(new)
    sides = _measured(before), _measured(after)
    failures = _failed(after)
    common = [cell for cell in sides[0] if cell in sides[1]]
    alike = [cell for cell in common if sides[0][cell].protocol == sides[1][cell].protocol]
    is_one = len(told_apart([record.machine for record in (*old, *new)])) == 1
    incomparable = _incomparable(is_one, differing=len(common) - len(alike))
    judged = alike if is_one else []
    ratios = {cell: welch(sides[1][cell].steps_ms, sides[0][cell].steps_ms) for cell in common}
    effect = max(before.minimal_effect, after.minimal_effect)
    verdicts = dict(zip(judged, judge_all([ratios[cell] for cell in judged], effect), strict=True))
    sources = [{one.description.name: one for one in side.scenarios} for side in (before, after)]
    changes = []
    for cell in common:
        estimates = [estimate(side[cell].steps_ms) for side in sides]
        native = is_native(cell[-1])
        changed = len({side[cell[0]].source(cell[2], native) for side in sources}) > 1
        changes.append(Change(cell, estimates[0], estimates[1], ratios[cell], verdicts.get(cell), changed))
    return Comparison(
        incomparable=incomparable,
        changes=changes,
        added=[cell for cell in sides[1] if cell not in sides[0]],
        vanished=[cell for cell in sides[0] if cell not in sides[1] and cell not in failures],
        failed=[(cell, failures[cell]) for cell in sides[0] if cell in failures],
    )


def _incomparable(is_one_machine: bool, differing: int) -> str:
    if not is_one_machine:
        return "Different machines"
    if differing:
        cells = f"{differing} cell{'s' * (differing > 1)}"
        return f"Different protocols in {cells} (the published epochs hold the compilation)"
    return ""


class _Measured(NamedTuple):
    protocol: ProtocolKind
    steps_ms: list[float]


def _measured(record: Record) -> dict[Cell, _Measured]:
    return {
        row.key(column): _Measured(row.origin.protocol, cell.steps_ms)
        for row in summarize(record).rows
        for column, cell in row.cells.items()
        if cell.failure is None and cell.steps_ms
    }


def _failed(record: Record) -> dict[Cell, Failure]:
    return {row.key(column): failure for row, column, failure in summarize(record).failures}
