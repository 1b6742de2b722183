"""The rounds: one trial after another, saved as they end, until there is enough."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol as Interface

import psutil

from kerasbench import text
from kerasbench.analysis.verdicts import minimal_effect
from kerasbench.children import limits
from kerasbench.children.limits import Limits
from kerasbench.children.trial import Outcome
from kerasbench.errors import ResultsError
from kerasbench.exchange.devices import Device
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.requests import Protocol, TrialRequest
from kerasbench.machine.state import State
from kerasbench.plan import cells as plan_cells
from kerasbench.plan.cells import Cell, Plan
from kerasbench.quiet.signals import Surroundings, of_machine, of_measurement, of_surroundings, top_clock
from kerasbench.results.keys import CellKey
from kerasbench.results.record import INTERRUPTED, UNWRITTEN, Record, ScenarioRecord, TrialRecord
from kerasbench.results.store import Store
from kerasbench.runs.stopping import _half_widths, precision_of, stop_reason

WARMUP_MARGIN = 1.5  # later trials warm up that much longer than the first one needed
WARMUP_MAX_BLOCKS = 30
MAX_REPLACEMENTS = 1  # of an invalid trial in a round: what is invalid twice is how this cell is


class Launch(Interface):
    """Runs one trial and tells how it goes meanwhile."""

    def __call__(
        self, request: TrialRequest, limits: Limits, on_phase: Callable[[str], None], on_tick: Callable[[], None], /
    ) -> Outcome: ...


class Watcher(Interface):
    """Runs one trial when the machine is quiet and says what went on around it."""

    def __call__(
        self, device: Device, trial: Callable[[], Outcome], on_wait: Callable[[str], None], /
    ) -> tuple[Outcome, Surroundings]: ...


class Observer(Interface):
    """Who is told how a run goes."""

    def run_began(self, planned: Plan, record: Record) -> None: ...
    def gate_closed(self, cell: Cell, reason: str) -> None: ...
    def trial_began(self, cell: Cell, round_index: int) -> None: ...
    def phase_began(self, phase: str) -> None: ...
    def tick(self) -> None: ...
    def trial_ended(self, cell: Cell, trial: TrialRecord) -> None: ...
    def round_ended(self, record: Record) -> None: ...
    def run_ended(self) -> None: ...


@dataclass
class Run:
    """One run. ``launch`` runs a trial, wherever it likes (trial.launch: a child process here).

    ``earlier`` is the run that this one goes on with, with those of its trials that count as this run's.
    """

    planned: Plan
    store: Store
    launch: Launch
    watch: Watcher
    observer: Observer
    state: State
    earlier: Record | None = None
    order: Callable[[Sequence[Cell], int, int], list[Cell]] = plan_cells.order
    clock_s: Callable[[], float] = time.monotonic
    record: Record = field(init=False)
    _protocols: dict[CellKey, Protocol] = field(init=False)
    _top_clocks_mhz: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.record = begin(self.planned, self.state)
        if self.earlier is not None:
            self.record = going_on(self.earlier, self.record)
        self._protocols = {cell.key: cell.protocol for cell in self.planned.cells}

    def execute(self) -> Record:
        """Measure the plan's cells round by round and return the record, each trial of which ``store`` holds at once.

        Ctrl-C ends the trial in flight and the run, and so does a disk that takes no more results; the record then
        says so. How the run ended is in the record alone: the caller saves it.

        Raises:
            ResultsError: the disk refuses the journal before anything has been measured.
        """
        self.store.begin(self.record)
        try:
            self.observer.run_began(self.planned, self.record)
            self._rounds()
        except KeyboardInterrupt:
            self.record.stopped_because = INTERRUPTED
        except ResultsError:
            self.record.stopped_because = UNWRITTEN
        finally:
            self.observer.run_ended()
        self.record.finished = text.now()
        return self.record

    def _rounds(self) -> None:
        alive, widths, began_s = list(self.planned.cells), [], self.clock_s()
        while alive and not self.record.stopped_because:
            index, had = self.record.rounds_completed + 1, len(self.record.trials)
            for cell in self.order(alive, self.planned.asked.seed, index):
                if cell in alive and not self._measure(cell, index):
                    alive.remove(cell)  # it would fail again, and cost a time-out each round
                    self._end_series(cell, alive, index)
            self.record.rounds_completed = index
            widths.append(_half_widths(self.record, alive, index))
            spent_s = self.clock_s() - began_s + self._earlier_s(index)
            self.record.stopped_because = stop_reason(
                self.planned.effort, widths, spent_s, precision_of(self.record.minimal_effect)
            )
            if len(self.record.trials) > had:
                self.observer.round_ended(self.record)
        nothing = "every cell has failed" if self.planned.cells else "no cell can be measured"
        self.record.stopped_because = self.record.stopped_because or nothing

    def _earlier_s(self, index: int) -> float:
        """Return how long the trials took, up to a round, that the earlier run has left."""
        found = self.earlier.trials if self.earlier else []
        return sum(one.wall_ns for one in found if one.round <= index) / 1e9

    def _measure(self, cell: Cell, index: int) -> bool:
        """Measure a cell in this round, once more where that was disturbed; tell whether it can be measured."""
        tried = [one for one in self.record.trials if one.cell == cell.key and one.round == index]
        while not is_settled(tried):
            trial = self._trial(cell, index)
            tried.append(trial)
            self.record.trials.append(trial)
            self.store.add(trial)
            self.observer.trial_ended(cell, trial)
        measurement = tried[-1].measurement
        if measurement is None:
            return False
        self._protocols[cell.key] = freeze(self._protocols[cell.key], measurement)
        return True

    def _end_series(self, cell: Cell, alive: list[Cell], index: int) -> None:
        """Where a cell of a sweep has run out of memory, give up the larger ones that have not been measured yet."""
        failure = next((one.failure for one in reversed(self.record.trials) if one.cell == cell.key), None)
        if failure is None or failure.code is not Code.OOM:
            return
        tried = {one.cell for one in self.record.trials}
        for larger in plan_cells.larger_in_series(cell, [one for one in alive if one.key not in tried]):
            trial = _record(larger, index, Outcome([], 0, failure=_not_tried(cell, failure)))
            self.record.trials.append(trial)
            self.store.add(trial)
            self.observer.trial_ended(larger, trial)
            alive.remove(larger)

    def _trial(self, cell: Cell, index: int) -> TrialRecord:
        request = _request(cell, self._protocols[cell.key], self.planned)

        def launched() -> Outcome:
            self.observer.trial_began(cell, index)
            cpu_ns = time.process_time_ns()
            outcome = self.launch(request, self._limits(cell), self.observer.phase_began, self.observer.tick)
            self.record.parent_cpu_ns += time.process_time_ns() - cpu_ns
            return outcome

        outcome, seen = self.watch(cell.device, launched, lambda reason: self.observer.gate_closed(cell, reason))
        signals = of_surroundings(seen, processors(), self._top_clock(cell.device, seen))
        if outcome.measurement is not None:
            undisturbed = [one for one in self.record.trials if one.cell == cell.key and not one.disturbed]
            earlier = [one.measurement for one in undisturbed if one.measurement]
            signals += of_measurement(outcome.measurement, earlier)
        return dataclasses.replace(_record(cell, index, outcome), surroundings=seen, noise=signals)

    def _limits(self, cell: Cell) -> Limits:
        asked = self.planned.asked
        took_s = (one.wall_ns / 1e9 for one in self.record.trials if one.cell == cell.key and one.measurement)
        return limits.of_trial(
            asked.timeout_s, asked.memory_limit_bytes, asked.effort.protocol.kind, next(took_s, None)
        )

    def _top_clock(self, device: Device, seen: Surroundings) -> int | None:
        """Return the highest SM clock that this run has seen on the card."""
        known = (self._top_clocks_mhz.get(device.label), top_clock(seen.gpu or []))
        highest = max((mhz for mhz in known if mhz is not None), default=None)
        if highest is not None:
            self._top_clocks_mhz[device.label] = highest
        return highest


def begin(planned: Plan, state: State) -> Record:
    """Return the record of a run of which nothing has been measured yet."""
    entries = {
        id(cell.selected.entry): cell.selected.entry for cell in [*planned.cells, *(c for c, _ in planned.absent)]
    }
    return Record(
        asked=planned.asked,
        machine=planned.machine,
        started=text.now(),
        minimal_effect=minimal_effect(state.on_battery is True),
        scenarios=[ScenarioRecord(entry.file_hash, entry.description, entry.twins) for entry in entries.values()],
        cells=len(planned.cells),
        trials=[_record(cell, 0, Outcome([], 0, failure=failure)) for cell, failure in planned.absent],
        noise=of_machine(state, processors()),
        flops=planned.flops,
    )


def going_on(earlier: Record, begun: Record) -> Record:
    """Return a run's record where it goes on with an earlier one: it began when that one did."""
    return dataclasses.replace(
        begun,
        started=earlier.started,
        resumed=earlier.resumed,
        noise=list(dict.fromkeys([*earlier.noise, *begun.noise])),
        trials=[*begun.trials, *earlier.trials],
        parent_cpu_ns=earlier.parent_cpu_ns,
    )


def is_settled(tried: Sequence[TrialRecord]) -> bool:
    """Tell whether a cell needs no further trial in a round: one was undisturbed, or it has been repeated enough."""
    return len(tried) > MAX_REPLACEMENTS or any(not trial.disturbed for trial in tried)


def freeze(protocol: Protocol, measurement: Measurement) -> Protocol:
    """Return the protocol for the cell's later trials: what the first one calibrated, with a margin on the warm-up."""
    if protocol.steps_per_block is not None:
        return protocol
    training = measurement.training
    needed = sum(block.count == training.steps_per_block for block in training.warmup)
    return dataclasses.replace(
        protocol,
        steps_per_block=training.steps_per_block,
        warmup_blocks=min(WARMUP_MAX_BLOCKS, math.ceil(WARMUP_MARGIN * needed)),
    )


def processors() -> int:
    """Return the machine's processors, those included that this process may not use: counters are of all."""
    return psutil.cpu_count() or 1


def _request(cell: Cell, protocol: Protocol, planned: Plan) -> TrialRequest:
    return TrialRequest(
        scenario=cell.selected.entry.name,
        file=str(cell.selected.entry.file.resolve()),
        file_hash=cell.selected.entry.file_hash,
        regime=cell.selected.regime.name,
        backend=cell.backend,
        device=cell.device,
        seed=planned.asked.seed,
        data=planned.asked.data,
        protocol=protocol,
        options=cell.options,
        twin_hash=cell.selected.entry.twins[cell.backend] if cell.options.native else "",
    )


def _not_tried(cell: Cell, failure: Failure) -> Failure:
    size = cell.options.size.label.replace("=", " ") if cell.options.size else ""
    return Failure(Code.OOM, f"not tried: out of memory at {size}", failure.remedy)


def _record(cell: Cell, index: int, outcome: Outcome) -> TrialRecord:
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
    )
