"""A race: which of many candidates is fastest, measured in rounds that the slow ones leave one after another.

After each round every candidate is compared with the one that leads, and those that are significantly slower by more
than a margin leave: successive elimination (E. Even-Dar, S. Mannor and Y. Mansour, "Action elimination and stopping
conditions for the multi-armed bandit and reinforcement learning problems", Journal of Machine Learning Research 7,
2006). The race is over when no candidate can be faster than the leader by more than the margin.

Each look decides by 95 % intervals, uncorrected for how many looks there are: who looks four times errs in 6 % of races
where who looks once errs in 2.5 %. benchmarks/race.py shows by simulation how often the choice is right.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kerasbench.analysis import ratios
from kerasbench.analysis.cases import HEADLINE, PREDICTED, PREDICTED_ONE, TRAINED_RATE, Measured, Row
from kerasbench.analysis.estimates import LogEstimate, Prior
from kerasbench.analysis.metrics import BY_NAME, NS_PER_MS, RATE
from kerasbench.analysis.rankings import break_even
from kerasbench.protocol.columns import CPU, Column, Options
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.messages import Failure
from kerasbench.results.run import RaceConfig, RacePurpose
from kerasbench.settings import BATCH_SIZE

# What earlier runs know of the scatter between blocks is worth so many degrees of freedom. One block has none.
PRIOR_DEGREES = 4.0

Candidate = TypeVar("Candidate")
Compare = Callable[[Candidate, Candidate], LogEstimate | None]  # the time of one over that of another


@dataclass(frozen=True)
class Look(Generic[Candidate]):
    """What is known after a round."""

    leader: Candidate
    slower: list[Candidate]  # significantly, by more than the margin: they leave
    is_over: bool  # none of those that stay can be faster than the leader by more than the margin


def look(left: Iterable[Candidate], compare: Compare[Candidate], margin: float) -> Look[Candidate] | None:
    """Compare those that are left; None where nothing is.

    ``margin`` is a share: with 0.05 a candidate that is 4 % slower than the fastest is as good.
    """
    candidates = list(left)
    if not candidates:
        return None
    first = candidates[0]
    centres = {first: 0.0}
    centres |= {one: ratio.log_centre for one in candidates[1:] if (ratio := compare(one, first)) is not None}
    leader = min(centres, key=lambda one: centres[one])
    ratios = {candidate: compare(candidate, leader) for candidate in candidates if candidate != leader}
    slower = [candidate for candidate, ratio in ratios.items() if ratio is not None and ratio.is_above(1 + margin)]
    return Look(leader, slower, _is_fastest(leader, set(candidates) - set(slower), compare, margin))


def _is_fastest(candidate: Candidate, left: Iterable[Candidate], compare: Compare[Candidate], margin: float) -> bool:
    """Tell whether none of the others can be faster by more than the margin."""
    others = [compare(other, candidate) for other in left if other != candidate]
    return all(ratio is not None and ratio.is_above(1 / (1 + margin)) for ratio in others)


def interval(logs: Sequence[float], deviation: float) -> LogEstimate:
    """Return a ratio by its logarithm in each block; ``deviation`` is what blocks are known to differ by."""
    return ratios.moderated(logs, Prior(deviation**2, PRIOR_DEGREES, 0))


def compare_by(metric: str, cases: Mapping[Column, Measured]) -> Compare[Column]:
    """Return what compares the columns of a race by a metric; of a rate, by the time of a sample."""

    def compare(one: Column, other: Column) -> LogEstimate | None:
        pair = (cases[one], cases[other])
        if BY_NAME[metric].unit == RATE:
            pair = pair[::-1]
        blocks = ratios.of_blocks(pair, metric)
        counted = [block for block in blocks if not block.disturbed] or blocks
        if not counted:  # memory has not had both at once
            return ratios.ratio_of(*pair, metric, cases.values())
        slices = statistics.fmean((block.error or 0.0) ** 2 for block in counted)
        scatter = ratios.assumed_scatter(*pair, metric)
        ratio = interval([block.log for block in counted], math.sqrt(slices + scatter**2))
        return dataclasses.replace(ratio, disturbed=all(block.disturbed for block in blocks))

    return compare


def metric_of(config: RaceConfig, workload: WorkloadDescription, headline: str) -> str:
    """Return the metric that a race is about: a time, or where batch sizes are tried samples a second."""
    if BATCH_SIZE in config.tries:
        return TRAINED_RATE
    predicted = PREDICTED if workload.predicts_batches else PREDICTED_ONE
    return {"train": headline, "predict": predicted, "predict-one": PREDICTED_ONE}[config.purpose]


def baseline_of(columns: Iterable[Column], config: RaceConfig) -> Column | None:
    """Return Keras as it is without settings: on the backend that it takes then, on a GPU if that has one.

    Where that backend was not measured, it is another backend without settings.
    """
    plain = [one for one in columns if one == one.with_options(**vars(Options(environment=one.options.environment)))]
    return min(plain, key=lambda one: (one.backend != config.baseline, one.device == CPU), default=None)


@dataclass(frozen=True)
class Standing:
    """How a candidate came out."""

    column: Column
    rounds: int  # that it was measured in
    ratio: LogEstimate | None = None  # its time over the leader's; None for the leader, and where it is not known
    has_left: bool = False  # as significantly slower by more than the margin
    failure: Failure | None = None


@dataclass(frozen=True)
class Race:
    """The race of one workload."""

    row: Row
    metric: str
    leader: Column  # or what is about as fast, and simpler to have
    baseline: Column | None
    standings: list[Standing]  # the leader first, then the quickest; failures last
    rounds: int
    purpose: RacePurpose
    margin: float
    is_over: bool  # none of the others can be faster than the leader by more than the margin

    @property
    def default_backend(self) -> str:
        """The backend that Keras takes without settings."""
        config = self.row.origin.config.race
        return config.baseline if config else ""

    @property
    def is_against_default(self) -> bool:
        """Whether the baseline is on the backend that Keras takes without settings, and not on another one."""
        return self.baseline is not None and self.baseline.backend == self.default_backend

    @property
    def gain(self) -> LogEstimate | None:
        """The time of the baseline over the leader's; None if the baseline leads, or is not known."""
        return next((one.ratio for one in self.standings if one.column == self.baseline), None)

    @property
    def first_steps_ms(self) -> tuple[float, float] | None:
        """The first steps of the leader and of the baseline, which started beside others; None where none were made."""
        if self.baseline is None or self.purpose != "train":
            return None
        cases = (self.row.cases[one] for one in (self.leader, self.baseline))
        found = [[m.training.first_step_ns for _, m in case.trials if m.training] for case in cases]
        mine, others = ([ns / NS_PER_MS for ns in of_one if ns is not None] for of_one in found)
        return (statistics.median(mine), statistics.median(others)) if mine and others else None

    @property
    def pays_after(self) -> float | None:
        """After how many steps the leader has made up for a longer first step than the baseline's.

        None where it has none, or where the steps of the two are not of the same samples.
        """
        if self.first_steps_ms is None or self.baseline is None or self.metric != HEADLINE:
            return None
        mine_ms, others_ms = self.first_steps_ms
        repaid = break_even(self.row, self.leader, self.baseline, mine_ms - others_ms)
        return repaid.steps if repaid else None

    @property
    def equals(self) -> list[Column]:
        """The others that are within the margin of the leader, significantly; fewest settings first."""
        ranked = [one for one in self.standings if self.row.cases[one.column].is_ranked]
        near = [one for one in ranked if one.ratio and not one.ratio.disturbed]
        within = [one for one in near if one.ratio and (one.ratio.high or math.inf) <= 1 + self.margin]
        return sorted((one.column for one in within), key=settings_of)


def settings_of(column: Column) -> int:
    """Return how many options a candidate sets: among equals, fewer are simpler to have."""
    return len(column.options.label.split())


def simplest(
    found: Look[Candidate],
    left: Iterable[Candidate],
    compare: Compare[Candidate],
    margin: float,
    settings: Callable[[Candidate], tuple[bool, int]],
) -> Candidate:
    """Return what is simplest to have, by its ``settings``, among those that are about as fast as the leader.

    To half the margin; and once the race is over, none of those that are left can be faster than the choice by more
    than the margin.
    """
    candidates = [one for one in left if one not in found.slower]  # in their order, which decides among equals
    ratios = {one: compare(one, found.leader) for one in candidates if one != found.leader}
    as_fast = [one for one, ratio in ratios.items() if ratio and ratio.value <= 1 + margin / 2]
    if found.is_over:
        as_fast = [candidate for candidate in as_fast if _is_fastest(candidate, candidates, compare, margin)]
    return min([found.leader, *as_fast], key=settings)


def race_of(row: Row) -> Race | None:
    """Return how a workload's candidates came out; None where it had none, or all have failed."""
    config = row.origin.config.race
    if config is None:
        return None
    metric = metric_of(config, row.workload, row.headline)
    cases = {column: case for column, case in row.cases.items() if case.trials and case.estimate(metric) is not None}
    rounds = {column: len({trial.round for trial, _ in case.trials}) for column, case in row.cases.items()}
    last = max((trial.round for case in cases.values() for trial, _ in case.trials), default=0)
    ranked = {column: case for column, case in cases.items() if case.is_ranked}
    stayed = [column for column, case in ranked.items() if any(trial.round == last for trial, _ in case.trials)]
    baseline = baseline_of(cases, config)
    compare = compare_by(metric, cases)
    found = look(stayed, compare, config.margin)
    if found is None:
        return None
    in_race = [column for column in stayed if column not in found.slower]
    choice = simplest(found, stayed, compare, config.margin, lambda column: (column != baseline, settings_of(column)))
    standings = [Standing(choice, rounds[choice])]
    others = [
        Standing(column, rounds[column], compare(column, choice), has_left=column in ranked and column not in in_race)
        for column in cases
        if column != choice
    ]
    standings += sorted(others, key=lambda one: one.ratio.log_centre if one.ratio else math.inf)
    failed = {column: case.failure for column, case in row.cases.items() if case.failure is not None}
    standings += [Standing(column, rounds[column], failure=failure) for column, failure in failed.items()]
    return Race(row, metric, choice, baseline, standings, last, config.purpose, config.margin, found.is_over)
