"""The records of a run: of the whole as it begins or goes on, and of each trial.

The rows of a run: what each is measured by, which of its columns still are, and what it has had.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import psutil

from kerasbench import text
from kerasbench.analysis import cases
from kerasbench.analysis.cases import summarize_case
from kerasbench.analysis.estimates import minimal_effect
from kerasbench.host.noise import State, of_machine
from kerasbench.plan.cases import Case, Plan
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import GPU, CaseKey, Column, Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.results import record
from kerasbench.results.record import Record, ScenarioRecord, TrialRecord
from kerasbench.runs.schedule import Ending

SITTING_ENDS_S = 3_600.0  # after so long the machine may be another: what else it does, how warm it is


def new_record(planned: Plan, state: State) -> Record:
    """Return the record of a run of which nothing has been measured yet."""
    entries = {
        id(case.selected.entry): case.selected.entry for case in [*planned.cases, *(c for c, _ in planned.absent)]
    }
    return Record(
        config=planned.config,
        machine=planned.machine,
        started=text.now(),
        minimal_effect=minimal_effect(state.on_battery is True),
        scenarios=[
            ScenarioRecord(entry.file_hash, entry.description, entry.twins, entry.suite) for entry in entries.values()
        ],
        cases=len(planned.cases),
        trials=[trial_record(case, 0, Outcome([], 0, failure=failure)) for case, failure in planned.absent],
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


def trial_request(case: Case, protocol: Protocol, planned: Plan) -> TrialRequest:
    """Return what a trial of a case is asked for."""
    return TrialRequest(
        scenario=case.selected.entry.name,
        file=case.selected.entry.place,
        file_hash=case.selected.entry.file_hash,
        workload=case.selected.workload.name,
        backend=case.backend,
        device=case.device,
        seed=planned.config.seed,
        data=planned.config.data,
        protocol=protocol,
        options=case.options,
        twin_hash=case.selected.entry.twins[case.backend] if case.options.native else "",
        model_config=case.selected.entry.model_config,
    )


def trial_record(case: Case, index: int, outcome: Outcome, block: int = 0, beside_others: bool = False) -> TrialRecord:
    """Return a trial's record in this round and block, without what surrounded it."""
    return TrialRecord(
        round=index,
        scenario=case.selected.entry.name,
        workload=case.selected.workload.name,
        backend=case.backend,
        device=case.device,
        wall_ns=outcome.wall_ns,
        phases=outcome.phases,
        measurement=outcome.measurement,
        failure=outcome.failure,
        options=case.options,
        protocol=case.protocol.kind,
        block=block,
        started_alone=outcome.started_alone,
        code=record.measuring_code(),
        ended=text.now(),
        crowded=beside_others and _is_crowded(outcome, case.device),
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


def not_tried(case: Case, larger: Case, failure: Failure, index: int) -> TrialRecord:
    """Return the record of a larger size than the one at which a case of a sweep ran out of memory."""
    size = case.options.size.label.replace("=", " ") if case.options.size else ""
    said = Failure(Code.OOM, f"not tried: out of memory at {size}", failure.remedy)
    return trial_record(larger, index, Outcome([], 0, failure=said))


def processors() -> int:
    """Return the machine's processors, those included that this process may not use: counters are of all."""
    return psutil.cpu_count() or 1


WARMUP_MARGIN = 1.5  # later trials warm up that much longer than the first one needed
WARMUP_MAX_SLICES = 30
ALONE = 3  # blocks of a row whose children start one after another, for cold figures with an interval


@dataclass
class Calibration:
    """What a case's trials have taught for its later ones: what was calibrated, and what they took."""

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
    """Cases that are measured together; ``had``: in so many rounds. ``ending``: why in no further one.

    ``crowded`` are those that failed beside others, as they may not by themselves, and are measured alone from then on.
    """

    cases: list[Case]
    had: int = 0
    widths: list[list[float | None]] = field(default_factory=list)
    ending: Ending | None = None
    alive: list[Case] = field(init=False)
    known: dict[CaseKey, Calibration] = field(init=False)
    crowded: set[CaseKey] = field(default_factory=set)
    trials: list[TrialRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.alive = list(self.cases)
        self.known = {case.key: Calibration(case.protocol) for case in self.cases}

    @property
    def over(self) -> bool:
        return self.ending is not None or not self.alive

    @property
    def is_broken(self) -> bool:
        """Whether one of two versions is no longer measured: then the other has nothing that it is compared with."""
        versions = [case for case in self.alive if not case.options.control]
        return len(self.cases) > 1 and self.cases[0].paired and len(versions) < 2

    @property
    def starts_alone(self) -> bool:
        """Whether its children start one after another: on a GPU always, where XLA chooses kernels by timing them."""
        return self.had < ALONE or any(case.device.kind == GPU for case in self.cases)

    @property
    def block_s(self) -> float:
        """How long its blocks of one round have taken on average."""
        return seconds(self.trials) / self.had if self.had else 0.0

    def arrange(self, drawn: Sequence[Case]) -> None:
        """Put the cases that are still measured into the order in which a round starts them.

        It is drawn for each round, so that no column always starts first, with the coldest disk. Once a round could not
        have all of them alive together its order stays, so that the same ones meet in each round.
        """
        blocks: dict[int, set[int]] = {}
        for trial in self.trials:
            blocks.setdefault(trial.round, set()).update({trial.block} - {0})
        split = next((index for index, found in blocks.items() if len(found) > 1), None)
        keys = [trial.case for trial in self.trials if trial.round == split] or [case.key for case in drawn]
        place = {key: number for number, key in reversed(list(enumerate(keys)))}
        self.alive.sort(key=lambda case: place.get(case.key, len(keys)))

    def take(self, trial: TrialRecord) -> None:
        """Take a trial in. A case that failed would fail again, and cost a time-out each round: it is over.

        One that was crowded is over where it was alone.
        """
        self.trials.append(trial)
        if trial.crowded:
            self.crowded.add(trial.case)
        elif trial.measurement is None:
            self.alive = [case for case in self.alive if case.key != trial.case]
        else:
            self.known[trial.case].take(trial, trial.measurement)

    def odd(self) -> list[tuple[Case, Failure]]:
        """Return the cases that compute something else than the others of those that are still measured."""
        trials: dict[Column, list[TrialRecord]] = {}
        for trial in self.trials:
            trials.setdefault(trial.column, []).append(trial)
        failures = cases.judge_cases({column: summarize_case(found) for column, found in trials.items()})
        return [(case, failures[case.column]) for case in self.alive if case.column in failures]

    def give_up(self, cases: Sequence[Case]) -> None:
        """Leave out cases that have not been tried and will not be."""
        self.alive = [case for case in self.alive if case not in cases]


def rows_of(planned: Plan) -> list[Row]:
    """Return the rows of a plan: cases of one workload and size; each case by itself where all epochs are run."""
    found: dict[object, list[Case]] = {}
    for case in planned.cases:
        row = case.key if case.protocol.kind == "published" else case.row
        found.setdefault(row, []).append(case)
    return [Row(cases) for cases in found.values()]


def ordered(rows: Iterable[Row], cases: Sequence[Case]) -> list[Row]:
    """Return the rows in the order in which their first cases come."""
    place = {case.key: number for number, case in reversed(list(enumerate(cases)))}
    return sorted(rows, key=lambda row: min(place[case.key] for case in row.cases))


def seconds(trials: Iterable[TrialRecord]) -> float:
    """Return how long trials took in all: those of a block were alive together, about as long as the longest.

    What each waited for the machine to cool down counts too.
    """
    blocks: dict[int, float] = {}
    alone_s = 0.0
    for trial in trials:
        if trial.block:
            blocks[trial.block] = max(blocks.get(trial.block, 0.0), _taken_s(trial))
        else:
            alone_s += _taken_s(trial)
    return alone_s + sum(blocks.values())


def _taken_s(trial: TrialRecord) -> float:
    return trial.wall_ns / 1e9 + (trial.surroundings.waited_s if trial.surroundings else 0.0)


def freeze(protocol: Protocol, measurement: Measurement) -> Protocol:
    """Return the protocol for the case's later trials: what the first one calibrated, with a margin on the warm-up."""
    training = measurement.training
    if protocol.steps_per_slice is not None or training is None:
        return protocol
    needed = sum(slice_.count == training.steps_per_slice for slice_ in training.warmup)
    return dataclasses.replace(
        protocol,
        steps_per_slice=training.steps_per_slice,
        warmup_slices=min(WARMUP_MAX_SLICES, math.ceil(WARMUP_MARGIN * needed)),
    )
