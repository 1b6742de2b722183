"""What earlier runs on this machine tell a plan: how long each cell's trial takes, how much trials scatter."""

import math
import statistics
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError
from kerasbench.exchange.requests import Protocol
from kerasbench.machine import Machine
from kerasbench.plan.cells import Cell, CellKey, Plan
from kerasbench.results.record import Record
from kerasbench.results.shelf import records

# On 2 cores; only until the first trials have been timed.
TYPICAL_TRIAL_S, TYPICAL_SWEEP_TRIAL_S, TYPICAL_STEP_S, TYPICAL_EPOCH_S = 9.0, 4.0, 0.002, 0.01


def typical_trial_s(cell: Cell, protocol: Protocol) -> float:
    """Guess a trial's duration before any has been timed."""
    if protocol.kind == "sweep":
        return TYPICAL_SWEEP_TRIAL_S
    regime = cell.selected.regime
    each_epoch_s = TYPICAL_EPOCH_S + TYPICAL_STEP_S * regime.steps
    return TYPICAL_TRIAL_S + (regime.epochs * each_epoch_s if protocol.kind == "published" else 0)


FILES = 3  # the newest ones: an old driver's or kernel's figures would mislead, and reading takes time


@dataclass(frozen=True)
class History:
    """``trial_s`` is the median duration of a cell's trials; ``scatter`` is by how much trials of one cell differ."""

    trial_s: dict[CellKey, float] = field(default_factory=dict)
    scatter: float | None = None
    source: str = ""


def recall(folder: Path, machine: Machine, planned: Plan) -> History:
    """Read the newest results of the same machine and protocol; files that cannot be read are passed over."""
    durations: dict[CellKey, list[float]] = {}
    scatter, source = None, ""
    for file, record in _newest(folder):
        if not record.machine.same_as(machine) or record.asked.effort.protocol.kind != planned.effort.protocol.kind:
            continue
        for trial in record.trials:
            if trial.measurement is not None:
                durations.setdefault(trial.cell, []).append(trial.wall_ns / 1e9)
        if scatter is None and (found := scatter_of(record)) is not None:
            scatter, source = found, file.name
    return History({cell: statistics.median(spent) for cell, spent in durations.items()}, scatter, source)


def scatter_of(record: Record) -> float | None:
    """Return c, the typical standard deviation of a trial's logarithm once drift is taken out by pairing rounds.

    The median, over all pairs of cells that are compared, of sd(log ratio) / sqrt(2); None for fewer than three rounds.
    """
    found = [
        comparison.ratio.log_error * math.sqrt(comparison.ratio.trials / 2)
        for standing in summarize(record).standings
        for comparison in standing.comparisons
        if comparison.ratio.trials >= MIN_TRIALS_FOR_INTERVAL
    ]
    return statistics.median(found) if found else None


def _newest(folder: Path) -> Iterator[tuple[Path, Record]]:
    """Read the newest result files of a folder, the newest first."""
    with suppress(ResultsError):  # there are none
        yield from islice(records(folder, lambda unread: None, newest_first=True), FILES)
