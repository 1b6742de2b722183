"""The rows of a run while it is measured: which cases are left, what they have taught, and whether there is enough."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace

from kerasbench.analysis.cases import Measured, summarize_case
from kerasbench.analysis.ratios import RowRatios
from kerasbench.analysis.rows import judge_cases
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.stages import stages_of
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import Sizes, TrialPlan
from kerasbench.results.run import Trial
from kerasbench.runs import schedule, sizes, stopping

ALONE = 3  # blocks of a row whose children start one after another, for cold figures with an interval


@dataclass
class Calibration:
    plan: TrialPlan
    first_s: float | None = None  # how long the first took, while it was not waiting for its turn
    peak_bytes: int = 0
    on_card_bytes: int = 0  # held of a card, which is more than its allocator counts as live


@dataclass(frozen=True)
class Decision:
    """What becomes of a row in its next round."""

    stop: stopping.StopReason | None = None
    next_block: schedule.NextBlock = field(default_factory=schedule.NextBlock)
    leaves: Set[CaseKey] = frozenset()  # what is measured no more
    outpaced: Set[CaseKey] = frozenset()  # what is too slow to win, also where it stays to be compared with


@dataclass
class RowProgress:
    cases: list[Case]
    rounds_done: int = 0
    decision: Decision = field(default_factory=Decision)
    sizes: Sizes | None = None  # what its columns do besides their slices, once the first block has shown it
    crowded: set[CaseKey] = field(default_factory=set)  # failed beside others: measured alone from then on
    trials: list[Trial] = field(default_factory=list)
    ratios: RowRatios[Column] = field(default_factory=lambda: RowRatios({}))  # after its last round
    _measured: dict[CaseKey, Measured] = field(default_factory=dict)  # of cases that have had no trial since

    def __post_init__(self) -> None:
        self.alive = list(self.cases)  # those that are still measured
        self.calibrations = {case.key: Calibration(case.plan) for case in self.cases}

    @property
    def over(self) -> bool:
        return self.decision.stop is not None or not self.alive

    @property
    def measured(self) -> dict[CaseKey, Measured]:
        """What its cases amount to so far: each is summed up once a round, for all who ask."""
        for key in {trial.case for trial in self.trials} - self._measured.keys():
            self._measured[key] = summarize_case([trial for trial in self.trials if trial.case == key])
        return {trial.case: self._measured[trial.case] for trial in self.trials}

    @property
    def columns(self) -> dict[Column, Measured]:
        return {key.column: measured for key, measured in self.measured.items()}

    @property
    def block_s(self) -> float:
        """How long its blocks of one round have taken on average, of the last rounds: earlier ones measure more."""
        recent = [trial for trial in self.trials if trial.block and trial.round > self.rounds_done - schedule.EVERY]
        # By its columns, because there may be fewer from round to round.
        return seconds(recent) * len(self.alive) / len(recent) if recent else 0.0

    def plan_of(self, case: Case) -> TrialPlan:
        """Return what a case's next trial measures; its first, everything."""
        plan, workload = self.calibrations[case.key].plan, case.selected.workload
        if plan.steps_per_slice is None:
            return replace(plan, sizes=self.sizes, stages=stages_of(plan, workload))
        stages = stages_of(plan, workload, self.decision.next_block.left_out)
        repeats = plan.repeats_first_step and self.rounds_done < ALONE  # only cold figures tell what compiling took
        return replace(plan, sizes=self.sizes, stages=stages, repeats_first_step=repeats)

    def arrange(self, drawn: Sequence[Case]) -> None:
        """Order the cases anew, as the first has the coldest disk; not once one was split: the same ones meet."""
        rounds = schedule.blocks_by_round(self.trials).items()
        split = next((index for index, blocks in rounds if len(blocks) > 1), None)
        keys = [trial.case for trial in self.trials if trial.round == split] or [case.key for case in drawn]
        self.alive.sort(key=lambda case: keys.index(case.key) if case.key in keys else len(keys))

    def take(self, trial: Trial) -> None:
        """A case that failed is over: again, it would cost a time-out. A crowded one is not until it fails alone."""
        self.trials.append(trial)
        self._measured.pop(trial.case, None)
        if trial.crowded:
            self.crowded.add(trial.case)
        elif trial.measurement is None:
            self.alive = [case for case in self.alive if case.key != trial.case]
        else:
            calibration, measurement = self.calibrations[trial.case], trial.measurement
            calibration.plan = sizes.freeze(calibration.plan, measurement)
            calibration.first_s = trial.own_ns / 1e9 if calibration.first_s is None else calibration.first_s
            calibration.peak_bytes = max(calibration.peak_bytes, measurement.peak_rss_bytes)
            calibration.on_card_bytes = max(calibration.on_card_bytes, measurement.peak_device_bytes or 0)
            all_sizes = filter(None, (self.sizes, measurement.sizes))
            self.sizes = min(all_sizes, key=lambda sizes: len(sizes.left_out), default=None)  # others had to leave

    def apply(self, decision: Decision) -> None:
        self.decision = decision
        self.alive = [case for case in self.alive if case.key not in decision.leaves]

    def find_mismatches(self) -> list[tuple[Case, Failure]]:
        failures = judge_cases(self.columns)
        return [(case, failures[case.column]) for case in self.alive if case.column in failures]


def rows_of(planned: Plan) -> list[RowProgress]:
    """A row has cases of one workload and size; or each case one of its own, where all epochs are run."""
    groups: dict[object, list[Case]] = {}
    for case in planned.cases:
        row = case.key if case.plan.agenda.in_full else case.row
        groups.setdefault(row, []).append(case)
    return [RowProgress(cases) for cases in groups.values()]


def seconds(trials: Iterable[Trial]) -> float:
    """Trials of a block were alive together, about as long as the longest. What each waited for heat counts too."""
    longest_s: dict[tuple[int, int], float] = {}
    for number, trial in enumerate(trials):
        taken_s = trial.wall_ns / 1e9 + (trial.surroundings.waited_s if trial.surroundings else 0.0)
        together = (trial.block, 0 if trial.block else number)
        longest_s[together] = max(longest_s.get(together, 0.0), taken_s)
    return sum(longest_s.values())
