"""Two sets of results beside each other: what became faster, slower, new, or was lost.

The trials of a run share its hour, so that a run is one observation of its side, however many trials it has.
"""

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import LogEstimate, estimate, welch
from kerasbench.analysis.ratios import between
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.verdicts import Verdict, judge_all
from kerasbench.errors import Undecided
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.options import is_control, is_native
from kerasbench.exchange.requests import DataKind, ProtocolKind
from kerasbench.results.keys import CellKey, Column
from kerasbench.results.merge import merge
from kerasbench.results.record import Record
from kerasbench.text import count, label

DIFFERENT_MACHINES = "different machines"
NO_CODE = "the files do not say which code of kerasbench measured"
TOO_FEW = "a verdict needs three runs of each side by turns (old, new, old, new, old, new)"


class Manner(NamedTuple):
    """How a cell was measured. What differs in it has no verdict."""

    protocol: ProtocolKind
    data: DataKind
    keep_env: tuple[tuple[str, str], ...]
    in_turn: bool
    code: str


# The fields of a Manner, in words.
DIFFERENT = ("protocol", "data", "--keep-env", "side by side or one after another", "code of kerasbench")


class Beside(NamedTuple):
    """What a cell's ratio to another column of its run is now to what it was: the two share the hour of the machine."""

    column: Column
    ratio: float


@dataclass(frozen=True)
class Change:
    """One cell that both sides measured. ``ratio`` is new over old.

    ``verdict`` is None where the two cannot be judged, and ``why`` says why not.
    """

    cell: CellKey
    old: LogEstimate
    new: LogEstimate
    ratio: LogEstimate
    source_changed: bool
    beside: Beside | None = None
    why: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Comparison:
    """What became of every cell. ``failed`` were measured before and are not any more."""

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

    @property
    def unjudged(self) -> Counter[str]:
        """How many cells have no verdict, by the reason."""
        return Counter(change.why for change in self.changes if change.verdict is None)

    def require_decided(self) -> None:
        """Raise Undecided where no cell has a verdict that says something, and none fails now."""
        if self.failed or any(change.verdict not in (None, Verdict.INCONCLUSIVE) for change in self.changes):
            return
        reasons = [f"{count(cells, 'cell')}: {why}" for why, cells in self.unjudged.items()]
        unclear = sum(change.verdict is Verdict.INCONCLUSIVE for change in self.changes)
        reasons += [f"{count(unclear, 'cell')}: inconclusive"] if unclear else []
        why = "; ".join(reasons) or "no cell was measured on both sides"
        raise Undecided(f"nothing could be judged, so this is no pass: {why}; kerasbench versus measures two versions")


def cell_label(cell: CellKey) -> str:
    """Return ``mnist_mlp/tiny jax cpu``, with the options where there are any."""
    scenario, regime, *column = cell
    return " ".join([label(scenario, regime), *(part for part in column if part)])


def compare(old: Sequence[Record], new: Sequence[Record]) -> Comparison:
    """Compare the training step of every cell: Welch's interval on logarithms, over the runs of each side.

    Each side is one run or several of one machine. Of a side's runs those count together that measured a cell alike.
    Runs of a side that follow each other, with none of the other side between, are one observation: else a slower day
    would be a slower version.
    """
    before, after = _Side.of(old), _Side.of(new)
    is_one = len({record.machine.identity for record in (*old, *new)}) == 1
    changes = [_change(cell, before, after, is_one) for cell in before.cells if cell in after.cells]
    effect = max(before.record.minimal_effect, after.record.minimal_effect)
    verdicts = iter(judge_all([change.ratio for change in changes if not change.why], effect))
    return Comparison(
        changes=[one if one.why else dataclasses.replace(one, verdict=next(verdicts)) for one in changes],
        added=[cell for cell in after.cells if cell not in before.cells],
        vanished=[cell for cell in before.cells if cell not in after.cells and cell not in after.failed],
        failed=[(cell, after.failed[cell]) for cell in before.cells if cell in after.failed],
    )


@dataclass(frozen=True)
class _Measured:
    """A cell of one run. ``likeness`` is what runs of one side must share to count together."""

    started: str
    row: Row
    column: Column
    steps_ms: list[float]
    manner: Manner
    source: tuple[str, str]
    likeness: tuple[object, ...]

    @property
    def step_ms(self) -> float:
        return estimate(self.steps_ms).value


@dataclass(frozen=True)
class _Side:
    """One of the two sets: the runs of each cell, the one that a page would show first, and the cells that failed."""

    record: Record
    cells: dict[CellKey, list[_Measured]] = field(default_factory=dict)
    failed: dict[CellKey, Failure] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Sequence[Record]) -> "_Side":
        side = cls(merge(records))
        runs: dict[CellKey, dict[str, _Measured]] = {}
        for record in records:
            for key, one in _measured(record):
                runs.setdefault(key, {})[one.started] = one
        for row in summarize(side.record).rows:
            for column, cell in row.cells.items():
                key, alike = row.key(column), runs.get(row.key(column), {})
                if cell.failure is not None:
                    side.failed[key] = cell.failure
                elif first := alike.get(row.origin.started):
                    others = [one for one in alike.values() if one is not first and one.likeness == first.likeness]
                    side.cells[key] = [first, *others]
        return side


def _measured(record: Record) -> Iterator[tuple[CellKey, _Measured]]:
    """Yield the cells of a run that were measured; a control is the column that it repeats."""
    for row in summarize(record).rows:
        for column, cell in row.cells.items():
            if cell.failure is None and cell.steps_ms and not is_control(column[2]):
                yield row.key(column), _of_cell(record, row, column)


def _of_cell(record: Record, row: Row, column: Column) -> _Measured:
    cell, origin = row.cells[column], row.origin
    codes = sorted({trial.code for trial, _ in cell.trials})
    kept = tuple(sorted(origin.keep_env.items()))
    manner = Manner(origin.protocol, origin.data, kept, row.in_turn, " ".join(codes) if all(codes) else "")
    versions = sorted({package for _, found in cell.trials for package in found.resolved.versions.items()})
    source = _source(record, row, column)
    likeness = (manner, source, versions, origin.versus, record.asked.explain)
    return _Measured(origin.started, row, column, cell.steps_ms, manner, source, likeness)


def _source(record: Record, row: Row, column: Column) -> tuple[str, str]:
    """Return what tells a changed cell from an unchanged one."""
    found = next(one for one in record.scenarios if one.description.name == row.scenario.name)
    return found.source(column[0], is_native(column[2]))


def _change(cell: CellKey, before: _Side, after: _Side, is_one_machine: bool) -> Change:
    old, new = before.cells[cell], after.cells[cell]
    stretches = _stretches(old, new)
    ratio = welch(stretches[True], stretches[False])
    steps_ms = (
        estimate(runs[0].steps_ms if len(runs) == 1 else stretches[is_new])
        for is_new, runs in ((False, old), (True, new))
    )
    why = _why(old[0].manner, new[0].manner, ratio) if is_one_machine else DIFFERENT_MACHINES
    source_changed = old[0].source != new[0].source
    return Change(cell, next(steps_ms), next(steps_ms), ratio, source_changed, _beside(old[0], new[0]), why)


def _stretches(old: Sequence[_Measured], new: Sequence[_Measured]) -> Mapping[bool, list[float]]:
    """Return for each side (new: True) the step of each stretch of its runs that none of the other interrupts."""
    of_side = [(one.started, is_new, one.step_ms) for is_new, runs in ((False, old), (True, new)) for one in runs]
    found: dict[bool, list[float]] = {False: [], True: []}
    for is_new, runs in groupby(sorted(of_side), key=lambda one: one[1]):
        found[is_new].append(statistics.geometric_mean([step_ms for _, _, step_ms in runs]))
    return found


def _why(old: Manner, new: Manner, ratio: LogEstimate) -> str:
    """Return why two sides of one machine cannot be judged; empty where they can."""
    differing = [what for what, one, other in zip(DIFFERENT, old, new, strict=True) if one != other]
    if differing:
        return f"measured differently ({', '.join(differing)})"
    if not ratio.has_interval:
        return TOO_FEW
    return "" if new.code else NO_CODE


def _beside(old: _Measured, new: _Measured) -> Beside | None:
    """Compare a cell with the fastest other column that both runs have in its row, then and now."""
    others = [
        (found.value, column)
        for column, cell in old.row.cells.items()
        if column != old.column and column in new.row.cells and not is_control(column[2])
        if (found := cell.estimate(old.row.headline)) is not None
    ]
    if not others:
        return None
    column = min(others)[1]
    then, now = (
        between(one.row.cells[one.column], one.row.cells[column], one.row.headline, one.row.cells.values())
        for one in (old, new)
    )
    return Beside(column, now.value / then.value) if then and now else None
