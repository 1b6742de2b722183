"""The rounds of a run: one block after another, each saved as it ends, until every row has enough."""

import time
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import psutil

from kerasbench import backends, events, text, variants
from kerasbench.analysis import ratios
from kerasbench.analysis.families import Priors
from kerasbench.analysis.names import name_of
from kerasbench.errors import ResultsError
from kerasbench.files import scratch_folder
from kerasbench.host import load
from kerasbench.host.noise import MachineState
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.duration import History
from kerasbench.processes.block import BlockEvent, BlockMember, BlockPolicy, OnBlockEvent
from kerasbench.processes.outcome import Outcome, trial_limits
from kerasbench.processes.process import available_bytes
from kerasbench.protocol.columns import CaseKey, Environment
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Sizes
from kerasbench.protocol.stages import STAGES
from kerasbench.results.run import INTERRUPTED, UNWRITTEN, Run, Trial, completed_rounds
from kerasbench.results.store import Store
from kerasbench.runs import machine, schedule, sizes, stopping, turns
from kerasbench.runs.ending import Ending
from kerasbench.runs.planner import Planner
from kerasbench.runs.records import limit_on, new_record, resumed_record, session_of, trial_record, trial_request
from kerasbench.runs.rows import ALONE, Decision, RowProgress, rows_of, seconds
from kerasbench.scenario import is_saved

# Measures one block, as processes.block.measure does. None: a member was not started.
Launch = Callable[[Sequence[BlockMember], BlockPolicy, OnBlockEvent, int], Sequence[Outcome | None]]

SAVED_SHARE = 0.75  # of free memory, for a saved model without a limit: a hostile one must not bring the machine down


@dataclass
class Rounds:
    planned: Plan
    planner: Planner[Any]
    store: Store
    launch: Launch
    monitor: machine.MachineMonitor
    on_event: events.OnEvent
    state: MachineState  # of the machine before the first child
    earlier: Run | None = None  # the run that this one goes on with, with those of its trials that count
    history: History = field(default_factory=History)
    interpreter: Callable[[Environment, str], str] = lambda environment, runtime: ""
    _caches: dict[CaseKey, str] = field(default_factory=dict)  # folders that go with the run
    _folders: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        free_bytes = min(self.planned.machine.memory_bytes, available_bytes())
        self._most_bytes = max(machine.CHILD_BYTES, int(SAVED_SHARE * free_bytes))  # for a saved model, in all trials
        new = new_record(self.planned, self.state)
        self.record = resumed_record(self.earlier, new) if self.earlier else new
        self._cases = {case.key: case for case in self.planned.cases}
        self.rows = rows_of(self.planned)
        for row in self.rows:
            usual = Decision(next_block=schedule.first_block(self.planned.effort, row.cases))
            row.apply(self.planner.decide(row, usual))
        if self.earlier is not None:
            self._restore(self.earlier.rounds_completed)

    def execute(self) -> Run:
        """Return the record, for the caller to save. ResultsError: the disk refuses the journal at the start."""
        self.store.begin(self.record)
        self.store.hold()
        try:
            self.on_event(events.RunStarted(self.planned, self.record, self.history))
            with self._folders:
                self._measure_rounds()
        except KeyboardInterrupt:
            self.record.stopped_because = INTERRUPTED
        except ResultsError as error:
            self.record.stopped_because = UNWRITTEN
            self.on_event(events.Notice(str(error)))
        finally:
            self.store.release()
            self.on_event(events.RunEnded(self.record.stopped_because == INTERRUPTED))
        self.record.finished = text.now()
        return self.record

    def _restore(self, completed: int) -> None:
        """Take in the rounds of the earlier run as they came, and decide after each as it did; nothing is measured."""
        row_of = {case.key: row for row in self.rows for case in row.cases}
        earlier = [trial for trial in self.record.trials if trial.round and trial.case in row_of]
        rounds_of = []
        for row in self.rows:
            trials = [trial for trial in earlier if row_of[trial.case] is row]
            rounds_of.append((row, completed_rounds((case.key for case in row.cases), trials, completed)))
        for index in range(1, 1 + max((trial.round for trial in earlier), default=0)):
            for trial in earlier:
                if trial.round == index:
                    row_of[trial.case].take(trial)
            for row, had in rounds_of:
                for trial in self._odd(row, index) if had == index else ():  # killed before it had saved that
                    self.record.trials.append(trial)
                    row.take(trial)
                row.had = min(had, index)
            self._decide([row for row in self.rows if row.had == index])
        needy = [row.had for row in self.rows if not row.over]
        self.record.rounds_completed = min(needy) if needy else max((row.had for row in self.rows), default=0)

    def _measure_rounds(self) -> None:
        started_s = time.monotonic() - (seconds(self.earlier.trials) if self.earlier else 0.0)
        while any(not row.over for row in self.rows):
            index = 1 + self.record.rounds_completed
            needy = [row for row in self.rows if not row.over and row.had < index]
            spent_s, another_s = time.monotonic() - started_s, sum(row.block_s for row in needy)
            stop = stopping.out_of_budget(self.planned.effort.budget_s, spent_s, another_s, index - 1)
            if stop:
                self.record.stopped_because = stop
                return
            drawn = schedule.order_cases(self.planned.cases, self.planned.config.seed, index)
            for row in sorted(needy, key=lambda row: drawn.index(row.cases[0])):  # rows are drawn as a whole
                row.arrange(drawn)
                self._measure_row(row, index)
            self._decide([row for row in needy if row.alive])
            for row in needy:
                if row.alive and row.decision.stop is not None:
                    reason = stopping.in_words(row.decision.stop, self.planned.effort)
                    self.on_event(events.RowEnded(list(row.alive), reason))
            self.record.rounds_completed = index
            self.record.stopped_because = "" if any(not row.over for row in self.rows) else self._why_all_stopped()
            self.on_event(events.RoundEnded(self.record, dict(ChainMap(*(row.measured for row in self.rows)))))
        self.record.stopped_because = self._why_all_stopped()

    def _why_all_stopped(self) -> str:
        reasons = [stop for row in self.rows if (stop := row.decision.stop) is not None]
        if not reasons:
            return "every case has failed" if self.planned.cases else "no case can be measured"
        return stopping.all_in_words(reasons, self.planned.effort)

    def _measure_row(self, row: RowProgress, index: int) -> None:
        """Measure a row in as few blocks as memory allows, each with a column of an earlier one; at last one by one."""
        for case in [*row.alive]:
            exports = variants.has(case.options, "exports")
            if case.key not in self._caches and (exports or variants.has(case.options, "prepares")):
                does = "exports the model" if exports else "fills the caches"
                self.on_event(events.Notice(f"{case.selected.label} on {name_of(case.column)}: a first process {does}"))
                self._prepare(row, case, index)
        left, reference, together = list(row.alive), list[Case](), True
        while left:
            beside = [case for case in left if together and case.key not in row.crowded]
            trials = self._measure_block(row, [*reference, *beside] if beside else left[:1], index)
            answered = {trial.case for trial in trials if not trial.crowded}
            together = len(trials) > 1
            left = [case for case in left if case in row.alive and case.key not in answered]
            reference = [case for case in row.alive if case not in left and case.key not in row.crowded][:1]
        if odd := self._odd(row, index):
            self._keep(row, odd)
        row.had = index

    def _decide(self, rows: Iterable[RowProgress]) -> None:
        """Decide whether rows go on after a round: all of them by the same knowledge of how ratios scatter."""
        priors = ratios.priors_of([row.measured.values() for row in self.rows])
        for row in rows:
            least, is_known = self.planned.effort.min_rounds, partial(self._is_known, row, priors)
            precision = self._precision(row, priors, self.planner.metric(row))
            usual = Decision(
                stopping.stop_reason(self.planned.effort, row.had, precision),
                schedule.next_block(row.cases[0], least, row.compared, row.trials, priors, is_known),
            )
            row.apply(self.planner.decide(row, usual))

    def _is_known(self, row: RowProgress, priors: Priors, metric: str) -> bool:
        return all(of_ratio.is_enough for of_ratio in self._precision(row, priors, metric).values())

    def _precision(self, row: RowProgress, priors: Priors, metric: str) -> stopping.RowPrecision:
        effort, paired = self.planned.effort, self.planned.config.paired
        return stopping.precision_of(row.compared, metric, priors, paired, effort, self.record.minimal_effect)

    def _prepare(self, row: RowProgress, case: Case, index: int) -> None:
        """Have a process compile or export what the case's trials will find; where it fails, so has the case."""
        self._caches[case.key] = self._folders.enter_context(scratch_folder())
        member = self._member(row, case, exports=True)
        briefly = replace(
            member.request.protocol, slice_ns=1, warmup_min_ns=0, warmup_max_ns=0, predict_warmup_ns=0, repeats=False
        )
        filling = replace(member.request, protocol=briefly, fills_caches=True)
        sized = partial(sizes.sizes_of, briefly, case.selected.workload)
        policy = BlockPolicy(turns.draw_orders(""), lambda stage, slices: True, sized, lambda: True)
        (outcome,) = self.launch([replace(member, request=filling)], policy, lambda event: None, 1)
        if outcome is not None and outcome.failure is not None:
            self._keep(row, [trial_record(case, index, outcome)])

    def _measure_block(self, row: RowProgress, cases: list[Case], index: int) -> list[Trial]:
        number = 1 + max((trial.block for trial in self.record.trials), default=0)
        is_long = cases[0].protocol.lasts
        needed = {case.label for case in cases if is_long and not case.options.control}
        cpu_ns, ending = time.process_time_ns(), Ending(self.on_event, needed)
        with ending if is_long else nullcontext():
            trials = self._launch_block(row, cases, index, number, ending)
        self.record.parent_cpu_ns += time.process_time_ns() - cpu_ns
        self._keep(row, trials)
        for trial in trials:
            self._end_series(trial)
        if ending.asked:
            raise KeyboardInterrupt
        return trials

    def _launch_block(
        self, row: RowProgress, cases: Sequence[Case], index: int, number: int, ending: Ending
    ) -> list[Trial]:
        known = [row.known[case.key] for case in cases]
        devices = [case.device for case in cases]
        members = [self._member(row, case) for case in cases]
        peaks_bytes = [calibration.peak_bytes for calibration in known]
        parameters = cases[0].parameters
        is_cold = self.planned.effort.cold and row.had < ALONE
        at_once = 1 if is_cold else machine.starts_at_once(peaks_bytes, parameters, self.planned.machine.cores)
        budget = machine.memory_budget(devices, peaks_bytes, [calibration.on_card_bytes for calibration in known])
        limits = [limit_on(case.device, variants.pinned(case.options), self.planned, self.state) for case in cases]
        policy = self._policy(row, cases, number, ending, limits, budget)
        in_session = session_of(self.record, time.time(), psutil.boot_time())  # it may have slept since the last block
        is_first = not any(trial.measurement for trial in row.trials)
        stage = schedule.stage_of(self.planner.metric(row))
        left = [case for case in row.cases if case not in row.alive]
        hear = ending.hear if cases[0].protocol.lasts else partial(tell_marked, cases, limits, ending.hear)
        self.on_event(events.BlockStarted(cases, is_first, stage, left))
        outcomes, seen = self.monitor.watch(
            devices,
            lambda: self.launch(members, policy, hear, at_once),
            lambda reason: self.on_event(events.Waiting(cases[0].row_label, reason)),
        )
        for member, held_bytes in chain.from_iterable(pool.seen_bytes.items() for pool in budget.pools[1:]):
            known[member].on_card_bytes = max(known[member].on_card_bytes, held_bytes)
        several = sum(outcome is not None for outcome in outcomes) > 1
        told = {place: outcome.measurement for place, outcome in enumerate(outcomes) if outcome and outcome.measurement}
        measured = load.marked(told, limits)
        trials = []
        for place, (case, outcome, around) in enumerate(zip(cases, outcomes, seen, strict=True)):
            if outcome is not None:
                grew = case.protocol.lasts and outcome.had_turn  # in a long block memory runs out by itself
                trial = trial_record(case, index, outcome, number, several and not grew)
                trial = replace(trial, session=in_session, measurement=measured.get(place))
                trials.append(self.monitor.judge(trial, around))
        return trials

    def _policy(
        self,
        row: RowProgress,
        cases: Sequence[Case],
        number: int,
        ending: Ending,
        limits: Sequence[load.LoadLimit],
        fits: Callable[[], bool],
    ) -> BlockPolicy:
        protocol = cases[0].protocol
        of_stage = turns.shares(protocol, cases[0].selected.workload)

        def enough(stage: str, columns: Mapping[int, Sequence[Slice]]) -> bool:
            # In hours of slices there is nothing to measure again.
            slices = list(columns.values()) if protocol.lasts else load.judged(stage, columns, limits)
            most = row.decision.next_block.cycles.get(stage)
            return ending.is_over or turns.enough(protocol, of_stage, stage, slices, most)

        def leaving(stage: str, columns: Mapping[int, Sequence[Slice]]) -> Collection[int]:
            judged = zip(columns, load.judged(stage, columns, limits), strict=True)
            return self.planner.leaves(row, cases, stage, dict(judged))

        orders = turns.draw_orders(f"{self.planned.config.seed}/{number}")  # no two blocks have the same
        if protocol.lasts:
            orders = turns.long_orders([case.options.control for case in cases])
        rest_s = turns.rest_s(self.state.quota_cores, self.planned.machine.cores)
        sized = partial(self._sizes, row, cases, time.monotonic())
        if protocol.batches or not protocol.agenda.usual:  # only a quick look leaves columns behind
            return BlockPolicy(orders, enough, sized, fits, rest_s, leaving=leaving)
        least = [_first_steps(case) for case in cases]
        called = [name_of(case.column) for case in cases]
        left_behind = partial(sizes.left_behind, called, least)
        return BlockPolicy(orders, enough, sized, fits, rest_s, left_behind)

    def _sizes(self, row: RowProgress, cases: Sequence[Case], began_s: float, steps_ns: sizes.Steps) -> Sizes | None:
        protocol, workload = cases[0].protocol, cases[0].selected.workload
        least = max(map(_first_steps, cases))
        sized = sizes.sizes_of(protocol, workload, steps_ns, least)
        if sized is not None:
            columns = [(cases[index], min(of_column)) for index, of_column in steps_ns.items()]
            most = row.decision.next_block.cycles
            left_s = sum(schedule.column_s(case, sized, step_ns, most) for case, step_ns in columns)
            self.on_event(events.StepsKnown(columns, time.monotonic() - began_s, left_s))
        return sized

    def _member(self, row: RowProgress, case: Case, exports: bool = False) -> BlockMember:
        config, entry, known = self.planned.config, case.selected.entry, row.known[case.key]
        memory_bytes = config.memory_limit_bytes
        if memory_bytes is None and is_saved(entry.file) and not entry.model_config.trust:
            memory_bytes = self._most_bytes
        protocol = config.effort.protocol
        long_s = protocol.slices_max_ns / 1e9 if protocol.lasts else 0.0
        limits = trial_limits(config.timeout_s, memory_bytes, protocol.kind, known.first_s, long_s)
        request = trial_request(case, row.asked(case), config, self._caches.get(case.key, ""))
        card, neighbours = machine.card_now(case.device)
        request = replace(request, card=card, neighbours=neighbours)
        python = self.interpreter(case.column.environment, "" if exports else variants.interpreter(case.options))
        return BlockMember(python, request, limits, case.label)

    def _odd(self, row: RowProgress, index: int) -> list[Trial]:
        return [trial_record(case, index, Outcome([], 0, failure=failure)) for case, failure in row.odd()]

    def _keep(self, row: RowProgress, trials: Sequence[Trial]) -> None:
        self.record.trials += trials
        self.store.add(trials)
        for trial in trials:
            row.take(trial)
            self.on_event(events.TrialEnded(self._cases[trial.case], trial))

    def _end_series(self, trial: Trial) -> None:
        """Where a case of a sweep has run out of memory, give up the larger ones that have not been measured yet."""
        size, failure = trial.options.size, trial.failure
        if size is None or failure is None or failure.code is not Code.OOM or trial.crowded:
            return
        failure = Failure(Code.OOM, f"not tried: out of memory at {size.label.replace('=', ' ')}", failure.remedy)
        tried = {trial.case for trial in self.record.trials if trial.round}
        for row in self.rows:
            series = [case for case in row.alive if replace(case.key, size=size) == trial.case]
            larger = [case for case in series if case.options.size and case.options.size.exceeds(size)]
            outcome = Outcome([], 0, failure=failure)
            self._keep(row, [trial_record(case, trial.round, outcome) for case in larger if case.key not in tried])


def tell_marked(cases: Sequence[Case], limits: Sequence[load.LoadLimit], hear: OnBlockEvent, event: BlockEvent) -> None:
    """Pass an event on; slices that other programs interrupted are marked, so that nobody is called ahead by them."""
    if isinstance(event, events.CycleEnded) and event.stage in STAGES:
        places = {case.label: place for place, case in enumerate(cases)}
        columns = {places[label]: slices for label, slices in event.slices.items()}
        event = replace(event, slices=dict(zip(event.slices, load.judged(event.stage, columns, limits), strict=True)))
    hear(event)


def _first_steps(case: Case) -> int:
    return variants.first_steps(case.options, backends.get(case.backend))
