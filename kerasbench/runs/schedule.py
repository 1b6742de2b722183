"""The schedule of a run: the order of rows and columns, when they have enough, and what a row's next block measures."""

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import itemgetter

from kerasbench.analysis import ratios
from kerasbench.analysis.cases import HEADLINE, PREDICTED, PREDICTED_ONE, Measured, headline_of
from kerasbench.analysis.estimates import Prior, variance
from kerasbench.analysis.families import TYPICAL_SCATTER, Priors
from kerasbench.analysis.ratios import ratio_of
from kerasbench.plan.cases import Case
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import Protocol, Sizes
from kerasbench.protocol.stages import ALL, BATCH, EPOCH, ONE, STAGES, TRAIN
from kerasbench.results.run import BUDGET, MIN_ROUNDS, Effort, RunConfig, Trial
from kerasbench.runs.sizes import NS_PER_S, lead_ns, stages_of, units_of
from kerasbench.runs.turns import LEAST_CYCLES, SLICE_PRECISION, shares
from kerasbench.text import count


def order_cases(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
    """Permute rows, then the cases inside each: they are compared, so drift between them must be small."""
    rng = random.Random(f"{seed}/{round_index}")
    rows = list(dict.fromkeys(case.row for case in cases))
    rng.shuffle(rows)
    return sorted(rng.sample(cases, len(cases)), key=lambda case: rows.index(case.row))


PRECISION = 0.02  # half-width by its rounds alone, for every ratio, at which further ones add nothing that matters
PRECISION_ON_BATTERY = 0.05
# An interval that kept so much of its width in so many blocks no longer shrinks. Six blocks from three leave 0.42.
NO_GAIN, NO_GAIN_BLOCKS = 0.95, 3


class StopReason(Enum):
    PRECISE = "the session's own noise is below ±{percent:.0f} % for every {what}"
    NO_GAIN = "the last {blocks} rounds made the {what}s no more precise"
    ROUNDS = "all {rounds} rounds are done"
    BROKEN = "base or head failed, so nothing is left to compare"
    WON = "no other setting can beat the leader by more than the margin"


def stop_reason(
    effort: Effort, widths: Sequence[Sequence[float | None]], precision: float = PRECISION
) -> StopReason | None:
    """None: it goes on. ``widths`` has the ``half_widths`` after each of its blocks, in an order that stays."""
    done = len(widths)
    if done >= effort.max_rounds:
        return StopReason.ROUNDS
    if done < effort.min_rounds or not widths[-1]:
        return None
    if all(width is not None and width <= precision for width in widths[-1]):
        return StopReason.PRECISE
    earlier = done - NO_GAIN_BLOCKS
    if earlier < effort.min_rounds or len(widths[earlier - 1]) != len(widths[-1]):  # a column has failed in between
        return None
    gained = (
        new is None or (new > precision and (old is None or new < NO_GAIN * old))
        for old, new in zip(widths[earlier - 1], widths[-1], strict=True)
    )
    return None if any(gained) else StopReason.NO_GAIN


def blocks_by_round(trials: Iterable[Trial]) -> dict[int, set[int]]:
    blocks: dict[int, set[int]] = {}
    for trial in trials:
        if trial.block:
            blocks.setdefault(trial.round, set()).add(trial.block)
    return blocks


def half_widths(compared: Sequence[Measured], metric: str, priors: Priors | None = None) -> list[float | None]:
    """Of all ratios of a row's columns, or its only column's interval; None: too little is known, or all disturbed."""
    if len(compared) == 1:
        interval = compared[0].estimate(metric)
        return [interval.half_width if interval else None]
    of_pairs = [ratio_of(a, b, metric, compared, priors) for a, b in itertools.combinations(compared, 2)]
    return [ratio.half_width if ratio and not ratio.disturbed else None for ratio in of_pairs]


def out_of_budget(budget_s: float | None, spent_s: float, another_s: float, done: int) -> str:
    """Say why no further round begins after so many; empty where it would end within the budget."""
    if budget_s is None or not done or spent_s + another_s <= budget_s:
        return ""
    if spent_s > budget_s:
        taken = "the first round, which is always completed, has" if done == 1 else f"{done} rounds have"
        return f"{BUDGET} {budget_s:g} s is used up: {taken} taken {spent_s:.0f} s"
    left_s = budget_s - spent_s
    return f"another round of about {another_s:.0f} s does not fit into the {left_s:.0f} s that {BUDGET} leaves"


def in_words(reason: StopReason, effort: Effort, precision: float, several: bool = True) -> str:
    """``several``: of columns that are compared."""
    if reason is StopReason.ROUNDS and effort.max_rounds <= 1:
        return "one round was asked for"
    what = "ratio" if several else "time"
    return reason.value.format(what=what, percent=100 * precision, blocks=NO_GAIN_BLOCKS, rounds=effort.max_rounds)


def all_in_words(reasons: Sequence[StopReason], effort: Effort, precision: float, several: bool = True) -> str:
    rows = Counter(reasons)
    parts = [(rows[reason], in_words(reason, effort, precision, several)) for reason in StopReason if rows[reason]]
    if len(parts) == 1:
        return parts[0][1]
    return "; ".join(f"{count(number, 'workload')}: {why}" for number, why in parts)


# Many cycles in few blocks say less than few in many. The best number follows from what both cost: T. Kalibera and
# R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.

EVERY = 3  # rounds: in one of so many a row measures what it does not wait for
FIRST_CYCLES = 30  # about as many as twelve scenarios were worth on three backends, by their first blocks: 12 to 37
ASSUMED_DEGREES = 4  # blocks of a row's own, as which an assumed scatter counts where there are too few ratios
PREDICT_PHASES = ("predict", "calls")
IN_TURN = {stage.phase for stage in STAGES.values()}
PREDICTIONS = (PREDICTED_ONE, PREDICTED, "predict_samples_per_s")


@dataclass(frozen=True)
class Portion:
    cycles: Mapping[str, int] = field(default_factory=dict)  # of a stage, at most; as many as there is time for if none
    epochs: bool = True
    predicts: bool = True


def best_cycles(start_s: float, cycle_s: float, of_one_cycle: float, between: float) -> float:
    """n cycles in each of m blocks take m (start + n cycle), and leave the variance (between + within / n) / m."""
    return math.sqrt(start_s / cycle_s * of_one_cycle / between)


def first_portion(config: RunConfig, cases: Sequence[Case]) -> Portion:
    """As others are worth, if further blocks follow in any case."""
    effort = config.effort
    places = {(case.backend, case.device.label) for case in cases}  # columns of one scatter less: they need more cycles
    known = effort.min_rounds >= MIN_ROUNDS and effort.protocol.agenda.usual and len(places) > 1
    return Portion({TRAIN: FIRST_CYCLES}) if known else Portion()


def next_portion(case: Case, compared: Sequence[Measured], trials: Iterable[Trial], priors: Priors | None) -> Portion:
    protocol, rounds = case.protocol, blocks_by_round(trials)
    if any(len(blocks) > 1 for blocks in rounds.values()):  # not all columns fit into memory together
        return Portion()
    headline = headline_of(trial for measured in compared for trial, _ in measured.trials)
    cycles = cycles_of(protocol, compared, headline, priors)
    following = 1 + max(rounds, default=0)
    if not protocol.agenda.usual or protocol.parts or following <= MIN_ROUNDS or following % EVERY == 0:
        return Portion(cycles)
    if case.paired:  # each figure of two versions is compared
        widths = [width for metric in PREDICTIONS for width in half_widths(compared, metric, priors)]
        if not all(width is not None and width <= PRECISION for width in widths):
            return Portion(cycles)
    return Portion(cycles, epochs=len(compared) == 1 or _epochs_matter(compared), predicts=False)


def cycles_of(protocol: Protocol, measured: Sequence[Measured], metric: str, priors: Priors | None) -> dict[str, int]:
    """By the pair whose ratio scatters most, for which the row waits; no stage that is bounded by time alone."""
    pairs = itertools.combinations(measured, 2)
    scatters = [scatter for a, b in pairs if (scatter := scatter_of(a, b, metric, priors))]
    if not scatters:
        return {}
    _, between, within = max(scatters, key=itemgetter(0))
    newest = max(trial.block for case in measured for trial, _ in case.trials)
    block = [pair for case in measured for pair in case.trials if pair[0].block == newest]
    turns_s = math.fsum(_turns_s(trial, phase) for trial, _ in block for phase in IN_TURN)
    start_s = max(trial.wall_ns for trial, _ in block) / 1e9 - turns_s  # with the warm-up, and all that is in no turn
    most = {}
    for stage, of_one_cycle in within.items():
        cycle_s = math.fsum(_turn_s(trial, stage) for trial, _ in block)
        if start_s > 0 and cycle_s > 0 and between > 0:
            most[stage] = max(protocol.min_cycles, math.ceil(best_cycles(start_s, cycle_s, of_one_cycle, between)))
    # No block is started for predictions of a model that is trained: for them, the fewest are about the best.
    return most if BATCH in most or ONE in most else dict.fromkeys((ONE, BATCH, ALL), protocol.min_cycles) | most


def scatter_of(
    a: Measured, b: Measured, metric: str, priors: Priors | None
) -> tuple[float, float, dict[str, float]] | None:
    """Return the variance of blocks; without what slices explain; and what one cycle of each stage would leave open."""
    blocks = [(ratio.log, ratio.error) for ratio in ratios.of_blocks((a, b), metric) if ratio.error is not None]
    if not blocks:
        return None
    within = statistics.fmean(error**2 for _, error in blocks)
    prior = priors(metric, ratios.family_of(a, b)) if priors else None
    prior = prior or Prior(within + ratios.assumed_scatter(a, b, metric) ** 2, ASSUMED_DEGREES, 0)
    total, _ = prior.moderate(variance([log for log, _ in blocks]) if len(blocks) > 1 else 0.0, len(blocks) - 1)
    by_stage: dict[str, list[float]] = {}
    for (_, ours), (_, theirs) in ratios.in_common(a, b):
        for stage, of_one_cycle in _by_stage(ours, theirs, metric):
            by_stage.setdefault(stage, []).append(of_one_cycle)
    means = {stage: statistics.fmean(of_blocks) for stage, of_blocks in by_stage.items()}
    return total, max(0.0, total - within), means


def _by_stage(a: Measurement, b: Measurement, metric: str) -> Iterator[tuple[str, float]]:
    """Yield the variance of the logarithm of a ratio that a single cycle of each stage would leave."""
    if a.training is None or b.training is None:
        ratio = ratios.of_trials(a, b, metric)
        if ratio is not None:
            yield ONE if metric == PREDICTED_ONE else BATCH, ratio.of_one_cycle
        return
    share = ratios.share_of_epochs(a, b) if metric == HEADLINE else 0.0
    for stage, of_stage in ((TRAIN, 1 - share), (EPOCH, share)):
        ours, theirs = a.samples(stage), b.samples(stage)
        ratio = ratios.by_slices(ours, theirs) if of_stage and ours and theirs else None
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
    turns = sum(len(trial.measurement.samples(name) or ()) for name in stages) if trial.measurement else 0
    return math.fsum(_turns_s(trial, phase) for phase in phases) / turns if turns else 0.0


def _epochs_matter(measured: Sequence[Measured]) -> bool:
    """To the precision that a block is to have; or those that are there to be lent were disturbed."""
    for a, b in itertools.combinations(measured, 2):
        blocks = [(ours, theirs) for (_, ours), (_, theirs) in ratios.in_common(a, b)]
        if blocks:
            share = statistics.fmean(ratios.share_of_epochs(ours, theirs) for ours, theirs in blocks)
            ours, theirs = (measurement.samples(EPOCH) for measurement in blocks[-1])
            short = ratios.by_slices(ours, theirs) if ours and theirs else None
            if share * TYPICAL_SCATTER > SLICE_PRECISION or (short is not None and short.disturbed):
                return True
    return False


# How long a column takes, by its first steps. What was seen besides the units themselves, on two cores.
FILLED = 0.8  # of the time for slices, before they are precise
STEADY_TIMES = 2.0  # the least warm-up, until it is steady
STAGE_S = 1.0  # compiling, collecting rows, the turns of a stage


def column_s(case: Case, sizes: Sizes, step_ns: float) -> float:
    """Beside its first steps."""
    protocol, workload = case.protocol, case.selected.workload
    units, cycles = units_of(workload, step_ns, sizes.pass_batches), protocol.min_cycles
    ns = 0.0
    if not workload.predicts_only:
        learns = case.selected.entry.description.learnable and protocol.repeats and not protocol.agenda.sized
        ns += (sizes.learn_steps if learns else sizes.parity_steps) * units["step"]
        ns += 2 * (1 + (sizes.evaluated_batches if learns else 0)) * units["forward"]
        warmup_ns = max(STEADY_TIMES * protocol.warmup_min_ns, 2 * units["train"])
        ns += min(warmup_ns, protocol.warmup_max_ns + units["train"])
    of_stage, filled = shares(protocol, workload), 1.0 if protocol.lasts else FILLED
    for stage in stages_of(protocol, workload):
        if stage not in sizes.left_out:
            facts, slices_ns = STAGES[stage], filled * of_stage.get(stage, 0.2) * case.slices_ns
            least_ns = (LEAST_CYCLES if facts.long else cycles) * max(units[facts.unit], protocol.slice_ns)
            ns += lead_ns(stage, units, sizes.warmup_calls) + max(least_ns, slices_ns) + STAGE_S * NS_PER_S
    return ns / NS_PER_S
