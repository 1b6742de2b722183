"""What taking turns did not cancel: a column that changes its pace alone, and what a predecessor leaves behind."""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerasbench.analysis.cells import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, LogEstimate, estimate, median_error
from kerasbench.analysis.verdicts import Claim, Verdict, claim, significant
from kerasbench.exchange.measurement import Block, Measurement
from kerasbench.quiet.signals import PARKED_WARN, parked_share
from kerasbench.results.keys import Column

WORTH_NAMING = 0.01  # smaller changes than that are what two processes of one cell differ by
MIN_SLICES = 3  # on each side of a comparison: a median of fewer is one slice's

Relative = dict[Column, dict[int, float]]


@dataclass(frozen=True)
class Drift:
    """How much longer a column's slices took, against the others: in the second half of a bout, or after another one.

    ``change`` is a ratio of times; ``after`` is None for the halves.
    """

    row: Row
    column: Column
    change: LogEstimate
    after: Column | None = None


@dataclass(frozen=True)
class Awake:
    """A column that used so much of a core, on average, while it was stopped."""

    row: Row
    column: Column
    share: float


@dataclass(frozen=True)
class Bout:
    """The slices of the training steps in one bout: who had which turn, and how long it took beside the others.

    ``logs`` are logarithms, less the mean of the other columns' in the same cycle.
    """

    logs: Relative
    before: dict[Column, dict[int, Column]]

    def later(self, column: Column) -> LogEstimate | None:
        """Return the time of the column's slices in the second half of the cycles over that in the first."""
        own = [log for _, log in sorted(self.logs[column].items())]
        half = len(own) // 2
        return _difference(own[half:], own[:half])

    def following(self, column: Column, other: Column) -> LogEstimate | None:
        """Return the time of the column's slices right after the other's over that after anybody else's."""
        before = self.before[column]
        known = [(cycle, log) for cycle, log in self.logs[column].items() if cycle in before]
        after = [log for cycle, log in known if before[cycle] == other]
        return _difference(after, [log for cycle, log in known if before[cycle] != other])


def awake(rows: Sequence[Row]) -> list[Awake]:
    """Return the columns that used the processor while others had their turns."""
    found = []
    for row in rows:
        for column, cell in row.cells.items():
            share = parked_share(*(measurement.usage for _, measurement in cell.trials))
            if share > PARKED_WARN:
                found.append(Awake(row, column, share))
    return found


def drifts(rows: Sequence[Row]) -> list[Drift]:
    """Return what is significant and larger than WORTH_NAMING, of all rows judged together."""
    found = [one for row in rows for one in _of_row(row)]
    claims = [_claim(one.change) for one in found]
    return [
        one
        for one, sure in zip(found, significant(claims), strict=True)
        if sure and abs(one.change.log_centre) > math.log1p(WORTH_NAMING)
    ]


def _claim(change: LogEstimate) -> Claim:
    """Return that there is a change at all: by a test against an effect of nothing."""
    return Claim(Verdict.INCONCLUSIVE, None) if not change.has_interval else claim(change, 0.0)


def _of_row(row: Row) -> Iterator[Drift]:
    bouts = [one for one in _bouts(row) if len(one.logs) > 1]
    columns = sorted({column for bout in bouts for column in bout.logs})
    # Of two columns each is the other's measure: what is said of one is said of both.
    for column in columns[:1] if len(columns) == 2 else columns:
        change = _over_bouts([bout.later(column) for bout in bouts if column in bout.logs])
        if change is not None:
            yield Drift(row, column, change)
    for column, other in itertools.product(columns, columns):
        change = _over_bouts([bout.following(column, other) for bout in bouts if column in bout.logs])
        if change is not None and column != other:
            yield Drift(row, column, change, other)


def _bouts(row: Row) -> Iterator[Bout]:
    measured: dict[int, dict[Column, Measurement]] = {}
    for column, cell in row.cells.items():
        for trial, measurement in cell.trials:
            if trial.bout:
                measured.setdefault(trial.bout, {})[column] = measurement
    for _, found in sorted(measured.items()):
        yield bout({column: one.slices for column, one in found.items()})


def bout(slices: dict[Column, Sequence[Block]]) -> Bout:
    """Return what the columns' slices amount to in those cycles that all of them had."""
    by_cycle = {
        column: {block.cycle: block for block in blocks if block.cycle is not None} for column, blocks in slices.items()
    }
    cycles = sorted(set.intersection(*(set(found) for found in by_cycle.values()))) if by_cycle else []
    logs = {column: {cycle: math.log(found[cycle].unit_ns) for cycle in cycles} for column, found in by_cycle.items()}
    turns = sorted(
        (cycle, block.position or 0, column)
        for column, found in by_cycle.items()
        for cycle, block in found.items()
        if cycle in logs[column]
    )
    before: dict[Column, dict[int, Column]] = {column: {} for column in by_cycle}
    for (_, _, previous), (cycle, _, column) in itertools.pairwise(turns):
        before[column][cycle] = previous
    return Bout({column: _beside(column, logs) for column in logs}, before)


def _beside(column: Column, logs: Relative) -> dict[int, float]:
    others = [found for other, found in logs.items() if other != column]
    if not others:
        return {}
    return {cycle: log - statistics.fmean(one[cycle] for one in others) for cycle, log in logs[column].items()}


def _difference(a: Sequence[float], b: Sequence[float]) -> LogEstimate | None:
    """Return the difference of two medians of logarithms, with its error by the slices of one bout."""
    if min(len(a), len(b)) < MIN_SLICES:
        return None
    error = math.hypot(median_error(a) or 0.0, median_error(b) or 0.0)
    return LogEstimate(statistics.median(a) - statistics.median(b), error, len(a) + len(b) - 2, 1, "slices")


def _over_bouts(found: Sequence[LogEstimate | None]) -> LogEstimate | None:
    """Sum up the bouts: by how much they differ where there are enough, else by their slices."""
    known = [one for one in found if one is not None]
    if len(known) >= MIN_TRIALS_FOR_INTERVAL:
        return estimate([one.value for one in known])
    if not known:
        return None
    error = math.sqrt(math.fsum((one.log_error or 0.0) ** 2 for one in known)) / len(known)
    centre = statistics.fmean(one.log_centre for one in known)
    return LogEstimate(centre, error, sum(one.degrees for one in known), len(known), "slices")
