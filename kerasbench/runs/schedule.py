"""The schedule of a run: the order of rows and columns, and what a row's next block measures."""

import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from kerasbench.analysis.cases import HEADLINE, PREDICTED, PREDICTED_ONE, Measured, headline_of
from kerasbench.analysis.estimates import Prior, variance
from kerasbench.analysis.families import TYPICAL_SCATTER
from kerasbench.analysis.ratios import RowRatios, divide_slices, divide_trials, share_of_epochs, trials_in_common
from kerasbench.plan.cases import Case
from kerasbench.plan.stages import shares_of
from kerasbench.protocol.columns import CPU, Column
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import Sizes, TrialPlan
from kerasbench.protocol.stages import BATCH, EPOCH, ONE, PARTS, PREDICTIONS, STAGES, TRAIN
from kerasbench.results.run import MIN_ROUNDS, Effort, Trial
from kerasbench.runs.sizes import BY_ITSELF_NS, NS_PER_S, lead_ns, units_of
from kerasbench.runs.turns import LEAST_CYCLES, SLICE_PRECISION


def order_cases(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
    """Permute rows, then the cases inside each: they are compared, so drift between them must be small."""
    rng = random.Random(f"{seed}/{round_index}")
    rows = list(dict.fromkeys(case.row for case in cases))
    rng.shuffle(rows)
    return sorted(rng.sample(cases, len(cases)), key=lambda case: rows.index(case.row))


def blocks_by_round(trials: Iterable[Trial]) -> dict[int, set[int]]:
    blocks: dict[int, set[int]] = {}
    for trial in trials:
        if trial.block:
            blocks.setdefault(trial.round, set()).add(trial.block)
    return blocks


# Many cycles in few blocks say less than few in many. The best number follows from what both cost: T. Kalibera and
# R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.

EVERY = 3  # of many rounds that are asked for: in one of so many a row measures what it does not wait for
QUICK_CYCLES = 14  # of a quick look: with more, its ratios differ by as much from the next look's
FIRST_CYCLES = 15  # twelve scenarios were worth 12 to 37 on three backends, by their first blocks
ASSUMED_DEGREES = 4  # blocks of a row's own, as which an assumed scatter counts where there are too few ratios
PREDICT_PHASES = ("predict", "calls")
IN_TURN = {stage.phase for stage in STAGES.values()}
PREDICTION_METRICS = (PREDICTED_ONE, PREDICTED, "predict_samples_per_s")


@dataclass(frozen=True)
class NextBlock:
    cycles: Mapping[str, int] = field(default_factory=dict)  # of a stage, at most; as many as there is time for if none
    left_out: frozenset[str] = frozenset()  # stages of a model that is trained

    def measuring(self, *stages: str) -> "NextBlock":
        return replace(self, left_out=self.left_out.difference(stages))


def best_cycles(start_s: float, cycle_s: float, of_one_cycle: float, between: float) -> float:
    """n cycles in each of m blocks take m (start + n cycle), and leave the variance (between + within / n) / m."""
    return math.sqrt(start_s / cycle_s * of_one_cycle / between)


def stage_of(metric: str) -> str:
    """Return the stage by which columns are told apart while a block is measured."""
    return {PREDICTED: BATCH, PREDICTED_ONE: ONE}.get(metric, TRAIN)


def first_block(effort: Effort, cases: Sequence[Case]) -> NextBlock:
    """As others are worth, if further blocks follow in any case."""
    places = {(case.backend, case.device.label) for case in cases}  # columns of one scatter less: they need more cycles
    if not effort.cold and not cases[0].paired:
        return NextBlock({TRAIN: QUICK_CYCLES})
    others_follow = effort.min_rounds >= MIN_ROUNDS and effort.plan.agenda.usual and len(places) > 1
    return NextBlock({TRAIN: FIRST_CYCLES}) if others_follow else NextBlock()


def next_block(
    case: Case,
    least: int,
    ratios: RowRatios[Column],
    trials: Iterable[Trial],
    is_known: Callable[[str], bool],
) -> NextBlock:
    """``least``: rounds that are asked for in any case; ``is_known``: whether the row's ratios of a metric are."""
    plan, rounds = case.plan, blocks_by_round(trials)
    if any(len(blocks) > 1 for blocks in rounds.values()):  # not all columns fit into memory together
        return NextBlock()
    compared = [*ratios.measured.values()]
    headline = headline_of(trial for measured in compared for trial, _ in measured.trials)
    cycles = cycles_of(plan, ratios, headline)
    following = 1 + max(rounds, default=0)
    if not plan.agenda.usual or PARTS in plan.stages or (MIN_ROUNDS < following <= least and following % EVERY == 0):
        return NextBlock(cycles)
    epochs = frozenset[str]() if len(compared) == 1 or _epochs_matter(compared) else frozenset({EPOCH})
    if following <= MIN_ROUNDS:
        return NextBlock(cycles, frozenset() if case.paired else epochs)
    if case.paired and not all(map(is_known, PREDICTION_METRICS)):  # each figure of two versions is compared
        return NextBlock(cycles)
    return NextBlock(cycles, epochs.union(PREDICTIONS))


def cycles_of(plan: TrialPlan, ratios: RowRatios[Column], metric: str) -> dict[str, int]:
    """By the pair whose ratio scatters most, for which the row waits; no stage that is bounded by time alone."""
    measured = ratios.measured
    pairs = itertools.combinations(measured, 2)
    scatters = [scatter for a, b in pairs if (scatter := scatter_of(ratios, a, b, metric))]
    if not scatters:
        return {}
    _, between, within = max(scatters, key=itemgetter(0))
    newest = max(trial.block for case in measured.values() for trial, _ in case.trials)
    block = [pair for case in measured.values() for pair in case.trials if pair[0].block == newest]
    turns_s = math.fsum(_turns_s(trial, phase) for trial, _ in block for phase in IN_TURN)
    start_s = max(trial.wall_ns for trial, _ in block) / 1e9 - turns_s  # with the warm-up, and all that is in no turn
    most = {}
    for stage, of_one_cycle in within.items():
        cycle_s = math.fsum(_turn_s(trial, stage) for trial, _ in block)
        if start_s > 0 and cycle_s > 0 and between > 0:
            most[stage] = max(plan.min_cycles, math.ceil(best_cycles(start_s, cycle_s, of_one_cycle, between)))
    # No block is started for predictions of a model that is trained: for them, the fewest are about the best.
    return most if BATCH in most or ONE in most else dict.fromkeys(PREDICTIONS, plan.min_cycles) | most


def scatter_of(
    ratios: RowRatios[Column], a: Column, b: Column, metric: str
) -> tuple[float, float, dict[str, float]] | None:
    """Return the variance of blocks; without what slices explain; and what one cycle of each stage would leave open."""
    blocks = [(ratio.log, ratio.error) for ratio in ratios.blocks(a, b, metric) if ratio.error is not None]
    if not blocks:
        return None
    within = statistics.fmean(error**2 for _, error in blocks)
    prior = ratios.prior(a, b, metric)
    prior = prior or Prior(within + ratios.assumed_scatter(a, b, metric) ** 2, ASSUMED_DEGREES, 0)
    total, _ = prior.moderate(variance([log for log, _ in blocks]) if len(blocks) > 1 else 0.0, len(blocks) - 1)
    by_stage: dict[str, list[float]] = {}
    for (_, ours), (_, theirs) in trials_in_common(ratios.cases[a], ratios.cases[b]):
        for stage, of_one_cycle in _by_stage(ours, theirs, metric):
            by_stage.setdefault(stage, []).append(of_one_cycle)
    means = {stage: statistics.fmean(of_blocks) for stage, of_blocks in by_stage.items()}
    return total, max(0.0, total - within), means


def _by_stage(a: Measurement, b: Measurement, metric: str) -> Iterator[tuple[str, float]]:
    """Yield the variance of the logarithm of a ratio that a single cycle of each stage would leave."""
    if a.training is None or b.training is None:
        ratio = divide_trials(a, b, metric)
        if ratio is not None:
            yield ONE if metric == PREDICTED_ONE else BATCH, ratio.of_one_cycle
        return
    share = share_of_epochs(a, b) if metric == HEADLINE else 0.0
    for stage, of_stage in ((TRAIN, 1 - share), (EPOCH, share)):
        ours, theirs = a.samples.get(stage), b.samples.get(stage)
        ratio = divide_slices(ours, theirs) if of_stage and ours and theirs else None
        if ratio is not None:
            yield stage, of_stage**2 * ratio.of_one_cycle


def _turns_s(trial: Trial, name: str) -> float:
    took_ns = sum(phase.duration_ns for phase in trial.phases if phase.name == name)
    training = trial.measurement.training if trial.measurement else None
    warmup_ns = sum(training.warmup.ns) if training and name == STAGES[TRAIN].phase else 0
    return (took_ns - warmup_ns) / 1e9


def _turn_s(trial: Trial, stage: str) -> float:
    phase = STAGES[stage].phase
    phases = PREDICT_PHASES if phase in PREDICT_PHASES else (phase,)
    stages = [name for name, facts in STAGES.items() if facts.phase in phases]
    turns = sum(len(trial.measurement.samples.get(name, ())) for name in stages) if trial.measurement else 0
    return math.fsum(_turns_s(trial, phase) for phase in phases) / turns if turns else 0.0


def _epochs_matter(measured: Sequence[Measured]) -> bool:
    """To the precision that a block is to have; or those that are there to be lent were disturbed."""
    for a, b in itertools.combinations(measured, 2):
        blocks = [(ours, theirs) for (_, ours), (_, theirs) in trials_in_common(a, b)]
        if blocks:
            share = statistics.fmean(share_of_epochs(ours, theirs) for ours, theirs in blocks)
            ours, theirs = (measurement.samples.get(EPOCH) for measurement in blocks[-1])
            short = divide_slices(ours, theirs) if ours and theirs else None
            if share * TYPICAL_SCATTER > SLICE_PRECISION or (short is not None and short.disturbed):
                return True
    return False


# How long a column takes, by its first steps. What was seen besides the units themselves, on two cores.
STEADY_TIMES = 2.0  # the least warm-up, until it is steady
STAGE_SLICES = 7  # as long as so many: compiling, collecting rows, the turns of a stage
EPOCH_NS = 1_300_000_000  # and what is learned of short epochs
OPERATIONS_PER_S = 100e9  # of a processor, at most, where a step by itself is too short to tell


def column_s(case: Case, plan: TrialPlan, sizes: Sizes, step_ns: float, most: Mapping[str, int]) -> float:
    """Beside its first steps; ``most``: cycles of a stage (``NextBlock``)."""
    workload = case.selected.workload
    if case.device.kind == CPU and workload.operations:
        computing_ns = NS_PER_S * workload.operations / OPERATIONS_PER_S
        step_ns = max(step_ns, BY_ITSELF_NS + min(step_ns, computing_ns))
    units, cycles = units_of(workload, step_ns, sizes.pass_batches), plan.min_cycles
    ns = 0.0
    if not workload.predicts_only:
        learns = case.selected.entry.description.learnable and plan.repeats_first_step and not plan.agenda.sized
        ns += (sizes.learn_steps if learns else sizes.parity_steps) * units["step"]
        ns += 2 * (1 + (sizes.evaluated_batches if learns else 0)) * units["forward"]
        warmup_ns = max(STEADY_TIMES * plan.warmup_min_ns, 2 * units["train"])
        ns += min(warmup_ns, plan.warmup_max_ns + units["train"])
    shares = shares_of(plan, workload)
    for stage in plan.stages:
        if stage not in sizes.left_out:
            facts, slices_ns = STAGES[stage], shares.get(stage, 0.2) * case.slices_ns
            slice_ns = max(units[facts.unit], plan.slice_ns)
            least_ns = (LEAST_CYCLES if facts.long else cycles) * slice_ns
            slices_ns = min(slices_ns, most.get(stage, math.inf) * slice_ns)
            ns += lead_ns(stage, units, sizes.warmup_calls) + max(least_ns, slices_ns)
            ns += STAGE_SLICES * plan.slice_ns + (EPOCH_NS if stage == EPOCH else 0)
    return ns / NS_PER_S
