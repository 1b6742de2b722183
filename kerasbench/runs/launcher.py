"""One block of a row: its children's memory and limits, and what is decided while they run."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from kerasbench import backends, events, variants
from kerasbench.analysis.names import name_of
from kerasbench.files import scratch_folder
from kerasbench.host import load
from kerasbench.host.noise import MachineState
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.stages import shares_of
from kerasbench.processes.block import BlockEvent, BlockMember, BlockPolicy, OnBlockEvent
from kerasbench.processes.outcome import Outcome, trial_limits
from kerasbench.processes.process import available_bytes
from kerasbench.protocol.columns import CaseKey, Environment
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import Sizes, TrialPlan
from kerasbench.protocol.stages import PILOT, STAGES
from kerasbench.results.run import Trial
from kerasbench.runs import machine, schedule, sizes, turns
from kerasbench.runs.ending import InterruptibleBlock
from kerasbench.runs.planner import Planner
from kerasbench.runs.records import limit_on, trial_record, trial_request
from kerasbench.runs.rows import ALONE, RowProgress

# Measures one block, as processes.block.measure does. None: a member was not started.
Launch = Callable[[Sequence[BlockMember], BlockPolicy, OnBlockEvent, int], Sequence[Outcome | None]]

SAVED_SHARE = 0.75  # of free memory, for a saved model without a limit: a hostile one must not bring the machine down


@dataclass
class BlockLauncher:
    planned: Plan
    planner: Planner[Any]
    launch: Launch
    monitor: machine.MachineMonitor
    on_event: events.OnEvent
    state: MachineState  # of the machine before the first child
    interpreter: Callable[[Environment, str], str] = lambda environment, runtime: ""
    folders: ExitStack = field(default_factory=ExitStack)  # of what first processes leave; they go with the run
    _caches: dict[CaseKey, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        free_bytes = min(self.planned.machine.memory_bytes, available_bytes())
        self._most_bytes = max(machine.CHILD_BYTES, int(SAVED_SHARE * free_bytes))  # for a saved model, in all trials

    def prepare(self, row: RowProgress, case: Case, index: int) -> Trial | None:
        """Have a process compile or export what a case's trials will find, if they need it; return its failure."""
        exports = variants.has(case.options, "exports")
        if case.key in self._caches or not (exports or variants.has(case.options, "prepares")):
            return None
        does = "exports the model" if exports else "fills the caches"
        self.on_event(events.Notice(f"{case.selected.label} on {name_of(case.column)}: a first process {does}"))
        self._caches[case.key] = self.folders.enter_context(scratch_folder())
        member = self._member(row, case, exports=True)
        briefly = replace(
            member.request.plan,
            slice_ns=1,
            warmup_min_ns=0,
            warmup_max_ns=0,
            predict_warmup_ns=0,
            repeats_first_step=False,
        )
        filling = replace(member.request, plan=briefly, fills_caches=True)
        policy = BriefPolicy(briefly, case.selected.workload)
        (outcome,) = self.launch([replace(member, request=filling)], policy, lambda event: None, 1)
        return trial_record(case, index, outcome) if outcome is not None and outcome.failure is not None else None

    def measure(self, row: RowProgress, cases: Sequence[Case], index: int, number: int) -> tuple[list[Trial], bool]:
        """Measure one block; return its trials, and whether it was a long one that somebody has interrupted."""
        is_long = cases[0].plan.fixed_time
        needed = {case.label for case in cases if is_long and not case.options.control}
        block = InterruptibleBlock(self.on_event, needed)
        limits = [limit_on(case.device, variants.pinned(case.options), self.planned, self.state) for case in cases]
        calibrations = [row.calibrations[case.key] for case in cases]
        budget = machine.memory_budget(
            [case.device for case in cases],
            [calibration.peak_bytes for calibration in calibrations],
            [calibration.on_card_bytes for calibration in calibrations],
        )
        rest_s = turns.rest_s(self.state.quota_cores, self.planned.machine.cores)
        seed = f"{self.planned.config.seed}/{number}"  # no two blocks have the same order
        policy = RowPolicy(self.planner, row, cases, limits, budget, block, self.on_event, seed, rest_s)
        with block if is_long else nullcontext():
            trials = self._watched(policy, index, number)
        for member, held_bytes in chain.from_iterable(pool.seen_bytes.items() for pool in budget.pools[1:]):
            calibrations[member].on_card_bytes = max(calibrations[member].on_card_bytes, held_bytes)
        return trials, block.is_interrupted

    def _watched(self, policy: "RowPolicy", index: int, number: int) -> list[Trial]:
        row, cases, limits = policy.row, policy.cases, policy.limits
        members = [self._member(row, case) for case in cases]
        pass_on = policy.block.pass_on
        if not cases[0].plan.fixed_time:
            pass_on = partial(pass_on_marked, cases, limits, pass_on)
        is_first = not any(trial.measurement for trial in row.trials)
        stage = schedule.stage_of(self.planner.metric(row))
        left = [case for case in row.cases if case not in row.alive]
        self.on_event(events.BlockStarted(cases, is_first, stage, left))
        outcomes, surroundings = self.monitor.watch(
            [case.device for case in cases],
            lambda: self.launch(members, policy, pass_on, self._at_once(row, cases)),
            lambda reason: self.on_event(events.Waiting(cases[0].row_label, reason)),
        )
        several = sum(outcome is not None for outcome in outcomes) > 1
        measurements = {
            place: outcome.measurement for place, outcome in enumerate(outcomes) if outcome and outcome.measurement
        }
        measured = load.mark(measurements, limits)
        trials = []
        for place, (case, outcome, around) in enumerate(zip(cases, outcomes, surroundings, strict=True)):
            if outcome is not None:
                grew = case.plan.fixed_time and outcome.had_turn  # in a long block memory runs out by itself
                trial = trial_record(case, index, outcome, number, several and not grew)
                trials.append(self.monitor.judge(replace(trial, measurement=measured.get(place)), around))
        return trials

    def _at_once(self, row: RowProgress, cases: Sequence[Case]) -> int:
        """Return how many children start while others do."""
        if self.planned.effort.cold and row.rounds_done < ALONE:
            return 1
        peaks_bytes = [row.calibrations[case.key].peak_bytes for case in cases]
        return machine.starts_at_once(peaks_bytes, cases[0].parameters, self.planned.machine.cores)

    def _member(self, row: RowProgress, case: Case, exports: bool = False) -> BlockMember:
        config, entry, calibration = self.planned.config, case.selected.entry, row.calibrations[case.key]
        memory_bytes = config.memory_limit_bytes
        if memory_bytes is None and entry.source.limits_memory and not entry.model_config.trust:
            memory_bytes = self._most_bytes
        plan = config.effort.plan
        long_s = plan.slices_max_ns / 1e9 if plan.fixed_time else 0.0
        limits = trial_limits(config.timeout_s, memory_bytes, plan.kind, calibration.first_s, long_s)
        request = trial_request(case, row.plan_of(case), config, self._caches.get(case.key, ""))
        card, neighbours = machine.card_now(case.device)
        request = replace(request, card=card, neighbours=neighbours)
        python = self.interpreter(case.column.environment, "" if exports else variants.interpreter(case.options))
        return BlockMember(python, request, limits, case.label)


@dataclass
class BriefPolicy(BlockPolicy):
    """Of a process whose figures are not kept."""

    plan: TrialPlan
    workload: WorkloadDescription

    def sizes(self, steps_ns: sizes.Steps) -> Sizes | None:
        return sizes.sizes_of(self.plan, self.workload, steps_ns)


@dataclass
class RowPolicy(BlockPolicy):
    planner: Planner[Any]
    row: RowProgress
    cases: Sequence[Case]
    limits: Sequence[load.LoadLimit]
    budget: machine.MemoryBudget
    block: InterruptibleBlock
    on_event: events.OnEvent
    seed: str
    rest_s: float

    def __post_init__(self) -> None:
        self._began_s = time.monotonic()
        self._plan, self._workload = self.row.plan_of(self.cases[0]), self.cases[0].selected.workload
        self._shares = shares_of(self._plan, self._workload)
        self._first_steps = [variants.first_steps(case.options, backends.get(case.backend)) for case in self.cases]
        self._orders = turns.draw_orders(self.seed)
        if self._plan.fixed_time:
            self._orders = turns.long_orders([case.options.control for case in self.cases])

    def reserve(self, member: int) -> bool:
        return self.budget.reserve(member)

    def sizes(self, steps_ns: sizes.Steps) -> Sizes | None:
        sized = sizes.sizes_of(self._plan, self._workload, steps_ns, max(self._first_steps))
        if sized is not None:
            columns = [(self.cases[index], min(of_column)) for index, of_column in steps_ns.items()]
            most = self.row.decision.next_block.cycles
            left_s = sum(
                schedule.column_s(case, self.row.plan_of(case), sized, step_ns, most) for case, step_ns in columns
            )
            self.on_event(events.StepsKnown(columns, time.monotonic() - self._began_s, left_s))
        return sized

    def orders(self, columns: int) -> Iterator[Sequence[int]]:
        return self._orders(columns)

    def enough(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> bool:
        # In hours of slices there is nothing to measure again.
        judged = list(slices.values()) if self._plan.fixed_time else load.judged(stage, slices, self.limits)
        most = self.row.decision.next_block.cycles.get(stage)
        return self.block.is_over or turns.enough(self._plan, self._shares, stage, judged, most)

    def leaves(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> Mapping[int, Failure | None]:
        if stage != PILOT:
            judged = dict(zip(slices, load.judged(stage, slices, self.limits), strict=True))
            return dict.fromkeys(self.planner.leaves(self.row, self.cases, stage, judged))
        if not self.planner.config.effort.plan.is_quick:  # only a quick look leaves columns behind
            return {}
        steps_ns = {index: [slice_.ns for slice_ in of_column] for index, of_column in slices.items()}
        return sizes.left_behind([name_of(case.column) for case in self.cases], self._first_steps, steps_ns)


def pass_on_marked(
    cases: Sequence[Case], limits: Sequence[load.LoadLimit], on_event: OnBlockEvent, event: BlockEvent
) -> None:
    """Pass an event on; slices that other programs interrupted are marked, so that nobody is called ahead by them."""
    if isinstance(event, events.CycleEnded) and event.stage in STAGES:
        places = {case.label: place for place, case in enumerate(cases)}
        columns = {places[label]: slices for label, slices in event.slices.items()}
        event = replace(event, slices=dict(zip(event.slices, load.judged(event.stage, columns, limits), strict=True)))
    on_event(event)
