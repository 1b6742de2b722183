"""The schedule of a run, as pure functions: in which order rows, columns and slices come, and when there is enough."""

import dataclasses
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType

from kerasbench.analysis.cases import CaseSummary, headline_of, summarize_case
from kerasbench.analysis.estimates import LogEstimate, median_error, minimal_effect, t_quantile
from kerasbench.analysis.moderation import Priors
from kerasbench.plan.cases import SOAKED, Case, Shared
from kerasbench.protocol.columns import CaseKey
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import BUILD, CALLS, GENERATIONS, STAGES, Slice, disturbed_cycles
from kerasbench.protocol.requests import Protocol, counts_epochs
from kerasbench.results.record import BUDGET, Effort, TrialRecord
from kerasbench.text import count

# The order of cases in a round, and of columns in a block's cycles.

Orders = Callable[[int], Iterator[Sequence[int]]]


def order_cases(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
    """Return the cases in this round's random order: rows permuted, then the cases inside each.

    Cases of one row stay together, because they are what is compared: drift between them must be small.
    """
    rng = random.Random(f"{seed}/{round_index}")
    groups: dict[Shared, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.row, []).append(case)
    together = list(groups.values())
    rng.shuffle(together)
    return [case for group in together for case in rng.sample(group, len(group))]


def draw_orders(seed: str) -> Orders:
    """Return a function that draws a stage's orders for so many columns, endlessly: others for each call."""
    rng = random.Random(seed)

    def orders(columns: int) -> Iterator[Sequence[int]]:
        while True:
            square = williams(rng.sample(range(columns), columns))
            yield from rng.sample(square, len(square))

    return orders


def soak_orders(controls: Sequence[bool]) -> Orders:
    """Return a function that gives SOAKED turns in a row to each column that is no control, and one to each control."""
    turns = [place for place, control in enumerate(controls) for _ in range(1 if control else SOAKED)]

    def orders(columns: int) -> Iterator[Sequence[int]]:
        return itertools.repeat([place for place in turns if place < columns])

    return orders


def williams(columns: Sequence[int]) -> list[list[int]]:
    """Return orders in which every column follows every other equally often, and has every position equally often.

    As many as there are columns, twice as many where those are odd (E. J. Williams, "Experimental designs balanced for
    the estimation of residual effects of treatments", Australian Journal of Scientific Research 2 (1949)).
    """
    size = len(columns)
    if size == 1:
        return [list(columns)]
    zigzag = [(step + 1) // 2 if step % 2 else (size - step // 2) % size for step in range(size)]  # 0, 1, n-1, 2, n-2
    square = [[columns[(place + shift) % size] for place in zigzag] for shift in range(size)]
    return square if size % 2 == 0 else [*square, *(order[::-1] for order in square)]


def larger_in_series(case: Case, cases: Sequence[Case]) -> list[Case]:
    """Return the cases that differ from a case of a sweep in nothing but a larger size."""
    size = case.options.size
    return [
        other
        for other in cases
        if size is not None
        and other.options.size is not None
        and other.options.size.exceeds(size)
        and dataclasses.replace(other.key, size=None) == dataclasses.replace(case.key, size=None)
    ]


# When a stage of a block has enough slices.

TRAIN, EPOCH, ONE, BATCH, ALL, PARTS = STAGES
SLICE_PRECISION = 0.01  # half-width of a block's ratios: processes of a case differ by as much, more would not help
SHARES = {TRAIN: 0.5, EPOCH: 0.2, ONE: 0.1, BATCH: 0.1, ALL: 0.1}  # of a column's time in a block
REPEATED_NS = 20_000_000_000  # how long a stage's slices may have taken for disturbed ones to be measured again
# Units that cannot be made shorter, of which fewer will do: what an epoch costs once is a small part of it.
SOAKED_STAGE: dict[str, str] = {"steady": TRAIN, "calls": BATCH, "builds": BUILD}  # the others have one cycle
LONG, LEAST_CYCLES = (EPOCH, ALL), 3
PARTS_SHARE = 0.4  # of that time again, for the three ways in which a step is taken apart
PREDICTED = {ONE: 0.3, BATCH: 0.4, ALL: 0.3}  # of a model that is not trained


def shares(protocol: Protocol, workload: WorkloadDescription) -> dict[str, float]:
    """Return each stage's share of the time; what a protocol or a workload does not have is left to the steps."""
    if protocol.kind in ("sweep", "builds"):
        return {TRAIN if protocol.kind == "sweep" else BUILD: 1.0}
    if protocol.kind == "calls":
        stages = [stage for stage in (ONE, BATCH, ALL, *CALLS) if workload.predicts_batches or "batch" not in stage]
        if workload.new_tokens:
            stages += GENERATIONS[-1:] if workload.own_generate else GENERATIONS[:-1]
        return dict.fromkeys(stages, 1 / len(stages))
    if workload.predicts_only:
        return dict(PREDICTED if workload.predicts_batches else {ONE: 0.5, ALL: 0.5})
    missing = {EPOCH: counts_epochs(workload.steps), BATCH: not workload.predicts_batches}
    present = {stage: share for stage, share in SHARES.items() if not missing.get(stage)}
    return present | {TRAIN: present[TRAIN] + 1 - sum(present.values())}


def enough(
    protocol: Protocol,
    of_stage: Mapping[str, float],
    stage: str,
    slices: Sequence[Sequence[Slice]],
    /,
    most: Mapping[str, int] = MappingProxyType({}),
) -> bool:
    """Tell whether a stage can end after a cycle: its ratios are narrow enough, or its time is up.

    ``of_stage`` are the ``shares``; ``slices`` those of each column, as many of one as of another. Cycles that others
    disturbed do not count, as long as that at most doubles how many there are, and as twice as many leave enough.
    ``most`` are the cycles that a stage has at most.
    """

    if protocol.soaks:
        whole_ns = protocol.slices_max_ns if stage == SOAKED_STAGE.get(protocol.kind) else 0
        return max(sum(slice_.ns for slice_ in column) for column in slices) >= whole_ns

    def is_enough(slices: Sequence[Sequence[Slice]]) -> bool:
        return _is_enough(protocol, of_stage, stage, slices, most.get(stage))

    disturbed = disturbed_cycles(slices)
    undisturbed = [[slice_ for slice_ in column if slice_.cycle not in disturbed] for column in slices]
    if is_enough(undisturbed):
        return True
    spent_ns = max(sum(slice_.ns for slice_ in column) for column in slices)
    too_slow = spent_ns >= max(REPEATED_NS, 2 * protocol.slices_max_ns)
    if too_slow or 2 * min(map(len, undisturbed), default=0) < protocol.min_cycles:
        return is_enough(slices)  # twice as many would take minutes, or not leave enough
    return is_enough([column[: len(column) // 2] for column in slices])


def _is_enough(
    protocol: Protocol, of_stage: Mapping[str, float], stage: str, slices: Sequence[Sequence[Slice]], most: int | None
) -> bool:
    cycles = min(map(len, slices), default=0)
    if cycles < min(protocol.min_cycles, LEAST_CYCLES):
        return False
    spent_ns = max(sum(slice_.ns for slice_ in column) for column in slices)
    if cycles < protocol.min_cycles:
        return stage in LONG and spent_ns >= of_stage.get(stage, 0.0) * protocol.slices_max_ns
    if most is not None and cycles >= most:
        return True
    if stage == PARTS:  # a slice is the sum of three ways: how precise their ratios are cannot be seen from it
        return spent_ns >= PARTS_SHARE * protocol.slices_max_ns
    return spent_ns >= of_stage.get(stage, 0.0) * protocol.slices_max_ns or widest(slices) <= SLICE_PRECISION


def widest(slices: Sequence[Sequence[Slice]]) -> float:
    """Return the largest half-width of the median log difference of two columns; of the log times of one alone."""
    logs = [[math.log(slice_.unit_ns) for slice_ in column] for column in slices]
    if len(logs) == 1:
        return _half_width(logs[0])
    return max(
        _half_width([a - b for a, b in zip(one, other, strict=False)]) for one, other in itertools.combinations(logs, 2)
    )


def _half_width(values: Sequence[float]) -> float:
    error = median_error(values)
    return math.inf if error is None else t_quantile(len(values) - 1) * error


# When a row has enough blocks, and a run enough rounds.

PRECISION = 0.02  # half-width of every ratio's interval at which further blocks add nothing that matters
PRECISION_ON_BATTERY = 0.05
# An interval that kept so much of its width in so many blocks no longer shrinks. Six blocks from three leave
# 0.42 of it. One block says nothing: an unusual one widens the interval, which is a reason to go on.
NO_GAIN, NO_GAIN_BLOCKS = 0.95, 3

Between = Callable[[CaseSummary, CaseSummary, str, Sequence[CaseSummary], Priors | None], LogEstimate | None]


class StopReason(Enum):
    """Why a row takes no further block."""

    PRECISE = "precise"
    NO_GAIN = "no gain"
    ROUNDS = "rounds"
    BROKEN = "broken"
    WON = "won"


def precision_of(effect: float) -> float:
    """Return the half-width that a run aims at, by the minimal effect, which is larger on battery."""
    return PRECISION_ON_BATTERY if effect > minimal_effect(on_battery=False) else PRECISION


def stop_reason(
    effort: Effort, widths: Sequence[Sequence[float | None]], precision: float = PRECISION
) -> StopReason | None:
    """Return why a row ends after this block; None: it goes on.

    ``widths`` has, for each of its blocks, the ``half_widths`` after it, in an order that stays.
    """
    done = len(widths)
    if done >= effort.max_rounds:
        return StopReason.ROUNDS
    if done < effort.min_rounds or not widths[-1]:
        return None
    if all(width is not None and width <= precision for width in widths[-1]):
        return StopReason.PRECISE
    earlier = done - NO_GAIN_BLOCKS
    if earlier >= effort.min_rounds and not _gained(widths[earlier - 1], widths[-1], precision):
        return StopReason.NO_GAIN
    return None


def _gained(before: Sequence[float | None], after: Sequence[float | None], precision: float) -> bool:
    """Tell whether the last blocks made an interval narrower that is not narrow enough."""
    if len(before) != len(after):
        return True  # a column has failed in between
    return any(
        new is None or (new > precision and (old is None or new < NO_GAIN * old))
        for old, new in zip(before, after, strict=True)
    )


def summaries(trials: Iterable[TrialRecord]) -> list[CaseSummary]:
    """Sum up a row's trials case by case."""
    of_case: dict[CaseKey, list[TrialRecord]] = {}
    for trial in trials:
        of_case.setdefault(trial.case, []).append(trial)
    return [summarize_case(own) for own in of_case.values()]


def half_widths(
    trials: Sequence[TrialRecord], between: Between, priors: Priors | None = None, metric: str = ""
) -> list[float | None]:
    """Return the half-widths of all ratios of a row's columns that have not failed; of its one column's own interval.

    ``between`` is ``analysis.ratios.ratio_of``, ``priors`` what all rows know of the scatter. The ratios are of what
    stands for the trials, or of another ``metric``. None: too little is known.
    """
    metric = metric or headline_of(trials)
    measured = [summary for summary in summaries(trials) if summary.failure is None]
    if len(measured) == 1:
        interval = measured[0].estimate(metric)
        return [interval.half_width if interval else None]
    ratios = [between(one, other, metric, measured, priors) for one, other in itertools.combinations(measured, 2)]
    return [ratio.half_width if ratio else None for ratio in ratios]


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
    """Put a reason into words; ``several``: of columns that are compared."""
    what = "ratio" if several else "interval"
    match reason:
        case StopReason.PRECISE:
            return f"every {what} is within ±{100 * precision:.0f} %"
        case StopReason.NO_GAIN:
            return f"no {what} that is still too wide has shrunk in the last {NO_GAIN_BLOCKS} rounds"
        case StopReason.ROUNDS:
            return f"all {effort.max_rounds} rounds are done" if effort.max_rounds > 1 else "one round was asked for"
        case StopReason.WON:
            return "no other can be faster than the fastest by more than the margin"
        case StopReason.BROKEN:
            return "base or head has failed, so that nothing is left to compare"


def all_in_words(reasons: Sequence[StopReason], effort: Effort, precision: float, several: bool = True) -> str:
    """Say why a run ended whose every row has: in one sentence for all, or for so many rows each."""
    rows = Counter(reasons)
    parts = [(rows[one], in_words(one, effort, precision, several)) for one in StopReason if rows[one]]
    if len(parts) == 1:
        return parts[0][1]
    return "; ".join(f"{count(number, 'row')}: {why}" for number, why in parts)
