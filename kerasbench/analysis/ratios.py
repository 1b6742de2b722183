"""The ratio of two cases: slices pair them inside a block, blocks are what its interval is over.

Everything that is said of two cases comes from here (docs/method.md, "The ratio of two columns").
"""

import dataclasses
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from kerasbench.analysis.cases import CaseSummary
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, LogEstimate, estimate, median_error, variance
from kerasbench.analysis.metrics import BY_NAME, Metric, batched, single
from kerasbench.protocol.measurement import Latency, Measurement, Slice, Training, disturbed_cycles
from kerasbench.results.record import TrialRecord

# By how much two processes of one case differ, as the standard deviation of the logarithm, measured over blocks of the
# same case as two columns (benchmarks/same_twice.py). A block's slices cannot know it.
BETWEEN_PROCESSES = {"jax": 0.01, "tensorflow": 0.015}
BETWEEN_OTHERS = 0.03
# By how much the ratio of two backends, or of two devices, differs from block to block, beyond what slices and
# processes explain: so that one block's interval holds what the others found in 95 % of cases or more. Of training
# steps it does on each of two days on a small cloud machine; with 0.05 it did in 90 % on one of them
# (benchmarks/one_block.py, docs/studies.md).
TYPICAL_SCATTER = 0.07
SCATTERS = {"predict_p50_ms": 0.08, "predict_batch_p50_ms": 0.08, "predict_samples_per_s": 0.06}

LEAST_UNDISTURBED = 6  # cycles: so many the shortest stage has

Trial = tuple[TrialRecord, Measurement]


@dataclass(frozen=True)
class Paired:
    """The logarithm of a ratio in one block. ``error`` is its standard error by ``slices`` of each side.

    Without slices ``error`` is None: the trials' values were divided. ``disturbed``: others used the machine in so many
    cycles that too few are left without them.
    """

    log: float
    error: float | None = None
    slices: int = 0
    disturbed: bool = False

    @property
    def inverse(self) -> "Paired":
        return dataclasses.replace(self, log=-self.log)


@dataclass(frozen=True)
class Spread:
    """Standard deviations of a ratio's logarithm: what a block's slices explain, and what differs between blocks."""

    within: float
    between: float


def between(a: CaseSummary, b: CaseSummary, metric: str, others: Iterable[CaseSummary]) -> LogEstimate | None:
    """Return the ratio a/b of a metric over the blocks that both cases had; None where nothing can be divided.

    Three blocks or more have Student's t interval over blocks, and three sittings or more over sittings. With fewer
    blocks it comes from their slices, widened by what blocks differ by. Cases that did not fit into memory together
    have few blocks in common, or none: of the
    ``others`` of their row, that column stands between them which had most blocks with each. Where there is none they
    are paired by rounds, as are those that were measured one process after another.
    The first of these ways that has three blocks or rounds is taken, or else the first that there is.
    """
    if a.failure is not None or b.failure is not None:
        return None
    pairs, known = _in_common(a, b), BY_NAME[metric]
    direct = over_sittings(list(_by_sitting(pairs, known).values()), _apart(pairs[0], metric)) if pairs else None
    if _is_enough(direct) or len(pairs) >= MIN_TRIALS_FOR_INTERVAL:
        return direct
    indirect = _by_way_of(others, a, b, metric, MIN_TRIALS_FOR_INTERVAL if pairs else 1)
    if _is_enough(indirect):
        return indirect
    apart = by_rounds(a.by_round(known), b.by_round(known))
    return apart if _is_enough(apart) else direct or indirect or apart


def in_sittings(a: CaseSummary, b: CaseSummary, metric: str) -> dict[int, LogEstimate]:
    """Return the ratio a/b of a metric by the blocks of each sitting alone."""
    pairs = _in_common(a, b)
    found = {
        sitting: over_blocks(blocks, _apart(pairs[0], metric))
        for sitting, blocks in _by_sitting(pairs, BY_NAME[metric]).items()
    }
    return {sitting: ratio for sitting, ratio in found.items() if ratio is not None}


def _by_sitting(pairs: Sequence[tuple[Trial, Trial]], metric: Metric) -> dict[int, list[Paired]]:
    """Return the ratios in the blocks of each sitting."""
    sittings = sorted({own.sitting for (own, _), _ in pairs})
    return {one: _blocks([pair for pair in pairs if pair[0][0].sitting == one], metric) for one in sittings}


def _is_enough(found: LogEstimate | None) -> bool:
    return found is not None and found.trials >= MIN_TRIALS_FOR_INTERVAL


def _by_way_of(
    others: Iterable[CaseSummary], a: CaseSummary, b: CaseSummary, metric: str, least: int
) -> LogEstimate | None:
    """Return a/b as a/c times c/b, of that c of the others that had most blocks with both, and at least so many."""
    found = [
        ours.and_then(theirs)
        for other in others
        if other is not a and other is not b
        if len(_in_common(a, other)) >= least and len(_in_common(other, b)) >= least
        if (ours := between(a, other, metric, ())) is not None and (theirs := between(other, b, metric, ())) is not None
    ]
    return max(found, key=lambda one: one.trials, default=None)


def spread(a: CaseSummary, b: CaseSummary, metric: str) -> Spread | None:
    """Return where the scatter of a ratio comes from; None for fewer than two blocks, or where they have no slices."""
    blocks = _blocks(_in_common(a, b), BY_NAME[metric])
    errors = [one.error for one in blocks if one.error is not None]
    if len(blocks) < 2 or len(errors) < len(blocks):
        return None
    within = statistics.fmean(error**2 for error in errors)
    return Spread(math.sqrt(within), math.sqrt(max(0.0, variance([one.log for one in blocks]) - within)))


def _in_common(a: CaseSummary, b: CaseSummary) -> list[tuple[Trial, Trial]]:
    """Return the trials of each block that both cases had."""
    others = {trial.block: (trial, measurement) for trial, measurement in b.trials if trial.block}
    return [(own, others[own[0].block]) for own in a.trials if own[0].block in others]


def _blocks(pairs: Sequence[tuple[Trial, Trial]], metric: Metric) -> list[Paired]:
    """Return the ratio in each block that has one."""
    return [found for a, b in pairs if (found := _paired(a, b, metric)) is not None]


def by_rounds(a: Mapping[int, float], b: Mapping[int, float]) -> LogEstimate | None:
    """Return the ratio of trial values, paired by round; None where no round has both, or one is not above zero."""
    pairs = [(a[index], b[index]) for index in sorted(a.keys() & b.keys())]
    if not pairs or min(map(min, pairs)) <= 0:
        return None
    return estimate([one / other for one, other in pairs])


def over_blocks(blocks: Sequence[Paired], apart: float) -> LogEstimate | None:
    """Sum up the blocks of two cases; ``apart`` is by how much their ratio differs from block to block.

    Disturbed blocks count only where there are no others.
    """
    if not blocks:
        return None
    undisturbed = [one for one in blocks if not one.disturbed]
    if len(undisturbed) < len(blocks):
        if undisturbed:
            return over_blocks(undisturbed, apart)
        found = over_blocks([dataclasses.replace(one, disturbed=False) for one in blocks], apart)
        return found and dataclasses.replace(found, disturbed=True)
    if len(blocks) >= MIN_TRIALS_FOR_INTERVAL:
        return estimate([math.exp(one.log) for one in blocks])
    centre = statistics.fmean(one.log for one in blocks)
    errors = [one.error for one in blocks if one.error is not None]
    if len(errors) < len(blocks):
        return LogEstimate(centre, None, len(blocks) - 1, len(blocks))
    within = math.sqrt(math.fsum(error**2 for error in errors)) / len(errors)
    error = math.hypot(within, apart / math.sqrt(len(errors)))
    return LogEstimate(centre, error, sum(one.slices - 1 for one in blocks), len(blocks), "slices")


def over_sittings(sittings: Sequence[Sequence[Paired]], apart: float) -> LogEstimate | None:
    """Sum up the blocks of two cases: three or more sittings count as one value each, of fewer the blocks count.

    What differs between two days, all blocks of a day have in common.
    """
    undisturbed = [[one.log for one in blocks if not one.disturbed] for blocks in sittings]
    means = [statistics.fmean(logs) for logs in undisturbed if logs]
    if len(means) >= MIN_TRIALS_FOR_INTERVAL:
        return estimate([math.exp(mean) for mean in means])
    return over_blocks([one for blocks in sittings for one in blocks], apart)


def scatter(metric: str) -> float:
    """Return by how much a ratio of two backends is assumed to differ from block to block where too few were made."""
    return SCATTERS.get(metric, TYPICAL_SCATTER)


def _apart(pair: tuple[Trial, Trial], metric: str) -> float:
    one, other = (trial for trial, _ in pair)
    if (one.backend, one.device.label) != (other.backend, other.device.label):
        return scatter(metric)
    return math.sqrt(2) * BETWEEN_PROCESSES.get(one.backend, BETWEEN_OTHERS)


def _paired(a: Trial, b: Trial, metric: Metric) -> Paired | None:
    """Return the ratio in one block: by its slices where the metric has them, else by the two trials' values."""
    compare = _BY_SLICES.get(metric.name)
    found = compare(a[1], b[1]) if compare else None
    if found is not None:
        return found
    ours, theirs = metric.read(*a), metric.read(*b)
    if ours is None or theirs is None or min(ours, theirs) <= 0:
        return None
    return Paired(math.log(ours / theirs))


def by_slices(a: Sequence[Slice], b: Sequence[Slice]) -> Paired | None:
    """Return the median over common cycles of the difference of the logarithms of two columns' slices.

    Cycles in which others used the machine do not count where enough are left without them.
    """
    return _by_cycles(_means(a), _means(b), disturbed_cycles([a, b]))


def _by_cycles(a: Mapping[int, float], b: Mapping[int, float], disturbed: Set[int]) -> Paired | None:
    counted = _counted(a, b, disturbed)
    logs = [math.log(a[cycle] / b[cycle]) for cycle in counted]
    return Paired(statistics.median(logs), median_error(logs), len(logs), bool(counted & disturbed)) if logs else None


def _counted(a: Mapping[int, float], b: Mapping[int, float], disturbed: Set[int]) -> Set[int]:
    """Return the cycles of both columns that count: the undisturbed ones where they are enough, else all."""
    common = a.keys() & b.keys()
    left = common - disturbed
    return left if len(left) >= min(len(common), LEAST_UNDISTURBED) else common


def by_means(a: CaseSummary, b: CaseSummary) -> float | None:
    """Return the ratio of two training steps by the means of the slices of which ``between`` takes medians.

    An epoch is a sum, so a long wait counts in it as much as it lasts. None where there is nothing to divide.
    """
    logs = [log for one, other in _in_common(a, b) if (log := _log_of_means(one[1], other[1])) is not None]
    return math.exp(statistics.fmean(logs)) if logs else None


def _log_of_means(a: Measurement, b: Measurement) -> float | None:
    ours, theirs = a.training, b.training
    if a.published or b.published or ours is None or theirs is None or ours.unit != theirs.unit:
        return None
    steps = _mean_times(ours.slices, theirs.slices)
    if ours.unit == "epoch" or steps is None:
        return steps and math.log(steps[0] / steps[1])
    epochs, more = _mean_times(ours.epochs, theirs.epochs), a.full_steps_per_epoch - ours.epoch_steps
    if epochs is None or more < 0:
        return None
    return math.log((epochs[0] + more * steps[0]) / (epochs[1] + more * steps[1]))


def _mean_times(a: Sequence[Slice], b: Sequence[Slice]) -> tuple[float, float] | None:
    """Return the mean time of a unit on both sides, over the cycles that count."""
    ours, theirs = _means(a), _means(b)
    counted = _counted(ours, theirs, disturbed_cycles([a, b]))
    if not counted:
        return None
    return statistics.fmean(ours[one] for one in counted), statistics.fmean(theirs[one] for one in counted)


def _means(slices: Sequence[Slice]) -> dict[int, float]:
    """Return by cycle what each unit of its slices took on average, in ns."""
    ns, units = Counter[int](), Counter[int]()
    for slice_ in slices:
        if slice_.cycle is not None:
            ns[slice_.cycle] += slice_.ns
            units[slice_.cycle] += slice_.count
    return {cycle: ns[cycle] / units[cycle] for cycle in units}


def _medians(latency: Latency) -> dict[int, float]:
    """Return by cycle the median of a slice's calls, in ns; the mean where a file does not hold all of them."""
    ends = list(itertools.accumulate(slice_.count for slice_ in latency.slices))
    if not ends or ends[-1] != len(latency.calls_ns):
        return _means(latency.slices)
    return {
        slice_.cycle: statistics.median(latency.calls_ns[end - slice_.count : end])
        for slice_, end in zip(latency.slices, ends, strict=True)
        if slice_.cycle is not None
    }


def _steps(a: Measurement, b: Measurement) -> Paired | None:
    if a.training is None or b.training is None or "epoch" in (a.training.unit, b.training.unit):
        return None
    return by_slices(a.training.slices, b.training.slices)


def _epochs(a: Measurement, b: Measurement) -> Paired | None:
    """Return the ratio of two epochs of the published length; None where they were run in full, or not measured."""
    ours, theirs = a.training, b.training
    if a.published or b.published or ours is None or theirs is None or ours.unit != theirs.unit:
        return None
    steps = by_slices(ours.slices, theirs.slices)
    if ours.unit == "epoch":
        return steps
    short = by_slices(ours.epochs, theirs.epochs)
    more = a.full_steps_per_epoch - ours.epoch_steps
    return joined((ours, theirs), more, steps, short) if steps and short else None


def joined(columns: tuple[Training, Training], more: int, steps: Paired, short: Paired) -> Paired:
    """Return the ratio of a + b * S from that of the steps, r_b, and that of the short epochs, r_e.

    With E and B, the geometric means of both columns' medians of a short epoch of m full steps and of a step:
    (E * sqrt(r_e) + (S - m) * B * sqrt(r_b)) / (E / sqrt(r_e) + (S - m) * B / sqrt(r_b)). Its error follows to the
    first order. ``more`` is S - m; where it is below zero, the steps stand for all.
    """
    if more < 0:
        return steps
    epoch_ns = _geometric(*(statistics.median(slice_.unit_ns for slice_ in one.epochs) for one in columns))
    steps_ns = more * _geometric(*(one.median_ns for one in columns))
    above = epoch_ns * math.exp(short.log / 2), steps_ns * math.exp(steps.log / 2)
    below = epoch_ns * math.exp(-short.log / 2), steps_ns * math.exp(-steps.log / 2)
    share = (above[0] / sum(above) + below[0] / sum(below)) / 2  # of the short epochs in the ratio: its derivative
    known = steps.error is not None and short.error is not None
    error = math.hypot(share * (short.error or 0), (1 - share) * (steps.error or 0)) if known else None
    disturbed = steps.disturbed or short.disturbed
    return Paired(math.log(sum(above) / sum(below)), error, min(steps.slices, short.slices), disturbed)


def _geometric(a: float, b: float) -> float:
    return math.sqrt(a * b)


def _trained(a: Measurement, b: Measurement) -> Paired | None:
    """Return the ratio of two rates of training, in a sweep by the steps alone."""
    if a.training is None:
        return None
    found = _epochs(a, b) if a.training.epochs or a.training.unit == "epoch" else _steps(a, b)
    return found.inverse if found else None


def _called(of: Callable[[Measurement], Latency | None]) -> Callable[[Measurement, Measurement], Paired | None]:
    """Return what compares calls by their medians, which a few long ones do not change."""

    def compare(a: Measurement, b: Measurement) -> Paired | None:
        ours, theirs = of(a), of(b)
        if ours is None or theirs is None:
            return None
        return _by_cycles(_medians(ours), _medians(theirs), disturbed_cycles([ours.slices, theirs.slices]))

    return compare


def _predicted(a: Measurement, b: Measurement) -> Paired | None:
    found = by_slices(a.throughput.slices, b.throughput.slices) if a.throughput and b.throughput else None
    return found.inverse if found else None


_BY_SLICES: dict[str, Callable[[Measurement, Measurement], Paired | None]] = {
    "train_step_ms": _epochs,
    "epoch_s": _epochs,
    "steady_step_ms": _steps,
    "train_samples_per_s": _trained,
    "predict_p50_ms": _called(single),
    "predict_batch_p50_ms": _called(batched),
    "predict_samples_per_s": _predicted,
}
