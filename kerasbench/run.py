"""The rounds: one trial after another, saved as they end, until there is enough."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Protocol as Interface

from kerasbench import machine, plan, results
from kerasbench.errors import ResultsError
from kerasbench.plan import Cell, Effort, Plan
from kerasbench.results import Record, ScenarioRecord, Store, TrialRecord
from kerasbench.summary import summarize_cell
from kerasbench.trial import Outcome
from kerasbench.wire import Measurement, Protocol, TrialRequest

PRECISION = 0.02  # half-width of every cell's interval at which further rounds add nothing that matters
WARMUP_MARGIN = 1.5  # later trials warm up that much longer than the first one needed
WARMUP_MAX_BLOCKS = 30


class Launch(Interface):
    """Runs one trial and tells how it goes meanwhile."""

    def __call__(
        self, request: TrialRequest, on_phase: Callable[[str], None], on_tick: Callable[[], None], /
    ) -> Outcome: ...


class Observer(Interface):
    """Who is told how a run goes."""

    def run_began(self, plan: Plan) -> None: ...
    def trial_began(self, cell: Cell, round_index: int) -> None: ...
    def phase_began(self, phase: str) -> None: ...
    def tick(self) -> None: ...
    def trial_ended(self, cell: Cell, outcome: Outcome) -> None: ...
    def run_ended(self) -> None: ...


def execute(planned: Plan, store: Store, launch: Launch, observer: Observer) -> Record:
    """Measure the plan's cells round by round and return the record, which ``store`` holds after every trial.

    ``launch`` runs one trial, wherever it likes (trial.launch: a child process here).

    Ctrl-C ends the trial in flight and the run, and so does a disk that takes no more results; the record then says
    so. How the run ended is in the record alone: the caller saves it.

    Raises:
        ResultsError: the disk refuses the result file before anything has been measured.
    """
    record = begin(planned)
    store.save(record)
    observer.run_began(planned)
    try:
        _run_rounds(record, planned, store, launch, observer)
    except KeyboardInterrupt:
        record.stopped_because = results.INTERRUPTED
    except ResultsError:
        record.stopped_because = "results could not be written"
    finally:
        observer.run_ended()
    record.finished = results.now()
    return record


def begin(planned: Plan) -> Record:
    """Return the record of a run of which nothing has been measured yet."""
    entries = {
        id(cell.selected.entry): cell.selected.entry for cell in [*planned.cells, *(c for c, _ in planned.absent)]
    }
    return Record(
        machine=machine.fingerprint(),
        started=results.now(),
        seed=planned.seed,
        data=planned.data,
        protocol=planned.effort.protocol.kind,
        max_rounds=planned.effort.max_rounds,
        scenarios=[ScenarioRecord(entry.file_hash, entry.description) for entry in entries.values()],
        trials=[_record(cell, 0, Outcome([], 0, failure=failure)) for cell, failure in planned.absent],
    )


def _run_rounds(record: Record, planned: Plan, store: Store, launch: Launch, observer: Observer) -> None:
    protocols = {cell.key: planned.effort.protocol for cell in planned.cells}
    alive = list(planned.cells)
    while alive and not record.stopped_because:
        index = record.rounds_completed + 1
        for cell in plan.order(alive, planned.seed, index):
            observer.trial_began(cell, index)
            cpu_ns = time.process_time_ns()
            request = _request(cell, protocols[cell.key], planned)
            outcome = launch(request, observer.phase_began, observer.tick)
            record.parent_cpu_ns += time.process_time_ns() - cpu_ns
            record.trials.append(_record(cell, index, outcome))
            if outcome.measurement is None:
                alive.remove(cell)  # it would fail again, and cost a time-out each round
            else:
                protocols[cell.key] = freeze(protocols[cell.key], outcome.measurement)
            store.save(record)
            observer.trial_ended(cell, outcome)
        record.rounds_completed = index
        record.stopped_because = stop_reason(planned.effort, index, _half_widths(record, alive))
    record.stopped_because = record.stopped_because or "every cell has failed"


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


def stop_reason(effort: Effort, rounds_completed: int, half_widths: list[float | None]) -> str:
    """Say why a run ends after this round; an empty string means that it goes on.

    ``half_widths`` are the intervals' of all cells that are still measured, as shares of their values.
    """
    if rounds_completed >= effort.max_rounds:
        return f"all {effort.max_rounds} rounds are done" if effort.max_rounds > 1 else "one round was asked for"
    precise = all(width is not None and width <= PRECISION for width in half_widths)
    if rounds_completed >= effort.min_rounds and half_widths and precise:
        return f"every interval is within ±{PRECISION:.0%}"
    return ""


def _half_widths(record: Record, cells: list[Cell]) -> list[float | None]:
    """Return the half-width of each cell's training step so far."""
    widths: list[float | None] = []
    for cell in cells:
        found = summarize_cell(one for one in record.trials if one.cell == cell.key).estimate("train_step_ms")
        widths.append(found.half_width if found else None)
    return widths


def _request(cell: Cell, protocol: Protocol, planned: Plan) -> TrialRequest:
    return TrialRequest(
        scenario=cell.selected.entry.name,
        file=str(cell.selected.entry.file.resolve()),
        file_hash=cell.selected.entry.file_hash,
        regime=cell.selected.regime.name,
        backend=cell.backend,
        device=cell.device,
        seed=planned.seed,
        data=planned.data,
        protocol=protocol,
    )


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
    )
