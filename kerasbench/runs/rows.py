"""The records of a run: of the whole as it begins or goes on, and of each trial.

The rows of a run: what each is measured by, which of its columns still are, and what it has had.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import psutil

from kerasbench import text
from kerasbench.analysis import cells
from kerasbench.analysis.cells import summarize_cell
from kerasbench.analysis.estimates import minimal_effect
from kerasbench.host.noise import State, of_machine
from kerasbench.plan.cells import Cell, Plan
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import GPU, Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.results import record
from kerasbench.results.record import CellKey, Column, Record, ScenarioRecord, TrialRecord
from kerasbench.runs.schedule import Ending

SITTING_ENDS_S = 3_600.0  # after so long the machine may be another: what else it does, how warm it is


def new_record(planned: Plan, state: State) -> Record:
    """Return the record of a run of which nothing has been measured yet."""
    entries = {
        id(cell.selected.entry): cell.selected.entry for cell in [*planned.cells, *(c for c, _ in planned.absent)]
    }
    return Record(
        asked=planned.asked,
        machine=planned.machine,
        started=text.now(),
        minimal_effect=minimal_effect(state.on_battery is True),
        scenarios=[
            ScenarioRecord(entry.file_hash, entry.description, entry.twins, entry.suite) for entry in entries.values()
        ],
        cells=len(planned.cells),
        trials=[trial_record(cell, 0, Outcome([], 0, failure=failure)) for cell, failure in planned.absent],
        noise=of_machine(state, processors()),
        flops=planned.flops,
    )


def resumed_record(earlier: Record, begun: Record) -> Record:
    """Return a run's record where it goes on with an earlier one: it began when that one did."""
    return dataclasses.replace(
        begun,
        started=earlier.started,
        resumed=earlier.resumed,
        noise=list(dict.fromkeys([*earlier.noise, *begun.noise])),
        trials=[*begun.trials, *earlier.trials],
        parent_cpu_ns=earlier.parent_cpu_ns,
    )


def sitting(earlier: Record | None, now_s: float, booted_s: float) -> int:
    """Return in which sitting a run is that begins now or goes on: both times in s since 1970."""
    measured = [trial for trial in earlier.trials if trial.measurement] if earlier else []
    if earlier is None or not measured:
        return 1
    ended_s = text.seconds(max(trial.ended for trial in measured) or earlier.finished or earlier.started)
    is_another = now_s - ended_s > SITTING_ENDS_S or booted_s > ended_s
    return max(trial.sitting for trial in measured) + is_another


def trial_request(cell: Cell, protocol: Protocol, planned: Plan) -> TrialRequest:
    """Return what a trial of a cell is asked for."""
    return TrialRequest(
        scenario=cell.selected.entry.name,
        file=cell.selected.entry.place,
        file_hash=cell.selected.entry.file_hash,
        regime=cell.selected.regime.name,
        backend=cell.backend,
        device=cell.device,
        seed=planned.asked.seed,
        data=planned.asked.data,
        protocol=protocol,
        options=cell.options,
        twin_hash=cell.selected.entry.twins[cell.backend] if cell.options.native else "",
        given=cell.selected.entry.given,
    )


def trial_record(cell: Cell, index: int, outcome: Outcome, bout: int = 0, beside_others: bool = False) -> TrialRecord:
    """Return a trial's record in this round and bout, without what surrounded it."""
    return TrialRecord(
        round=index,
        scenario=cell.selected.entry.name,
        regime=cell.selected.regime.name,
        backend=cell.backend,
        device=cell.device,
        wall_ns=outcome.wall_ns,
        phases=outcome.phases,
        measurement=outcome.measurement,
        failure=outcome.failure,
        options=cell.options,
        protocol=cell.protocol.kind,
        bout=bout,
        started_alone=outcome.started_alone,
        code=record.measuring_code(),
        ended=text.now(),
        crowded=beside_others and _is_crowded(outcome, cell.device),
    )


def _is_crowded(outcome: Outcome, device: Device) -> bool:
    """Whether a trial failed beside others as it may not by itself.

    Because memory had run out, which takes many names on a GPU, where a card may also be for one process alone: there,
    for whatever reason before it could be measured.
    """
    failure = outcome.failure
    if failure is None or failure.own_limit:
        return False
    return failure.code is Code.OOM or (device.kind == GPU and not outcome.had_turn)


def not_tried(cell: Cell, larger: Cell, failure: Failure, index: int) -> TrialRecord:
    """Return the record of a larger size than the one at which a cell of a sweep ran out of memory."""
    size = cell.options.size.label.replace("=", " ") if cell.options.size else ""
    said = Failure(Code.OOM, f"not tried: out of memory at {size}", failure.remedy)
    return trial_record(larger, index, Outcome([], 0, failure=said))


def processors() -> int:
    """Return the machine's processors, those included that this process may not use: counters are of all."""
    return psutil.cpu_count() or 1


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
        failures = cells.judge_cells({column: summarize_cell(found) for column, found in trials.items()})
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
