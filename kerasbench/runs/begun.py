"""The records of a run: of the whole as it begins or goes on, and of each trial."""

import dataclasses

import psutil

from kerasbench import text
from kerasbench.analysis.verdicts import minimal_effect
from kerasbench.children.trial import Outcome
from kerasbench.exchange.devices import GPU, Device
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.requests import Protocol, TrialRequest
from kerasbench.machine.state import State
from kerasbench.plan.cells import Cell, Plan
from kerasbench.quiet.signals import of_machine
from kerasbench.results import code
from kerasbench.results.record import Record, ScenarioRecord, TrialRecord

SITTING_ENDS_S = 3_600.0  # after so long the machine may be another: what else it does, how warm it is


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
        scenarios=[
            ScenarioRecord(entry.file_hash, entry.description, entry.twins, entry.suite) for entry in entries.values()
        ],
        cells=len(planned.cells),
        trials=[record_of(cell, 0, Outcome([], 0, failure=failure)) for cell, failure in planned.absent],
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


def sitting(earlier: Record | None, now_s: float, booted_s: float) -> int:
    """Return in which sitting a run is that begins now or goes on: both times in s since 1970."""
    measured = [trial for trial in earlier.trials if trial.measurement] if earlier else []
    if earlier is None or not measured:
        return 1
    ended_s = text.seconds(max(trial.ended for trial in measured) or earlier.finished or earlier.started)
    is_another = now_s - ended_s > SITTING_ENDS_S or booted_s > ended_s
    return max(trial.sitting for trial in measured) + is_another


def request_of(cell: Cell, protocol: Protocol, planned: Plan) -> TrialRequest:
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


def record_of(cell: Cell, index: int, outcome: Outcome, bout: int = 0, beside_others: bool = False) -> TrialRecord:
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
        code=code.measuring(),
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
    return record_of(larger, index, Outcome([], 0, failure=said))


def processors() -> int:
    """Return the machine's processors, those included that this process may not use: counters are of all."""
    return psutil.cpu_count() or 1
