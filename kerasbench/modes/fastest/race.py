"""A race: which of many candidates is fastest, measured in rounds that the slow ones leave one after another.

Successive elimination: E. Even-Dar, S. Mannor and Y. Mansour, "Action elimination and stopping conditions for the
multi-armed bandit and reinforcement learning problems", Journal of Machine Learning Research 7, 2006.

Each look decides by 95 % intervals, uncorrected for how many looks there are: who looks four times errs in 6 % of races
where who looks once errs in 2.5 %. validation/race.py shows by simulation how often the choice is right.
"""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kerasbench import variants
from kerasbench.analysis.cases import HEADLINE, PREDICTED, PREDICTED_ONE, TRAINED_RATE, Measured
from kerasbench.analysis.contrasts import CaseInRow, Contrast
from kerasbench.analysis.estimates import LogEstimate, Prior
from kerasbench.analysis.metrics import BY_NAME, NS_PER_MS, RATE
from kerasbench.analysis.rankings import break_even
from kerasbench.analysis.ratios import RowRatios, moderate_logs
from kerasbench.analysis.rows import Row
from kerasbench.modes.fastest import MODE, RaceConfig
from kerasbench.protocol.columns import CPU, Column
from kerasbench.protocol.descriptions import WorkloadDescription

# What earlier runs know of the scatter between blocks is worth so many degrees of freedom. One block has none.
PRIOR_DEGREES = 4.0

Candidate = TypeVar("Candidate")
Compare = Callable[[Candidate, Candidate], LogEstimate | None]  # the time of one over that of another


@dataclass(frozen=True)
class RaceState(Generic[Candidate]):
    leader: Candidate
    slower: list[Candidate]  # significantly, by more than the margin: they leave
    is_over: bool  # none of those that stay can be faster than the leader by more than the margin


def judge_race(left: Iterable[Candidate], compare: Compare[Candidate], margin: float) -> RaceState[Candidate] | None:
    """Compare those that are left; None where nothing is. ``margin`` is a share of the fastest's time."""
    candidates = list(left)
    if not candidates:
        return None
    first = candidates[0]
    centres = {first: 0.0}
    centres |= {rival: ratio.log_centre for rival in candidates[1:] if (ratio := compare(rival, first))}
    leader = min(centres, key=centres.__getitem__)
    ratios = {candidate: compare(candidate, leader) for candidate in candidates if candidate != leader}
    slower = [candidate for candidate, ratio in ratios.items() if ratio and ratio.is_above(1 + margin)]
    return RaceState(leader, slower, _is_fastest(leader, set(candidates) - set(slower), compare, margin))


FAR = 1.5  # times the fastest of a block: by so much nobody is slower by chance
LEAST_SLICES = 3


def far_behind(times: Mapping[int, Sequence[float]], margin: float, once: float) -> list[int]:
    """Return whose quickest slice is beyond all doubt; ``once`` is what the fastest takes besides, at most."""
    enough = {index: of_column for index, of_column in times.items() if len(of_column) >= LEAST_SLICES}
    first = min(map(statistics.median, enough.values()), default=math.inf)
    return [index for index, of_column in enough.items() if min(of_column) > FAR * (1 + margin) * (first + once)]


def _is_fastest(candidate: Candidate, left: Iterable[Candidate], compare: Compare[Candidate], margin: float) -> bool:
    others = [compare(other, candidate) for other in left if other != candidate]
    return all(ratio is not None and ratio.is_above(1 / (1 + margin)) for ratio in others)


def interval(logs: Sequence[float], deviation: float) -> LogEstimate:
    """Return a ratio by its logarithm in each block; ``deviation`` is what blocks are known to differ by."""
    return moderate_logs(logs, Prior(deviation**2, PRIOR_DEGREES, 0))


def compare_by(metric: str, cases: Mapping[Column, Measured]) -> Compare[Column]:
    """Return what compares the columns of a race by a metric; of a rate, by the time of a sample."""

    ratios = RowRatios(cases)

    def compare(over: Column, under: Column) -> LogEstimate | None:
        a, b = (under, over) if BY_NAME[metric].unit == RATE else (over, under)
        blocks = ratios.blocks(a, b, metric)
        counted = [block for block in blocks if not block.disturbed] or blocks
        if not counted:  # memory has not had both at once
            return ratios.estimate_within_sessions(a, b, metric)
        slices = statistics.fmean((block.error or 0.0) ** 2 for block in counted)
        scatter = ratios.assumed_scatter(a, b, metric)
        ratio = interval([block.log for block in counted], math.sqrt(slices + scatter**2))
        return replace(ratio, disturbed=all(block.disturbed for block in blocks))

    return compare


def varies_batch(tries: Collection[str]) -> bool:
    return any(variant.flag in tries for variant in variants.ALL if variant.batches)


def metric_of(config: RaceConfig, workload: WorkloadDescription, headline: str) -> str:
    """Return the metric that a race is about: a time, or where batch sizes are tried samples a second."""
    if varies_batch(config.tries):
        return TRAINED_RATE
    predicted = PREDICTED if workload.predicts_batches else PREDICTED_ONE
    return {"train": headline, "predict": predicted, "predict-one": PREDICTED_ONE}[config.purpose]


def baseline_of(columns: Iterable[Column], config: RaceConfig) -> Column | None:
    """Return Keras without settings: on the backend that it takes then, else on another one; on a GPU if it has one."""
    plain = [column for column in columns if not column.options.choices and not column.options.control]
    return min(plain, key=lambda column: (column.backend != config.baseline, column.device == CPU), default=None)


@dataclass(frozen=True)
class Race:
    row: Row
    config: RaceConfig
    metric: str
    leader: Column  # or what is about as fast, and simpler to have
    baseline: Column | None
    candidates: list[Column]  # the leader first, then the quickest; failures last
    contrasts: dict[Column, Contrast]  # of the others, over the leader
    left: frozenset[Column]  # as significantly slower by more than the margin
    rounds: int
    is_over: bool  # none of the others can be faster than the leader by more than the margin

    @property
    def is_against_default(self) -> bool:
        """Whether the baseline is on the backend that Keras takes without settings."""
        return self.baseline is not None and self.baseline.backend == self.config.baseline

    @property
    def gain(self) -> LogEstimate | None:
        """The time of the baseline over the leader's; None if the baseline leads, or is not known."""
        contrast = self.contrasts.get(self.baseline) if self.baseline else None
        return contrast.ratio if contrast else None

    def rounds_of(self, column: Column) -> int:
        return len({trial.round for trial, _ in self.row.cases[column].trials})

    @property
    def longer_start(self) -> tuple[float, float, float] | None:
        """First steps of leader and baseline in ms, and after how many steps the leader has made up for its longer."""
        if self.baseline is None or self.metric != HEADLINE:  # steps of a rate are not of the same samples
            return None
        # These started beside others: the metric of a first step leaves them out.
        cases = (self.row.cases[column] for column in (self.leader, self.baseline))
        trainings = ([m.training for _, m in case.trials if m.training] for case in cases)
        starts_ns = [
            [training.first_step_ns for training in of_case if training.first_step_ns] for of_case in trainings
        ]
        if not all(starts_ns):
            return None
        mine_ms, others_ms = (statistics.median(of_case) / NS_PER_MS for of_case in starts_ns)
        repaid = break_even(self.row, self.leader, self.baseline, mine_ms - others_ms)
        return (mine_ms, others_ms, repaid.steps) if repaid else None

    @property
    def equals(self) -> list[Column]:
        """The others that are within the margin of the leader, significantly; fewest settings first."""
        within = [
            column
            for column, contrast in self.contrasts.items()
            if contrast.over.case.is_ranked
            and not contrast.ratio.disturbed
            and (contrast.ratio.high or math.inf) <= 1 + self.config.margin
        ]
        return sorted(within, key=settings_of)


def settings_of(column: Column) -> int:
    return len(column.options.label.split())


def simplest(
    state: RaceState[Candidate],
    left: Iterable[Candidate],
    compare: Compare[Candidate],
    margin: float,
    settings: Callable[[Candidate], tuple[bool, int]],
) -> Candidate:
    """Return what is simplest to have, by its ``settings``, among those within half the margin of the leader."""
    candidates = [candidate for candidate in left if candidate not in state.slower]  # in order: it decides among equals
    ratios = {candidate: compare(candidate, state.leader) for candidate in candidates if candidate != state.leader}
    as_fast = [candidate for candidate, ratio in ratios.items() if ratio and ratio.value <= 1 + margin / 2]
    if state.is_over:  # none that is left may be faster than the choice by more than the margin
        as_fast = [candidate for candidate in as_fast if _is_fastest(candidate, candidates, compare, margin)]
    return min([state.leader, *as_fast], key=settings)


def race_of(row: Row) -> Race | None:
    config = MODE.settings_of(row.origin.config)
    metric = metric_of(config, row.workload, row.headline)
    cases = {column: case for column, case in row.cases.items() if case.trials and case.estimate(metric) is not None}
    last = max((trial.round for case in cases.values() for trial, _ in case.trials), default=0)
    ranked = [column for column, case in cases.items() if case.is_ranked]
    stayed = [column for column in ranked if any(trial.round == last for trial, _ in cases[column].trials)]
    baseline = baseline_of(cases, config)
    compare = compare_by(metric, cases)
    state = judge_race(stayed, compare, config.margin)
    if state is None:
        return None
    choice = simplest(state, stayed, compare, config.margin, lambda column: (column != baseline, settings_of(column)))
    ratios = {column: ratio for column in cases if column != choice and (ratio := compare(column, choice))}
    contrasts = {
        column: Contrast(CaseInRow(row, column), CaseInRow(row, choice), metric, ratio)
        for column, ratio in sorted(ratios.items(), key=lambda pair: pair[1].log_centre)
    }
    failed = [column for column, case in row.cases.items() if case.failure is not None]
    return Race(
        row=row,
        config=config,
        metric=metric,
        leader=choice,
        baseline=baseline,
        candidates=list(dict.fromkeys([choice, *contrasts, *cases, *failed])),
        contrasts=contrasts,
        left=frozenset(column for column in ranked if column in state.slower or column not in (choice, *stayed)),
        rounds=last,
        is_over=state.is_over,
    )
