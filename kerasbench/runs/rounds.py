"""The rounds of a run: one block after another, each saved as it ends, until every row has enough."""

import dataclasses
import signal
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Self

import psutil

from kerasbench import backends, text
from kerasbench.analysis import ratios
from kerasbench.analysis.estimates import minimal_effect
from kerasbench.errors import ResultsError
from kerasbench.events import (
    BlockStarted,
    CycleEnded,
    Event,
    Notice,
    OnEvent,
    RoundEnded,
    RowEnded,
    RunEnded,
    RunStarted,
    StepsKnown,
    TrialEnded,
    Waiting,
)
from kerasbench.files import scratch_folder
from kerasbench.host import commit, load
from kerasbench.host.load import LoadLimit
from kerasbench.host.noise import MachineState, of_machine
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.duration import History
from kerasbench.processes.block import BlockMember, BlockPolicy, OnBlockEvent
from kerasbench.processes.outcome import Outcome, trial_limits
from kerasbench.processes.process import available_bytes
from kerasbench.protocol.columns import CPU, GPU, CaseKey, Device, Environment
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Protocol, Sizes, TrialRequest
from kerasbench.results.code import measuring_code
from kerasbench.results.run import (
    INTERRUPTED,
    UNWRITTEN,
    Run,
    RunConfig,
    ScenarioFacts,
    Trial,
    completed_rounds,
)
from kerasbench.results.store import Store
from kerasbench.runs import schedule, sizes, turns
from kerasbench.runs.machine import (
    CHILD_BYTES,
    MachineMonitor,
    can_start_at_once,
    card_now,
    memory_budget,
    processors,
)
from kerasbench.runs.rows import OpenRow, ordered, rows_of, seconds
from kerasbench.runs.schedule import Between, StopReason, first_portion, next_portion
from kerasbench.scenario import is_saved

SITTING_ENDS_S = 3_600.0  # after so long the machine may be another: what else it does, how warm it is


def new_record(planned: Plan, state: MachineState) -> Run:
    """Return the record of a run of which nothing has been measured yet."""
    cases = [*planned.cases, *(case for case, _ in planned.absent)]
    entries = {id(case.selected.entry): case.selected.entry for case in cases}.values()
    return Run(
        config=planned.config,
        machine=planned.machine,
        started=text.now(),
        minimal_effect=minimal_effect(state.on_battery is True),
        scenarios=[
            ScenarioFacts(entry.file_hash, entry.description, entry.baselines, entry.suite) for entry in entries
        ],
        cases=len(planned.cases),
        trials=[trial_record(case, 0, Outcome([], 0, failure=failure)) for case, failure in planned.absent],
        noise=of_machine(state, planned.machine.cores),
        load=limit_on(Device(CPU), None, planned, state),
        flops=planned.flops,
        commit=commit(),
    )


def limit_on(device: Device, threads: int | None, planned: Plan, state: MachineState) -> LoadLimit:
    """Return from when on others disturb a column on this machine."""
    return load.limit_of(device, threads, state.busy_share, planned.machine.cores, processors())


def resumed_record(earlier: Run, new: Run) -> Run:
    """Return a run's record where it goes on with an earlier one: it started when that one did."""
    return dataclasses.replace(
        new,
        started=earlier.started,
        minimal_effect=max(earlier.minimal_effect, new.minimal_effect),  # some of it was measured on battery
        resumed=earlier.resumed,
        noise=list(dict.fromkeys([*earlier.noise, *new.noise])),
        trials=[*new.trials, *earlier.trials],
        parent_cpu_ns=earlier.parent_cpu_ns,
    )


def sitting(record: Run, now_s: float, booted_s: float) -> int:
    """Return the number of the sitting in which a run starts now or goes on: both times in s since 1970."""
    measured = [trial for trial in record.trials if trial.measurement]
    if not measured:
        return 1
    ended = max((trial.ended for trial in record.trials if trial.round), default="")  # 0: it could not be tried
    ended_s = text.seconds(ended or record.finished or record.started)
    is_another = now_s - ended_s > SITTING_ENDS_S or booted_s > ended_s
    return max(trial.sitting for trial in measured) + is_another


def trial_request(case: Case, protocol: Protocol, config: RunConfig, caches: str = "") -> TrialRequest:
    """Return what a child is asked for; ``caches``: the folder of a case that finds what was compiled before."""
    entry = case.selected.entry
    return TrialRequest(
        scenario=entry.name,
        file=entry.place,
        file_hash=entry.file_hash,
        workload=case.selected.workload.name,
        backend=case.backend,
        device=case.device,
        seed=config.seed,
        data=config.data,
        protocol=protocol,
        options=case.options,
        baseline_hash=entry.baselines[case.backend] if case.options.native else "",
        model_config=entry.model_config,
        caches=caches,
    )


def trial_record(case: Case, index: int, outcome: Outcome, block: int = 0, beside_others: bool = False) -> Trial:
    """Return a trial's record in this round and block, without what surrounded it."""
    return Trial(
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
        code=measuring_code(case.column),
        ended=text.now(),
        crowded=beside_others and _may_be_crowded(outcome, case.device.kind),
    )


def filling(request: TrialRequest) -> TrialRequest:
    """Return a request that compiles what another one will, and hardly measures."""
    short = dataclasses.replace(
        request.protocol,
        slice_ns=1,
        warmup_min_ns=0,
        warmup_max_ns=0,
        predict_warmup_ns=0,
        repeats=False,
    )
    return dataclasses.replace(request, protocol=short, fills_caches=True)


def _may_be_crowded(outcome: Outcome, device_kind: str) -> bool:
    """Tell whether a trial that failed beside others may not fail by itself.

    Because memory had run out, which takes many names on a GPU, where a card may also be for one process alone: there,
    for whatever reason before it could be measured.
    """
    failure = outcome.failure
    if failure is None or failure.own_limit:
        return False
    return failure.code is Code.OOM or (device_kind == GPU and not outcome.had_turn)


def not_tried(case: Case, larger: Case, failure: Failure, index: int) -> Trial:
    """Return the record of a larger size than the one at which a case of a sweep ran out of memory."""
    size = case.options.size.label.replace("=", " ") if case.options.size else ""
    skipped = Failure(Code.OOM, f"not tried: out of memory at {size}", failure.remedy)
    return trial_record(larger, index, Outcome([], 0, failure=skipped))


class Ending:
    """Takes the first interruption of a soak for its end, once there is something to keep; later ones are raised.

    It is over too when none of the columns that are ``needed`` is left: a control is there for them alone. Without
    such, only an interruption ends it.
    """

    def __init__(self, on_event: OnEvent, needed: Set[str]) -> None:
        self.asked = False
        self._on_event = on_event
        self._needed = needed  # by their labels
        self._left: Collection[str] | None = None  # the columns of the newest cycle; None: there was none
        self._said = False
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
            self._before = {number: handler for number, handler in handlers.items() if callable(handler)}
        for number in self._before:
            signal.signal(number, self.take)
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def is_over(self) -> bool:
        has_lost_them = bool(self._needed) and self._left is not None and self._needed.isdisjoint(self._left)
        return self.asked or has_lost_them

    def take(self, number: int, frame: FrameType | None) -> None:
        """Heed a signal."""
        if self._left is not None and not self.asked:
            self.asked = True
        else:
            self._before[number](number, frame)

    def hear(self, event: Event) -> None:
        """Pass an event on; say that the end was asked for."""
        if isinstance(event, CycleEnded):
            self._left = event.slices.keys()
        if self.asked and not self._said:
            self._said = True
            self._on_event(Notice("ending after this turn; what was measured is kept. Ctrl-C again discards it"))
        self._on_event(event)


# Measures one block, as processes.block.measure does. None: a member was not started.
Launch = Callable[[Sequence[BlockMember], BlockPolicy, OnBlockEvent, bool], Sequence[Outcome | None]]

# Of the memory that a machine, or a container, has left, for a saved model whose user set no limit: a hostile one must
# not bring it down.
SAVED_SHARE = 0.75


@dataclass
class Rounds:
    """One run of a plan."""

    planned: Plan
    store: Store
    launch: Launch
    monitor: MachineMonitor
    on_event: OnEvent
    state: MachineState  # of the machine before the first child
    earlier: Run | None = None  # the run that this one goes on with, with those of its trials that count
    history: History = field(default_factory=History)
    interpreter: Callable[[Environment], str] = lambda environment: ""
    in_order: Callable[[Sequence[Case], int, int], list[Case]] = schedule.order_cases
    between: Between = ratios.ratio_of
    record: Run = field(init=False)
    rows: list[OpenRow] = field(init=False)
    _most_bytes: int = field(init=False)  # that a saved model may hold, in all of its trials
    _rest_s: float = field(init=False)  # nobody runs for so long before each turn
    _caches: dict[CaseKey, str] = field(default_factory=dict)  # folders that go with the run
    _folders: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self._rest_s = turns.rest_s(self.state.quota_cores, self.planned.machine.cores)
        free_bytes = min(self.planned.machine.memory_bytes, available_bytes())
        self._most_bytes = max(CHILD_BYTES, int(SAVED_SHARE * free_bytes))
        self.record = new_record(self.planned, self.state)
        self.rows = rows_of(self.planned)
        for row in self.rows:
            row.portion = first_portion(self.planned.config, row.cases)
        if self.earlier is not None:
            self.record = resumed_record(self.earlier, self.record)
            self._restore()

    def execute(self) -> Run:
        """Measure the plan's rows round by round and return the record, each block of which ``store`` holds at once.

        Ctrl-C ends the block in flight and the run, and so does a disk that takes no more results; the record then
        says so. How the run ended is in the record alone: the caller saves it.

        Raises:
            ResultsError: the disk refuses the journal before anything has been measured.
        """
        self.store.begin(self.record)
        self.store.hold()
        try:
            self.on_event(RunStarted(self.planned, self.record, self.history))
            with self._folders:
                self._measure_rounds()
        except KeyboardInterrupt:
            self.record.stopped_because = INTERRUPTED
        except ResultsError as error:
            self.record.stopped_because = UNWRITTEN
            self.on_event(Notice(str(error)))
        finally:
            self.store.release()
            self.on_event(RunEnded(self.record.stopped_because == INTERRUPTED))
        self.record.finished = text.now()
        return self.record

    @property
    def _precision(self) -> float:
        return schedule.precision_of(self.record.minimal_effect)

    def _restore(self) -> None:
        """Take in the rounds of the earlier run as they came, and decide after each as it did; nothing is measured."""
        row_of = {case.key: row for row in self.rows for case in row.cases}
        earlier = [trial for trial in self.record.trials if trial.round and trial.case in row_of]
        of_race = self.earlier.rounds_completed if self.planned.config.race and self.earlier else None
        for row in self.rows:
            trials = [trial for trial in earlier if row_of[trial.case] is row]
            row.had = completed_rounds((case.key for case in row.cases), trials, of_race)
        for index in range(1, 1 + max((trial.round for trial in earlier), default=0)):
            for trial in earlier:
                if trial.round == index:
                    row_of[trial.case].take(trial)
            for row in self.rows:
                if row.had == index:  # the run was killed before it had saved that
                    self.record.trials += [trial for _, trial in self._leave_out_odd(row, index)]
            self._decide([row for row in self.rows if row.had >= index])
        needy = [row.had for row in self.rows if not row.over]
        self.record.rounds_completed = min(needy) if needy else max((row.had for row in self.rows), default=0)

    def _measure_rounds(self) -> None:
        started_s = time.monotonic() - (seconds(self.earlier.trials) if self.earlier else 0.0)
        while any(not row.over for row in self.rows):
            index = 1 + self.record.rounds_completed
            needy = [row for row in self.rows if not row.over and row.had < index]
            spent_s, another_s = time.monotonic() - started_s, sum(row.block_s for row in needy)
            stop = schedule.out_of_budget(self.planned.effort.budget_s, spent_s, another_s, index - 1)
            if stop:
                self.record.stopped_because = stop
                return
            drawn = self.in_order(self.planned.cases, self.planned.config.seed, index)
            for row in ordered(needy, drawn):
                row.arrange(drawn)
                self._measure_row(row, index)
            self._decide([row for row in needy if row.alive])
            for row in needy:
                if row.alive and row.stop is not None:
                    why = schedule.in_words(row.stop, self.planned.effort, self._precision, len(row.alive) > 1)
                    self.on_event(RowEnded(list(row.alive), why))
            self.record.rounds_completed = index
            self.record.stopped_because = "" if any(not row.over for row in self.rows) else self._why_all_stopped()
            self.on_event(RoundEnded(self.record, dict(ChainMap(*(row.measured for row in self.rows)))))
        self.record.stopped_because = self._why_all_stopped()

    def _why_all_stopped(self) -> str:
        reasons = [row.stop for row in self.rows if row.stop is not None]
        if not reasons:
            return "every case has failed" if self.planned.cases else "no case can be measured"
        several = any(len(row.alive) > 1 for row in self.rows)
        return schedule.all_in_words(reasons, self.planned.effort, self._precision, several)

    def _measure_row(self, row: OpenRow, index: int) -> None:
        """Measure a row's columns in this round, in as few blocks as memory allows.

        The first block has all columns that were never crowded. Those that did not fit follow in further blocks, each
        with one column that was measured already, so that ratios can be taken by way of it. Where a block had a single
        column, even two do not fit: the others follow one by one, as crowded ones do.
        """
        for case in [one for one in row.alive if one.options.warm_cache and one.key not in self._caches]:
            self._fill_caches(row, case, index)
        left, reference, together = list(row.alive), list[Case](), True
        while left:
            beside = [case for case in left if together and case.key not in row.crowded]
            trials = self._measure_block(row, [*reference, *beside] if beside else left[:1], index)
            answered = [case for case, trial in trials if not trial.crowded]
            together = len(trials) > 1
            left = [case for case in left if case in row.alive and case not in answered]
            reference = [case for case in row.alive if case not in left and case.key not in row.crowded][:1]
        odd = self._leave_out_odd(row, index)
        if odd:
            self._keep(odd)
        row.had = index

    def _decide(self, rows: Iterable[OpenRow]) -> None:
        """Decide whether rows go on after a round: all of them by the same knowledge of how ratios scatter."""
        priors = ratios.priors_of([row.measured.values() for row in self.rows])
        racing = self.planned.config.race
        for row in rows:
            row.widths.append(schedule.half_widths(row.compared, row.metric(racing), self.between, priors))
            enough = schedule.stop_reason(self.planned.effort, row.widths, self._precision)
            row.stop = StopReason.BROKEN if row.is_broken and not self.planned.config.soak else enough
            row.portion = next_portion(row.cases[0], row.compared, row.trials, self.between, priors)
            if racing is not None and racing.purpose != "train":  # each look is at predictions
                row.portion = dataclasses.replace(row.portion, predicts=True)
            if racing is not None and row.stop in (None, StopReason.ROUNDS) and row.leave_outpaced(racing):
                row.stop = StopReason.WON

    def _fill_caches(self, row: OpenRow, case: Case, index: int) -> None:
        """Have a process of its own compile what the case's trials will find; where it fails, so has the case."""
        self._caches[case.key] = self._folders.enter_context(scratch_folder())
        self.on_event(Notice(f"{case.label}: a first process fills the caches"))
        member, workload = self._member(row, case), case.selected.workload
        member = dataclasses.replace(member, request=filling(member.request))
        policy = BlockPolicy(
            turns.draw_orders(""),
            lambda stage, slices: True,
            partial(sizes.sizes_of, member.request.protocol, workload),
            lambda: True,
        )
        (outcome,) = self.launch([member], policy, lambda event: None, True)
        if outcome is not None and outcome.failure is not None:
            trial = trial_record(case, index, outcome)
            self._keep([(case, trial)])
            row.take(trial)

    def _measure_block(self, row: OpenRow, cases: list[Case], index: int) -> list[tuple[Case, Trial]]:
        """Measure cases side by side, keep the trials of those that were started, and return them."""
        number = 1 + max((trial.block for trial in self.record.trials), default=0)
        soaks = self.planned.config.soak is not None
        needed = {case.label for case in cases if soaks and not case.options.control}
        cpu_ns, ending = time.process_time_ns(), Ending(self.on_event, needed)
        with ending if soaks else nullcontext():
            trials = self._launch_block(row, cases, index, number, ending)
        self.record.parent_cpu_ns += time.process_time_ns() - cpu_ns
        self._keep(trials)
        for case, trial in trials:
            row.take(trial)
            self._end_series(case, trial)
        if ending.asked:
            raise KeyboardInterrupt
        return trials

    def _launch_block(
        self, row: OpenRow, cases: Sequence[Case], index: int, number: int, ending: Ending
    ) -> list[tuple[Case, Trial]]:
        known = [row.known[case.key] for case in cases]
        devices = [case.device for case in cases]
        members = [self._member(row, case) for case in cases]
        peaks_bytes = [one.peak_bytes for one in known]
        parameters = cases[0].selected.workload.parameters or cases[0].selected.entry.description.parameters
        alone = row.starts_alone(self.planned.effort.cold) or not can_start_at_once(peaks_bytes, parameters)
        budget = memory_budget(devices, peaks_bytes, [one.on_card_bytes for one in known])
        protocol, workload = cases[0].protocol, cases[0].selected.workload
        enough = partial(turns.enough, protocol, turns.shares(protocol, workload), most=row.portion.cycles)
        limits = [limit_on(case.device, case.options.threads, self.planned, self.state) for case in cases]

        def is_enough(stage: str, columns: Mapping[int, Sequence[Slice]]) -> bool:
            soaks = self.planned.config.soak  # in hours of slices there is nothing to measure again
            slices = list(columns.values()) if soaks else load.judged(stage, columns, limits)
            return ending.is_over or enough(stage, slices)

        policy = BlockPolicy(
            self._orders(cases, number),
            is_enough,
            partial(self._sizes, cases, time.monotonic()),
            budget,
            self._rest_s,
        )
        in_sitting = sitting(self.record, time.time(), psutil.boot_time())  # the machine may have slept since the last
        self.on_event(BlockStarted(cases, is_first=not any(trial.measurement for trial in row.trials)))
        outcomes, seen = self.monitor.watch(
            devices,
            lambda: self.launch(members, policy, ending.hear, alone),
            lambda reason: self.on_event(Waiting(cases[0].row_label, reason)),
        )
        for member, held_bytes in budget.seen_on_cards().items():
            known[member].saw_on_card(held_bytes)
        several = sum(outcome is not None for outcome in outcomes) > 1
        measured = {
            place: outcome.measurement
            for place, outcome in enumerate(outcomes)
            if outcome is not None and outcome.measurement is not None
        }
        judged = load.marked(measured, limits)
        trials: list[tuple[Case, Trial]] = []
        for place, (case, outcome, around) in enumerate(zip(cases, outcomes, seen, strict=True)):
            if outcome is not None:
                grew = self.planned.config.soak is not None and outcome.had_turn  # a soak's memory runs out by itself
                trial = trial_record(case, index, outcome, number, several and not grew)
                trial = dataclasses.replace(trial, sitting=in_sitting, measurement=judged.get(place))
                trials.append((case, self.monitor.judge(trial, around)))
        return trials

    def _orders(self, cases: Sequence[Case], number: int) -> turns.Orders:
        """Return the orders of a block's cycles: no two blocks have the same."""
        if self.planned.config.soak:
            return turns.soak_orders([case.options.control for case in cases])
        return turns.draw_orders(f"{self.planned.config.seed}/{number}")

    def _sizes(self, cases: Sequence[Case], began_s: float, steps_ns: sizes.Steps) -> Sizes | None:
        """Size a row by its first steps, and tell how long its block will take, once they have shown that."""
        protocol, workload = cases[0].protocol, cases[0].selected.workload
        compiles_again = any(case.options.jit and backends.get(case.backend).COMPILES_AGAIN for case in cases)
        found = sizes.sizes_of(protocol, workload, steps_ns, least=2 if compiles_again else 1)
        if found is not None:
            columns = [(cases[index], min(of_column)) for index, of_column in steps_ns.items()]
            learnable = cases[0].selected.entry.description.learnable
            left_s = 0.0
            for case, step_ns in columns:
                own = dataclasses.replace(protocol, slices_max_ns=case.slices_ns)
                left_s += schedule.column_s(own, workload, found, step_ns, learnable)
            self.on_event(StepsKnown(columns, time.monotonic() - began_s, left_s))
        return found

    def _member(self, row: OpenRow, case: Case) -> BlockMember:
        config, entry, known = self.planned.config, case.selected.entry, row.known[case.key]
        memory_bytes = config.memory_limit_bytes
        if memory_bytes is None and is_saved(entry.file) and not entry.model_config.trust:
            memory_bytes = self._most_bytes
        minutes = config.soak.minutes if config.soak else 0.0
        limits = trial_limits(config.timeout_s, memory_bytes, config.effort.protocol.kind, known.first_s, minutes)
        request = trial_request(case, row.asked(case), config, self._caches.get(case.key, ""))
        card, neighbours = card_now(case.device)
        request = dataclasses.replace(request, card=card, neighbours=neighbours)
        return BlockMember(self.interpreter(case.column.environment), request, limits, case.label)

    def _leave_out_odd(self, row: OpenRow, index: int) -> list[tuple[Case, Trial]]:
        """Measure a case no further that computes something else than the others; return the records that say so.

        Its trials stay in the record.
        """
        odd = [(case, trial_record(case, index, Outcome([], 0, failure=failure))) for case, failure in row.odd()]
        for _, trial in odd:
            row.take(trial)
        return odd

    def _keep(self, trials: Sequence[tuple[Case, Trial]]) -> None:
        """Put trials into the record and onto the disk, all at once, and announce them."""
        self.record.trials += [trial for _, trial in trials]
        self.store.add([trial for _, trial in trials])
        for case, trial in trials:
            self.on_event(TrialEnded(case, trial))

    def _end_series(self, case: Case, trial: Trial) -> None:
        """Where a case of a sweep has run out of memory, give up the larger ones that have not been measured yet."""
        if trial.failure is None or trial.failure.code is not Code.OOM or trial.crowded:
            return
        untried = [one for row in self.rows for one in row.alive if all(had.case != one.key for had in row.trials)]
        given_up = schedule.larger_in_series(case, untried)
        self._keep([(one, not_tried(case, one, trial.failure, trial.round)) for one in given_up])
        for row in self.rows:
            row.alive = [one for one in row.alive if one not in given_up]
