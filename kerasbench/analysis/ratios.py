"""The ratio of two cases: slices pair them inside a block, its interval is over blocks (validation/METHOD.md)."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from operator import attrgetter
from typing import Generic, TypeVar

from kerasbench.analysis.cases import Measured
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, LogEstimate, Prior, median_error, prior_of, variance
from kerasbench.analysis.families import ASSUMED, Family, PriorOf
from kerasbench.analysis.generation import Growth, by_cycle
from kerasbench.analysis.metrics import BY_NAME, CALLED, RATE
from kerasbench.protocol.measurement import Measurement, Samples
from kerasbench.protocol.stages import ALL, EPOCH, GROWS, TRAIN, stage_of, text_stage
from kerasbench.results.run import Trial
from kerasbench.results.times import has_steps_alone

SPEEDS = ("ms", "s", RATE)  # units of what it is known of; memory does not follow the machine's hours

LEAST_UNDISTURBED = 6  # cycles, or half of them all: units that cannot be made shorter have three

MeasuredTrial = tuple[Trial, Measurement]
Pair = tuple[MeasuredTrial, MeasuredTrial]  # of a block
Key = TypeVar("Key", bound=Hashable)  # of a case in its row: its column


@dataclass(frozen=True)
class BlockRatio:
    log: float
    error: float | None = None  # by its slices; None where the trials' values were divided
    slices: int = 0  # of each side
    disturbed: bool = False  # others used the machine in so many cycles that too few are left without them
    of_epochs: float = 0.0  # the share of the short epochs in it: its derivative by theirs
    session: int = 1  # of its block

    @property
    def of_one_cycle(self) -> float:
        """The variance of its logarithm by a single cycle's slices."""
        return (self.error or 0.0) ** 2 * self.slices

    @property
    def inverse(self) -> "BlockRatio":
        return replace(self, log=-self.log)


Compare = Callable[[Measurement, Measurement], BlockRatio | None]


def divide_slices(a: Samples, b: Samples) -> BlockRatio | None:
    """Return the median, over the cycles that count, of the difference of the logarithms of two columns' slices."""
    return _divide_cycles(a.ns_by_cycle, b.ns_by_cycle, a.disturbed_cycles | b.disturbed_cycles)


def _divide_cycles(a: Mapping[int, float], b: Mapping[int, float], disturbed: Set[int]) -> BlockRatio | None:
    counted = _select_cycles(a, b, disturbed)
    if not counted:
        return None
    logs = [math.log(a[cycle] / b[cycle]) for cycle in counted]
    return BlockRatio(statistics.median(logs), median_error(logs), len(logs), bool(counted & disturbed))


def _select_cycles(a: Mapping[int, float], b: Mapping[int, float], disturbed: Set[int]) -> Set[int]:
    """Return the cycles of both columns that count: the undisturbed ones where they are enough, else all."""
    common = a.keys() & b.keys()
    left = common - disturbed
    return left if len(left) >= min(LEAST_UNDISTURBED, math.ceil(len(common) / 2)) else common


def divide_means(a: Measured, b: Measured) -> float | None:
    """Return the ratio of two training steps by means in place of medians: a long wait counts as much as it lasts."""
    blocks = []
    for (_, ours), (_, theirs) in trials_in_common(a, b):
        log, by_medians = _divide_mean_epochs(ours, theirs), _divide_epochs(ours, theirs)
        if log is not None and by_medians is not None:
            blocks.append(replace(by_medians, log=log))
    ratio = sum_up_blocks(blocks, 0.0)
    return ratio.value if ratio else None


def _divide_mean_epochs(a: Measurement, b: Measurement) -> float | None:
    unit = _find_shared_unit(a, b)
    if unit is None:
        return None
    steps = _average_slices(a.samples[TRAIN], b.samples[TRAIN])
    if unit == "epoch" or steps is None or _have_steps_alone(a, b):
        return math.log(steps[0] / steps[1]) if steps else None
    if a.short_epoch is None or b.short_epoch is None:
        return None
    epochs, more = _average_slices(a.samples[EPOCH], b.samples[EPOCH]), a.full_steps_per_epoch - a.short_epoch.steps
    if epochs is None or more < 0:
        return None
    return math.log((epochs[0] + more * steps[0]) / (epochs[1] + more * steps[1]))


def _find_shared_unit(a: Measurement, b: Measurement) -> str | None:
    """Return what slices of steps count if both trials trained, in the same unit, and ran no epochs in full."""
    ours, theirs = a.training, b.training
    if a.published or b.published or ours is None or theirs is None or ours.unit != theirs.unit:
        return None
    return ours.unit


def _average_slices(a: Samples, b: Samples) -> list[float] | None:
    sides = a.ns_by_cycle, b.ns_by_cycle
    counted = _select_cycles(*sides, a.disturbed_cycles | b.disturbed_cycles)
    return [statistics.fmean(side[cycle] for cycle in counted) for side in sides] if counted else None


def _divide_steps(a: Measurement, b: Measurement) -> BlockRatio | None:
    if a.training is None or b.training is None or "epoch" in (a.training.unit, b.training.unit):
        return None
    return divide_slices(a.samples[TRAIN], b.samples[TRAIN])


def _divide_epochs(a: Measurement, b: Measurement) -> BlockRatio | None:
    """Return the ratio of two epochs of the published length; None where they were run in full, or not measured."""
    unit = _find_shared_unit(a, b)
    if unit is None:
        return None
    steps = divide_slices(a.samples[TRAIN], b.samples[TRAIN])
    if unit == "epoch" or _have_steps_alone(a, b):
        return steps
    if a.short_epoch is None or b.short_epoch is None:
        return None
    short = divide_slices(a.samples[EPOCH], b.samples[EPOCH])
    more = a.full_steps_per_epoch - a.short_epoch.steps
    return join_ratios((a, b), more, steps, short) if steps and short else None


def join_ratios(sides: tuple[Measurement, Measurement], more: int, steps: BlockRatio, short: BlockRatio) -> BlockRatio:
    """Return the ratio of a + b * S from that of the steps, r_b, and that of the short epochs, r_e.

    With E and B, the geometric means of both columns' medians of a short epoch of m full steps and of a step:
    (E * sqrt(r_e) + (S - m) * B * sqrt(r_b)) / (E / sqrt(r_e) + (S - m) * B / sqrt(r_b)). Its error follows to the
    first order, and is worth so many slices as it has degrees of freedom by Welch and Satterthwaite. ``more`` is S - m;
    where it is below zero, the steps stand for all.
    """
    if more < 0:
        return steps
    epoch_ns = statistics.geometric_mean([measurement.median_ns[EPOCH] for measurement in sides])
    steps_ns = more * statistics.geometric_mean([measurement.median_ns[TRAIN] for measurement in sides])
    above = epoch_ns * math.exp(short.log / 2), steps_ns * math.exp(steps.log / 2)
    below = epoch_ns * math.exp(-short.log / 2), steps_ns * math.exp(-steps.log / 2)
    share = (above[0] / sum(above) + below[0] / sum(below)) / 2
    errors = (share * (short.error or 0), (1 - share) * (steps.error or 0))
    parts = [error**4 / max(1, part.slices - 1) for error, part in zip(errors, (short, steps), strict=True)]
    degrees = math.hypot(*errors) ** 4 / sum(parts) if any(parts) else min(short.slices, steps.slices) - 1
    return BlockRatio(
        log=math.log(sum(above) / sum(below)),
        error=None if steps.error is None or short.error is None else math.hypot(*errors),
        slices=1 + int(degrees),
        disturbed=steps.disturbed or short.disturbed,
        of_epochs=share,
    )


def _have_steps_alone(a: Measurement, b: Measurement) -> bool:
    return has_steps_alone(a) or has_steps_alone(b)


def share_of_epochs(a: Measurement, b: Measurement) -> float:
    ratio = _divide_epochs(a, b)
    return ratio.of_epochs if ratio else 0.0


def _divide_training_rates(a: Measurement, b: Measurement) -> BlockRatio | None:
    """Return the ratio of two rates, by the steps alone where no epochs were measured."""
    without_epochs = _find_shared_unit(a, b) == "step" and not (a.short_epoch and b.short_epoch)
    ratio = _divide_steps(a, b) if without_epochs else _divide_epochs(a, b)
    ours, theirs = (side.train_samples / side.steps_per_epoch for side in (a, b))
    return ratio and replace(ratio, log=math.log(ours / theirs) - ratio.log)


def _make_comparison(stage: str, read: Callable[[Measurement], Mapping[int, float]]) -> Compare:
    def compare(a: Measurement, b: Measurement) -> BlockRatio | None:
        if stage not in a.samples or stage not in b.samples:
            return None
        return _divide_cycles(read(a), read(b), a.samples[stage].disturbed_cycles | b.samples[stage].disturbed_cycles)

    return compare


def _make_call_comparison(way: str, batched: bool) -> Compare:
    stage = stage_of(way, batched)
    return _make_comparison(stage, lambda measurement: measurement.call_medians_ns[stage])


def _make_text_comparison(way: str, read: Callable[[Growth], float]) -> Compare:
    stage = text_stage(way)

    def times_ns(measurement: Measurement) -> dict[int, float]:
        lines = by_cycle(measurement.texts[stage], measurement.samples[stage])
        return {cycle: read(line) for cycle, line in lines.items()}

    return _make_comparison(stage, times_ns)


def _divide_prediction_rates(a: Measurement, b: Measurement) -> BlockRatio | None:
    ratio = divide_slices(a.samples[ALL], b.samples[ALL]) if ALL in a.samples and ALL in b.samples else None
    return ratio and replace(ratio, log=-ratio.log)


_BY_SLICES: dict[str, Compare] = {
    "train_step_ms": _divide_epochs,
    "epoch_s": _divide_epochs,
    "steady_step_ms": _divide_steps,
    "train_samples_per_s": _divide_training_rates,
    "predict_samples_per_s": _divide_prediction_rates,
    **{f"{called}_p50_ms": _make_call_comparison(*calls) for called, calls in CALLED.items()},
    **{f"generate_{way}_ttft_ms": _make_text_comparison(way, lambda line: line.ttft_ns) for way in GROWS},
    **{f"generate_{way}_tpot_ms": _make_text_comparison(way, lambda line: line.tpot_ns) for way in GROWS},
}


def trials_in_common(a: Measured, b: Measured) -> list[Pair]:
    others = b.by_block
    return [(trial, others[block]) for block, trial in a.by_block.items() if block in others]


def divide_blocks(a: Measured, b: Measured, metric: str) -> list[BlockRatio]:
    """Return the ratio of each block that both had, if it has one."""
    ratios = [(pair[0][0].session, _divide_pair(*pair, metric)) for pair in trials_in_common(a, b)]
    return [replace(ratio, session=session) for session, ratio in ratios if ratio is not None]


def _divide_pair(a: MeasuredTrial, b: MeasuredTrial, metric: str) -> BlockRatio | None:
    """Return the ratio in a block: by slices where the metric has them, else by the trials' values."""
    ratio, read = divide_trials(a[1], b[1], metric), BY_NAME[metric].read
    if ratio is None and min(ours := read(*a) or 0.0, theirs := read(*b) or 0.0) > 0:
        return BlockRatio(math.log(ours / theirs))
    return ratio


def divide_trials(a: Measurement, b: Measurement, metric: str) -> BlockRatio | None:
    """Return the ratio of two trials of a block by their slices; None where the metric or a trial has none."""
    return _BY_SLICES[metric](a, b) if metric in _BY_SLICES else None


def estimate_ratio(a: Measured, b: Measured, metric: str) -> LogEstimate | None:
    """Return a/b of two cases that stand in no row together, over their blocks or rounds."""
    return RowRatios({0: a, 1: b}).estimate_within_sessions(0, 1, metric)


class RowRatios(Generic[Key]):
    """The ratios of a row's cases: what each block says is worked out once for both ways round, and each estimate."""

    def __init__(self, cases: Mapping[Key, Measured], prior: PriorOf | None = None) -> None:
        self.cases, self._prior = cases, prior
        self._places = {key: place for place, key in enumerate(cases)}
        self._blocks: dict[tuple[Key, Key, str], list[BlockRatio]] = {}
        self._estimates: dict[tuple[Key, Key, str], LogEstimate | None] = {}

    @property
    def measured(self) -> dict[Key, Measured]:
        return {key: case for key, case in self.cases.items() if case.failure is None and case.trials}

    def family(self, a: Key, b: Key) -> Family:
        return family_of(self.cases[a], self.cases[b])

    def prior(self, a: Key, b: Key, metric: str) -> Prior | None:
        return self._prior(metric, self.family(a, b)) if self._prior else None

    def assumed_scatter(self, a: Key, b: Key, metric: str) -> float:
        """Return by how much the ratio of these two is assumed to differ from block to block."""
        return ASSUMED[self.family(a, b)].between_blocks(self.cases[a].trials[0][0].backend, metric)

    def blocks(self, a: Key, b: Key, metric: str) -> list[BlockRatio]:
        """Return the ratio of each block that has one: worked out in the row's order, which rounding depends on."""
        if (a, b, metric) not in self._blocks:
            is_in_order = self._places[a] <= self._places[b]
            self._blocks[a, b, metric] = (
                divide_blocks(self.cases[a], self.cases[b], metric)
                if is_in_order
                else [ratio.inverse for ratio in self.blocks(b, a, metric)]
            )
        return self._blocks[a, b, metric]

    def estimate(self, a: Key, b: Key, metric: str) -> LogEstimate | None:
        """Return a/b of a metric, its interval for the mean over many sessions; None where nothing can be divided."""
        if (a, b, metric) not in self._estimates:
            ratio = self.estimate_within_sessions(a, b, metric)
            self._estimates[a, b, metric] = ratio and self._widen_over_sessions(ratio, a, b, metric)
        return self._estimates[a, b, metric]

    def _widen_over_sessions(self, ratio: LogEstimate, a: Key, b: Key, metric: str) -> LogEstimate:
        if ratio.basis == "sessions" or BY_NAME[metric].unit not in SPEEDS:
            return ratio
        between = ASSUMED[self.family(a, b)].between_sessions
        if len({trial.session for key in (a, b) for trial, _ in self.cases[key].trials}) > 1:  # hardly ever
            sessions = group_by_session(self.blocks(a, b, metric)).values()
            # They count by their blocks, as they do in the ratio.
            counts = [sum(ratio.disturbed or not block.disturbed for block in blocks) for blocks in sessions]
            between = between * math.hypot(*counts) / sum(counts) if any(counts) else between
        return replace(ratio, between_sessions=between)

    def estimate_within_sessions(self, a: Key, b: Key, metric: str, others: bool = True) -> LogEstimate | None:
        """Return a/b of a metric over the blocks that both cases had; None where nothing can be divided.

        Where the two did not fit into memory together, one of the ``others`` may have been beside each; else rounds
        pair them. The first of these ways that has three blocks or rounds is taken, or else the first that there is.
        """
        ours, theirs = self.cases[a], self.cases[b]
        if ours.failure is not None or theirs.failure is not None:
            return None
        common = self._blocks_in_common(a, b)
        direct = None
        if common:
            sessions = [*group_by_session(self.blocks(a, b, metric)).values()]
            direct = _sum_up_sessions(sessions, self.assumed_scatter(a, b, metric), self.prior(a, b, metric))
        if _is_enough(direct) or common >= MIN_TRIALS_FOR_INTERVAL:
            return direct
        indirect = self._estimate_by_others(a, b, metric, MIN_TRIALS_FOR_INTERVAL if common else 1) if others else None
        if _is_enough(indirect):
            return indirect
        of_rounds = {trial.round: trial.session for trial, _ in ours.trials}
        by_round = divide_rounds(ours.by_round(metric), theirs.by_round(metric), of_rounds)
        return by_round if _is_enough(by_round) else direct or indirect or by_round

    def _blocks_in_common(self, a: Key, b: Key) -> int:
        return len(self.cases[a].by_block.keys() & self.cases[b].by_block.keys())

    def _estimate_by_others(self, a: Key, b: Key, metric: str, least: int) -> LogEstimate | None:
        """Return a/b as a/c times c/b, of that c of the others that had most blocks with both, and at least so many."""
        products = []
        for c in self.measured:
            if c in (a, b) or min(self._blocks_in_common(a, c), self._blocks_in_common(c, b)) < least:
                continue
            first, second = (self.estimate_within_sessions(*pair, metric, others=False) for pair in ((a, c), (c, b)))
            if first is not None and second is not None:
                products.append(first.and_then(second))
        return max(products, key=lambda product: product.trials, default=None)


def group_by_session(blocks: Iterable[BlockRatio]) -> dict[int, list[BlockRatio]]:
    sessions: dict[int, list[BlockRatio]] = {}
    for block in sorted(blocks, key=attrgetter("session")):
        sessions.setdefault(block.session, []).append(block)
    return sessions


def _is_enough(ratio: LogEstimate | None) -> bool:
    return ratio is not None and ratio.trials >= MIN_TRIALS_FOR_INTERVAL


def divide_rounds(a: Mapping[int, float], b: Mapping[int, float], sessions: Mapping[int, int]) -> LogEstimate | None:
    """Pair values by round, each of a session; None where no round has both, or one is not above zero."""
    of_session: dict[int, list[BlockRatio]] = {}
    for index in sorted(a.keys() & b.keys()):
        if min(a[index], b[index]) <= 0:
            return None
        of_session.setdefault(sessions.get(index, 1), []).append(BlockRatio(math.log(a[index] / b[index])))
    return _sum_up_sessions(list(of_session.values()), 0.0, None) if of_session else None


def sum_up_blocks(blocks: Sequence[BlockRatio], scatter: float, prior: Prior | None = None) -> LogEstimate | None:
    """Sum up blocks; fewer than three are assumed to differ by ``scatter``. Disturbed ones count if all are."""
    if not blocks:
        return None
    counted = [block for block in blocks if not block.disturbed] or blocks
    disturbed = counted[0].disturbed
    if len(counted) >= MIN_TRIALS_FOR_INTERVAL:
        return moderate_logs([block.log for block in counted], prior, disturbed)
    centre = statistics.fmean(block.log for block in counted)
    errors = [block.error for block in counted if block.error is not None]
    if len(errors) < len(counted):
        return LogEstimate(centre, None, len(counted) - 1, len(counted), disturbed=disturbed)
    within = math.sqrt(math.fsum(error**2 for error in errors)) / len(errors)
    error = math.hypot(within, scatter / math.sqrt(len(errors)))
    return LogEstimate(centre, error, sum(block.slices - 1 for block in counted), len(counted), "slices", disturbed)


def moderate_logs(logs: Sequence[float], prior: Prior | None, disturbed: bool = False) -> LogEstimate:
    """Return the mean of the logarithms, by their variance or by one that the run's other ratios moderate."""
    of_logs = variance(logs), len(logs) - 1
    moderate, total = prior.moderate(*of_logs) if prior else of_logs
    return LogEstimate(statistics.fmean(logs), math.sqrt(moderate / len(logs)), total, len(logs), disturbed=disturbed)


def _sum_up_sessions(sessions: Sequence[list[BlockRatio]], scatter: float, prior: Prior | None) -> LogEstimate | None:
    """Count three or more sessions as one value each: what differs between two days, all blocks of one share."""
    undisturbed = [[block.log for block in blocks if not block.disturbed] for blocks in sessions]
    means = [statistics.fmean(logs) for logs in undisturbed if logs]
    if len(means) >= MIN_TRIALS_FOR_INTERVAL:
        return replace(moderate_logs(means, None), trials=sum(map(len, undisturbed)), basis="sessions")
    return sum_up_blocks([block for blocks in sessions for block in blocks], scatter, prior)


def family_of(a: Measured, b: Measured) -> Family:
    return Family.of(a.trials[0][0].column, b.trials[0][0].column)


class RunRatios(Generic[Key]):
    """The ratios of a run's rows: how all of them scatter is what a single one borrows from."""

    def __init__(self) -> None:
        self.rows: list[RowRatios[Key]] = []
        self._priors: dict[tuple[str, Family], Prior | None] = {}

    def add_row(self, cases: Mapping[Key, Measured]) -> RowRatios[Key]:
        """Return the ratios of a row; all rows are added before the first is asked for one."""
        self.rows.append(RowRatios(cases, self.prior))
        return self.rows[-1]

    def prior(self, metric: str, family: Family) -> Prior | None:
        """Return how those of a family scatter; None where there are too few."""
        if (metric, family) not in self._priors:
            blocks = [row.blocks(a, b, metric) for row, a, b in self._pairs.get(family, [])]
            ratios = [[block.log for block in of_pair if not block.disturbed] for of_pair in blocks]
            logs_of_pairs = [logs for logs in ratios if len(logs) >= MIN_TRIALS_FOR_INTERVAL]
            worth = len(logs_of_pairs) * self._independent[family] / max(1, len(blocks))
            samples = [(variance(logs), len(logs) - 1.0) for logs in logs_of_pairs]
            self._priors[metric, family] = prior_of(samples, worth)
        return self._priors[metric, family]

    @cached_property
    def _pairs(self) -> dict[Family, list[tuple[RowRatios[Key], Key, Key]]]:
        pairs: dict[Family, list[tuple[RowRatios[Key], Key, Key]]] = {}
        for row in self.rows:
            for (a, ours), (b, theirs) in combinations(row.measured.items(), 2):
                pairs.setdefault(family_of(ours, theirs), []).append((row, a, b))
        return pairs

    @cached_property
    def _independent(self) -> Counter[Family]:
        return Counter(family_of(*pair) for row in self.rows for pair in neighbours(row.measured.values()))


def neighbours(cases: Iterable[Measured]) -> list[tuple[Measured, Measured]]:
    """Return the pairs whose ratios do not follow from each other: each case with the one before it most like it."""
    pairs: list[tuple[Measured, Measured]] = []
    before: list[Measured] = []
    for case in cases:
        if before:
            pairs.append((min(before, key=lambda earlier: family_of(earlier, case)), case))
        before.append(case)
    return pairs
