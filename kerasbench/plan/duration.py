"""How long a run will take, and which differences it will be able to see, by earlier runs on this machine."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.metrics import NS_PER_S
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.verdicts import half_width, visible_difference
from kerasbench.errors import ResultsError
from kerasbench.exchange.requests import Protocol
from kerasbench.machine import Machine
from kerasbench.plan.cells import Cell, Plan
from kerasbench.results.keys import CellKey
from kerasbench.results.record import Record
from kerasbench.results.shelf import records

TYPICAL_SCATTER = 0.05  # of trials on a small cloud machine, paired by rounds (docs/method.md); quiet ones do better
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
                durations.setdefault(trial.cell, []).append(trial.wall_ns / NS_PER_S)
        if scatter is None and (found := scatter_of(summarize(record))) is not None:
            scatter, source = found, file.name
    return History({cell: statistics.median(spent) for cell, spent in durations.items()}, scatter, source)


def scatter_of(summary: Summary) -> float | None:
    """Return c, the typical standard deviation of a trial's logarithm once drift is taken out by pairing rounds.

    The median, over all pairs of cells that are compared, of sd(log ratio) / sqrt(2); None for fewer than three rounds.
    """
    ratios = [comparison.ratio for standing in summary.standings for comparison in standing.comparisons]
    found = [
        one.log_error * math.sqrt(one.trials / 2)
        for one in ratios
        if one.log_error is not None and one.basis == "trials"  # slices of one trial say nothing of another
    ]
    return statistics.median(found) if found else None


def _newest(folder: Path) -> Iterator[tuple[Path, Record]]:
    """Read the newest result files of a folder, the newest first."""
    with suppress(ResultsError):  # there are none
        yield from islice(records(folder, lambda unread: None, newest_first=True), FILES)


@dataclass(frozen=True)
class Sight:
    """After so many rounds: the difference that will be called in nine of ten cases, and a ratio's half interval."""

    rounds: int
    difference: float
    half_width: float


@dataclass(frozen=True)
class Outlook:
    """Which differences a run will be able to see; none before it has the rounds of an interval.

    ``source`` is the file whose trials scattered so; empty for a guess.
    """

    scatter: float
    source: str
    sights: list[Sight]


def outlook(planned: Plan, effect: float, history: History) -> Outlook:
    """Return what a run of the fewest and of the most rounds will see, at the scatter of this machine's trials."""
    least, most = planned.effort.min_rounds, planned.effort.max_rounds
    scatter = TYPICAL_SCATTER if history.scatter is None else history.scatter
    source = "" if history.scatter is None else history.source
    if most < MIN_TRIALS_FOR_INTERVAL:
        return Outlook(scatter, source, [])
    sights = [
        Sight(rounds, visible_difference(rounds, scatter, effect), half_width(rounds, scatter))
        for rounds in dict.fromkeys((least, most))
    ]
    return Outlook(scatter, source, sights)


# On 2 cores; only until the first trials have been timed.
TYPICAL_TRIAL_S, TYPICAL_SWEEP_TRIAL_S, TYPICAL_STEP_S, TYPICAL_EPOCH_S = 9.0, 4.0, 0.002, 0.01


def typical_trial_s(cell: Cell, protocol: Protocol) -> float:
    """Guess a trial's duration before any has been timed."""
    if protocol.kind == "sweep":
        return TYPICAL_SWEEP_TRIAL_S
    regime = cell.selected.regime
    each_epoch_s = TYPICAL_EPOCH_S + TYPICAL_STEP_S * regime.steps
    return TYPICAL_TRIAL_S + (regime.epochs * each_epoch_s if protocol.kind == "published" else 0)


class Eta:
    """How long a run will take: what a cell's trials have taken, else a guess, corrected by how others were guessed."""

    def __init__(self, planned: Plan, known_s: Mapping[CellKey, float] | None = None) -> None:
        self._cells = planned.cells
        self._max_rounds = planned.effort.max_rounds
        self._guess_s = {
            cell.key: (known_s or {}).get(cell.key) or typical_trial_s(cell, planned.effort.protocol)
            for cell in planned.cells
        }
        self._spent_s: dict[CellKey, list[float]] = {}
        self._rounds: Counter[CellKey] = Counter()
        self._failed: set[CellKey] = set()

    def carried(self, record: Record) -> int:
        """Count the trials that a run begins with, because it goes on with another one; return how many there are."""
        cells = {cell.key: cell for cell in self._cells}
        known = [trial for trial in record.trials if trial.round and trial.cell in cells]
        for trial in known:
            self.ended(cells[trial.cell], trial.round, trial.wall_ns / NS_PER_S, trial.failure is not None)
        return len(known)

    def ended(self, cell: Cell, round_index: int, wall_s: float, failed: bool) -> None:
        self._spent_s.setdefault(cell.key, []).append(wall_s)
        self._rounds[cell.key] = round_index
        if failed:
            self._failed.add(cell.key)

    @property
    def trials(self) -> int:
        """Trials that the whole run comes to, at most, if no further one is disturbed and repeated."""
        lost = sum(self._max_rounds - self._rounds[key] for key in self._failed)
        repeated = sum(len(spent) - self._rounds[key] for key, spent in self._spent_s.items())
        return len(self._cells) * self._max_rounds - lost + repeated

    @property
    def remaining_s(self) -> float:
        guessed_s = sum(self._guess_s[key] * len(spent) for key, spent in self._spent_s.items())
        correction = sum(map(sum, self._spent_s.values())) / guessed_s if guessed_s else 1.0
        total_s = 0.0
        for cell in self._cells:
            spent = self._spent_s.get(cell.key, [])
            if cell.key not in self._failed:
                each_s = sum(spent) / len(spent) if spent else self._guess_s[cell.key] * correction
                total_s += each_s * (self._max_rounds - self._rounds[cell.key])
        return total_s
