"""What does a slice keep of the one before it, and what drifts within a block? Out of result files.

    python validation/carry_over.py results/2026-11-25T205748.json

Columns take turns in an order that changes. A slice is compared with those of the other columns in its cycle, each as a
share of its own column's median: what is left, in blocks in which both occur, is compared between slices that follow
one column and those that follow another. A column follows itself only where it ends a cycle and begins the next one:
its slices after itself are compared with others that begin a cycle. The drift is that of a column against the others,
from the first half of a block to the second. Each block gives one difference; printed is their mean with its 95 %
interval.
"""

import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kerasbench.analysis.estimates import mean_interval
from kerasbench.protocol.measurement import Slice
from kerasbench.results.store import load

LEAST = 3  # slices on each side of a difference


@dataclass(frozen=True)
class Turn:
    """A slice: whose it is, after whose, when, and the logarithm of its time against its column and its cycle."""

    column: str
    before: str
    cycle: int
    position: int
    log: float


def main(files: list[Path]) -> None:
    found = defaultdict[str, list[float]](list)
    for columns in (columns for file in files for columns in blocks(file)):
        for name, difference in differences(list(turns(columns))):
            found[name].append(difference)
    for name, each in sorted(found.items()):
        one = mean_interval(each)
        if one.error is not None:
            assert one.high is not None
            print(f"{name}: {one.value:+.1%} ±{one.high - one.value:.1%} ({len(each)} blocks)")


def blocks(file: Path) -> Iterator[Mapping[str, list[Slice]]]:
    """Yield the slices of training steps of each block of several columns, by column."""
    record = load(file)
    found = defaultdict[object, dict[str, list[Slice]]](dict)
    for trial in record.trials:
        training = trial.measurement.training if trial.measurement else None
        if training is not None and trial.block:
            found[trial.group, trial.block][trial.column.label] = [*training.slices]
    yield from (columns for columns in found.values() if len(columns) > 1)


def turns(columns: Mapping[str, list[Slice]]) -> Iterator[Turn]:
    """Yield the slices of a block in the order in which they were measured, but for the first."""
    logs = {name: {one.cycle: math.log(one.unit_ns) for one in slices} for name, slices in columns.items()}
    apart = {
        name: {cycle: log - statistics.median(each.values()) for cycle, log in each.items()}
        for name, each in logs.items()
    }
    order = sorted((one.cycle or 0, one.position or 0, name) for name, slices in columns.items() for one in slices)
    for (*_, before), (cycle, position, name) in pairwise(order):
        others = [each[cycle] for other, each in apart.items() if other != name and cycle in each]
        if others:
            yield Turn(name, before, cycle, position, apart[name][cycle] - statistics.fmean(others))


def differences(made: list[Turn]) -> Iterator[tuple[str, float]]:
    """Yield what this block says of each column after each, and of the drift of each."""
    names = sorted({one.column for one in made})
    middle = statistics.median(one.cycle for one in made)
    for name in names:
        own = [one for one in made if one.column == name]
        late, early = ([one.log for one in own if (one.cycle > middle) is half] for half in (True, False))
        yield from difference(f"{name}, second half less first", late, early)
        for before in names:
            alike = [one for one in own if one.position == 0 or before != name]
            after = [one.log for one in alike if one.before == before]
            others = [one.log for one in alike if one.before not in (before, name)]
            yield from difference(f"{name} after {before}, less after others", after, others)


def difference(name: str, some: list[float], others: list[float]) -> Iterator[tuple[str, float]]:
    if min(len(some), len(others)) >= LEAST:
        yield name, statistics.median(some) - statistics.median(others)


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
