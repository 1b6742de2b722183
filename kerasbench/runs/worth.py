"""What a row's next block is worth: how many cycles it has, and what it may leave out.

A ratio scatters from block to block, more than its slices explain. So many cycles in few blocks say less than few in
many. The best number follows from what a cycle and a block cost: T. Kalibera and R. Jones, "Rigorous benchmarking in
reasonable time", ISMM 2013.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kerasbench.analysis import ratios
from kerasbench.analysis.cases import HEADLINE, PREDICTED, PREDICTED_ONE, CaseSummary, headline_of
from kerasbench.analysis.estimates import variance
from kerasbench.analysis.moderation import Prior, Priors
from kerasbench.analysis.ratios import TYPICAL_SCATTER
from kerasbench.plan.cases import Case
from kerasbench.protocol.measurement import STAGES, Measurement
from kerasbench.protocol.requests import Protocol
from kerasbench.results.record import MIN_ROUNDS, RunConfig, TrialRecord
from kerasbench.runs import schedule
from kerasbench.runs.schedule import Between

TRAIN, EPOCH, ONE, BATCH, ALL, _ = STAGES
RACE_CYCLES = 12
EVERY = 3  # rounds: in one of so many a row measures what it does not wait for
# About as many as twelve scenarios were worth on three backends, by their first blocks: 12 to 37.
FIRST_CYCLES = 30
# What blocks are assumed to scatter by counts as much as so many blocks of a row's own, in a run of too few ratios to
# learn it from them.
ASSUMED_DEGREES = 4
IN_TURN = ("train", "epoch", "predict", "parts")  # phases
PREDICTIONS = (PREDICTED_ONE, PREDICTED, "predict_samples_per_s")


@dataclass(frozen=True)
class Portion:
    """How much a row's next block measures."""

    cycles: Mapping[str, int] = field(default_factory=dict)  # of a stage, at most; as many as there is time for if none
    epochs: bool = True
    predicts: bool = True


@dataclass(frozen=True)
class Scatter:
    """How a ratio scatters, as variances of its logarithm."""

    total: float  # of blocks
    between: float  # of blocks, without what their slices explain
    of_one_cycle: Mapping[str, float]  # what a single cycle of a stage would leave open


def best_cycles(start_s: float, cycle_s: float, of_one_cycle: float, between: float) -> float:
    """Return how many cycles make the most of a block's time: sqrt(start / cycle * within / between).

    n cycles in each of m blocks take m (start + n cycle), and leave the variance (between + within / n) / m.
    """
    return math.sqrt(start_s / cycle_s * of_one_cycle / between) if between > 0 else math.inf


def first_portion(config: RunConfig, cases: Sequence[Case]) -> Portion:
    """Return how much a row's first block measures: as others are worth, if further blocks follow in any case.

    The first look of a race is to show who is far behind.
    """
    effort = config.effort
    if config.race:
        return Portion({TRAIN: RACE_CYCLES})
    places = {(case.backend, case.device.label) for case in cases}  # columns of one scatter less: they need more cycles
    known = effort.min_rounds >= MIN_ROUNDS and effort.protocol.kind == "steady" and len(places) > 1
    return Portion({TRAIN: FIRST_CYCLES}) if known else Portion()


def next_portion(
    protocol: Protocol, trials: Sequence[TrialRecord], paired: bool, between: Between, priors: Priors | None
) -> Portion:
    """Return how much a row's next block measures, by all its trials so far; ``paired``: it compares versions."""
    measured = [summary for summary in schedule.summaries(trials) if summary.failure is None]
    rounds: dict[int, set[int]] = {}
    for trial in trials:
        if trial.block:
            rounds.setdefault(trial.round, set()).add(trial.block)
    if any(len(blocks) > 1 for blocks in rounds.values()):  # not all columns fit into memory together
        return Portion()
    cycles = cycles_of(protocol, measured, headline_of(trials), priors)
    following = 1 + max(rounds, default=0)
    if protocol.kind != "steady" or protocol.parts or following <= MIN_ROUNDS or following % EVERY == 0:
        return Portion(cycles)
    if paired and not _is_precise(trials, between, priors):  # each figure of two versions is compared
        return Portion(cycles)
    return Portion(cycles, epochs=len(measured) == 1 or _epochs_matter(measured), predicts=False)


def cycles_of(
    protocol: Protocol, measured: Sequence[CaseSummary], metric: str, priors: Priors | None
) -> dict[str, int]:
    """Return how many cycles the stages of a metric have at most; none that is bounded by time alone.

    By the pair whose ratio scatters most: it is the one that the row waits for.
    """
    pairs = itertools.combinations(measured, 2)
    scatters = [found for a, b in pairs if (found := scatter_of(a, b, metric, priors)) is not None]
    if not scatters:
        return {}
    worst = max(scatters, key=lambda found: found.total)
    newest = max(trial.block for case in measured for trial, _ in case.trials)
    block = [pair for case in measured for pair in case.trials if pair[0].block == newest]
    start_s = _start_s(block)
    best = {}
    for stage, of_one_cycle in worst.of_one_cycle.items():
        cycle_s = math.fsum(_turn_s(trial, stage) for trial, _ in block)
        if start_s > 0 and cycle_s > 0:
            best[stage] = best_cycles(start_s, cycle_s, of_one_cycle, worst.between)
    most = {stage: max(protocol.min_cycles, math.ceil(one)) for stage, one in best.items() if math.isfinite(one)}
    # No block is started for the predictions of a model that is trained: what they cost beyond their cycles is so
    # little that the fewest are about the best.
    return most if BATCH in most or ONE in most else dict.fromkeys((ONE, BATCH, ALL), protocol.min_cycles) | most


def scatter_of(a: CaseSummary, b: CaseSummary, metric: str, priors: Priors | None) -> Scatter | None:
    """Return how the ratio of two cases scatters; None where no block has slices of both.

    Its variance between blocks is moderated by those of the run's other ratios, or by what is assumed of all.
    """
    pairs = ratios.in_common(a, b)
    blocks = [one for one in ratios.of_blocks((a, b), metric) if one.error is not None]
    if not blocks:
        return None
    within = statistics.fmean((one.error or 0.0) ** 2 for one in blocks)
    prior = priors.of(metric, ratios.is_one_backend(pairs[0])) if priors else None
    prior = prior or Prior(within + ratios.assumed_scatter(pairs[0], metric) ** 2, ASSUMED_DEGREES, 0)
    own = variance([one.log for one in blocks]) if len(blocks) > 1 else 0.0
    total, _ = prior.moderate(own, len(blocks) - 1)
    by_stage: dict[str, list[float]] = {}
    for (_, ours), (_, theirs) in pairs:
        for stage, of_one_cycle in _by_stage(ours, theirs, metric):
            by_stage.setdefault(stage, []).append(of_one_cycle)
    means = {stage: statistics.fmean(found) for stage, found in by_stage.items()}
    return Scatter(total, max(0.0, total - within), means)


def _by_stage(a: Measurement, b: Measurement, metric: str) -> Iterator[tuple[str, float]]:
    """Yield the variance that a single cycle of each stage would leave to the logarithm of a ratio in a block."""
    if a.training is None or b.training is None:
        ratio = ratios.of_trials(a, b, metric)
        if ratio is not None:
            yield ONE if metric == PREDICTED_ONE else BATCH, ratio.of_one_cycle
        return
    share = ratios.share_of_epochs(a, b) if metric == HEADLINE else 0.0
    steps, epochs = (
        ratios.by_slices(ours, theirs)
        for ours, theirs in ((a.training.slices, b.training.slices), (a.training.epochs, b.training.epochs))
    )
    if steps is not None:
        yield TRAIN, (1 - share) ** 2 * steps.of_one_cycle
    if share and epochs is not None:
        yield EPOCH, share**2 * epochs.of_one_cycle


Block = Sequence[tuple[TrialRecord, Measurement]]


def _start_s(block: Block) -> float:
    """Return how long a block took up to the end of its warm-up, and for what else is in no turn."""
    turns_s = math.fsum(_turns_s(trial, phase) for trial, _ in block for phase in IN_TURN)
    return max(trial.wall_ns for trial, _ in block) / 1e9 - turns_s


def _turns_s(trial: TrialRecord, name: str) -> float:
    """Return how long a trial's turns in a phase took, with what they discarded."""
    took_ns = sum(phase.duration_ns for phase in trial.phases if phase.name == name)
    training = trial.measurement.training if trial.measurement else None
    warmup_ns = sum(slice_.ns for slice_ in training.warmup) if training and name == "train" else 0
    return (took_ns - warmup_ns) / 1e9


def _turn_s(trial: TrialRecord, stage: str) -> float:
    """Return how long a turn takes; 0 where the trial had none of this stage."""
    found = trial.measurement
    if found is None:
        return 0.0
    if stage in (ONE, BATCH):
        turns = sum(len(latency.slices) for latency in found.prediction)
        turns += len(found.throughput.slices) if found.throughput else 0
        return _turns_s(trial, "predict") / turns if turns else 0.0
    if found.training is None:
        return 0.0
    turns = len(found.training.slices if stage == TRAIN else found.training.epochs)
    return _turns_s(trial, stage) / turns if turns else 0.0


def _is_precise(trials: Sequence[TrialRecord], between: Between, priors: Priors | None) -> bool:
    """Tell whether every ratio of predictions is known well enough."""
    widths = [width for metric in PREDICTIONS for width in schedule.half_widths(trials, between, priors, metric)]
    return all(width is not None and width <= schedule.PRECISION for width in widths)


def _epochs_matter(measured: Sequence[CaseSummary]) -> bool:
    """Tell whether short epochs of another block would make a ratio less precise than a block is to be."""
    shares = [
        [ratios.share_of_epochs(ours, theirs) for (_, ours), (_, theirs) in ratios.in_common(a, b)]
        for a, b in itertools.combinations(measured, 2)
    ]
    return any(statistics.fmean(of_pair) * TYPICAL_SCATTER > schedule.SLICE_PRECISION for of_pair in shares if of_pair)
