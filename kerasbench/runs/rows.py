"""The rows of a run: what each is measured by, which of its columns still are, and what it has had."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kerasbench.analysis import parity
from kerasbench.analysis.cells import summarize_cell
from kerasbench.exchange.devices import GPU
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Failure
from kerasbench.exchange.requests import Protocol
from kerasbench.plan.cells import Cell, Plan
from kerasbench.results.keys import CellKey, Column
from kerasbench.results.record import TrialRecord
from kerasbench.runs.stopping import Ending

WARMUP_MARGIN = 1.5  # later trials warm up that much longer than the first one needed
WARMUP_MAX_BLOCKS = 30
ALONE = 3  # bouts of a row whose children start one after another, for cold figures with an interval


@dataclass
class Known:
    """What a cell's trials have taught for its later ones: what was calibrated, and what they took."""

    protocol: Protocol
    first_s: float | None = None
    peak_bytes: int = 0
    on_card_bytes: int = 0

    def take(self, trial: TrialRecord, found: Measurement) -> None:
        """Learn from a trial. How long the first took counts without the turns of others."""
        self.protocol = freeze(self.protocol, found)
        self.first_s = trial.own_ns / 1e9 if self.first_s is None else self.first_s
        self.peak_bytes = max(self.peak_bytes, found.peak_rss_bytes)
        self.on_card_bytes = max(self.on_card_bytes, found.peak_device_bytes or 0)

    def saw_on_card(self, held_bytes: int) -> None:
        """Learn what its process was seen to hold of a card: more than its allocator counts as live."""
        self.on_card_bytes = max(self.on_card_bytes, held_bytes)


@dataclass
class Row:
    """Cells that are measured together; ``had``: in so many rounds. ``ending``: why in no further one.

    ``crowded`` are those that failed beside others, as they may not by themselves, and are measured alone from then on.
    """

    cells: list[Cell]
    had: int = 0
    widths: list[list[float | None]] = field(default_factory=list)
    ending: Ending | None = None
    alive: list[Cell] = field(init=False)
    known: dict[CellKey, Known] = field(init=False)
    crowded: set[CellKey] = field(default_factory=set)
    trials: list[TrialRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.alive = list(self.cells)
        self.known = {cell.key: Known(cell.protocol) for cell in self.cells}

    @property
    def over(self) -> bool:
        return self.ending is not None or not self.alive

    @property
    def is_broken(self) -> bool:
        """Whether one of two versions is no longer measured: then the other has nothing that it is compared with."""
        versions = [cell for cell in self.alive if not cell.options.control]
        return len(self.cells) > 1 and self.cells[0].paired and len(versions) < 2

    @property
    def starts_alone(self) -> bool:
        """Whether its children start one after another: on a GPU always, where XLA chooses kernels by timing them."""
        return self.had < ALONE or any(cell.device.kind == GPU for cell in self.cells)

    @property
    def bout_s(self) -> float:
        """How long its bouts of one round have taken on average."""
        return seconds(self.trials) / self.had if self.had else 0.0

    def arrange(self, drawn: Sequence[Cell]) -> None:
        """Put the cells that are still measured into the order in which a round starts them.

        It is drawn for each round, so that no column always starts first, with the coldest disk. Once a round could not
        have all of them alive together its order stays, so that the same ones meet in each round.
        """
        bouts: dict[int, set[int]] = {}
        for trial in self.trials:
            bouts.setdefault(trial.round, set()).update({trial.bout} - {0})
        split = next((index for index, found in bouts.items() if len(found) > 1), None)
        keys = [trial.cell for trial in self.trials if trial.round == split] or [cell.key for cell in drawn]
        place = {key: number for number, key in reversed(list(enumerate(keys)))}
        self.alive.sort(key=lambda cell: place.get(cell.key, len(keys)))

    def take(self, trial: TrialRecord) -> None:
        """Take a trial in. A cell that failed would fail again, and cost a time-out each round: it is over.

        One that was crowded is over where it was alone.
        """
        self.trials.append(trial)
        if trial.crowded:
            self.crowded.add(trial.cell)
        elif trial.measurement is None:
            self.alive = [cell for cell in self.alive if cell.key != trial.cell]
        else:
            self.known[trial.cell].take(trial, trial.measurement)

    def odd(self) -> list[tuple[Cell, Failure]]:
        """Return the cells that compute something else than the others of those that are still measured."""
        trials: dict[Column, list[TrialRecord]] = {}
        for trial in self.trials:
            trials.setdefault(trial.column, []).append(trial)
        failures = parity.judge_cells({column: summarize_cell(found) for column, found in trials.items()})
        columns = [(cell.backend, cell.device.label, cell.options.terms) for cell in self.alive]
        return [(cell, failures[one]) for cell, one in zip(self.alive, columns, strict=True) if one in failures]

    def give_up(self, cells: Sequence[Cell]) -> None:
        """Leave out cells that have not been tried and will not be."""
        self.alive = [cell for cell in self.alive if cell not in cells]


def rows_of(planned: Plan) -> list[Row]:
    """Return the rows of a plan: cells of one regime and size; each cell by itself where all epochs are run."""
    found: dict[object, list[Cell]] = {}
    for cell in planned.cells:
        row = cell.key if cell.protocol.kind == "published" else cell.row
        found.setdefault(row, []).append(cell)
    return [Row(cells) for cells in found.values()]


def ordered(rows: Iterable[Row], cells: Sequence[Cell]) -> list[Row]:
    """Return the rows in the order in which their first cells come."""
    place = {cell.key: number for number, cell in reversed(list(enumerate(cells)))}
    return sorted(rows, key=lambda row: min(place[cell.key] for cell in row.cells))


def whole_rounds(cells: Iterable[Cell], trials: Sequence[TrialRecord]) -> int:
    """Return in how many rounds, from the first on, a row has had every column that had not failed by then."""
    done, alive = 0, {cell.key for cell in cells}
    while True:
        of_round = [trial for trial in trials if trial.round == done + 1 and not trial.crowded]
        alive -= {trial.cell for trial in of_round if trial.ends_cell}
        if not any(trial.bout or trial.measurement for trial in of_round) or not alive <= {
            one.cell for one in of_round
        }:
            return done
        done += 1


def seconds(trials: Iterable[TrialRecord]) -> float:
    """Return how long trials took in all: those of a bout were alive together, about as long as the longest.

    What each waited for a quiet machine counts too.
    """
    bouts: dict[int, float] = {}
    alone_s = 0.0
    for trial in trials:
        if trial.bout:
            bouts[trial.bout] = max(bouts.get(trial.bout, 0.0), _taken_s(trial))
        else:
            alone_s += _taken_s(trial)
    return alone_s + sum(bouts.values())


def _taken_s(trial: TrialRecord) -> float:
    return trial.wall_ns / 1e9 + (trial.surroundings.waited_s if trial.surroundings else 0.0)


def freeze(protocol: Protocol, measurement: Measurement) -> Protocol:
    """Return the protocol for the cell's later trials: what the first one calibrated, with a margin on the warm-up."""
    training = measurement.training
    if protocol.steps_per_block is not None or training is None:
        return protocol
    needed = sum(block.count == training.steps_per_block for block in training.warmup)
    return dataclasses.replace(
        protocol,
        steps_per_block=training.steps_per_block,
        warmup_blocks=min(WARMUP_MAX_BLOCKS, math.ceil(WARMUP_MARGIN * needed)),
    )
