"""In which order the columns of a block take turns (pure): every column once a cycle, neighbours balanced.

In which order cases are measured, and which of them make a series (pure).

When a stage of a block has slices enough (pure).

When a row has blocks enough, and a run rounds enough (pure).

Two more sizes inside each bracket of a sweep's crossings, measured in the same record once its rounds are over.
"""

import dataclasses
import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum

from kerasbench.analysis.cases import CaseSummary, headline_of, summarize_case
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, LogEstimate, median_error, minimal_effect, t_quantile
from kerasbench.analysis.series import SizeSeries, swept
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.plan.cases import Case, Plan, Shared, with_controls
from kerasbench.plan.request import sizes_between
from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.protocol.measurement import STAGES, Slice, disturbed_cycles
from kerasbench.protocol.messages import WorkloadDescription
from kerasbench.protocol.requests import Protocol, counts_epochs
from kerasbench.results.record import BUDGET, Effort, Record, TrialRecord
from kerasbench.text import count

Orders = Callable[[int], Iterator[Sequence[int]]]


def draw_orders(seed: str) -> Orders:
    """Return what draws a stage's orders for so many columns, endlessly: another sequence each time it is asked."""
    rng = random.Random(seed)

    def orders(columns: int) -> Iterator[Sequence[int]]:
        while True:
            yield from rng.sample(found := williams(rng.sample(range(columns), columns)), len(found))

    return orders


def williams(columns: Sequence[int]) -> list[list[int]]:
    """Return orders in which every column follows every other equally often, and has every position equally often.

    As many as there are columns, twice as many where those are odd (E. J. Williams, "Experimental designs balanced for
    the estimation of residual effects of treatments", Australian Journal of Scientific Research 2 (1949)).
    """
    count = len(columns)
    if count == 1:
        return [list(columns)]
    zigzag = [(step + 1) // 2 if step % 2 else (count - step // 2) % count for step in range(count)]
    square = [[columns[(place + shift) % count] for place in zigzag] for shift in range(count)]
    return square if count % 2 == 0 else [*square, *(order[::-1] for order in square)]


def order_cases(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
    """Return the cases in this round's random order: scenarios permuted, then the cases inside each.

    Cases of one scenario, and in a sweep those of one size, stay together, because they are what is compared: drift
    between them must be small.
    """
    rng = random.Random(f"{seed}/{round_index}")
    groups: dict[Shared, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.row, []).append(case)
    together = list(groups.values())
    rng.shuffle(together)
    return [case for group in together for case in rng.sample(group, len(group))]


def larger_in_series(case: Case, cases: Sequence[Case]) -> list[Case]:
    """Return the cases that differ from a case of a sweep in nothing but a larger size."""
    return [
        one
        for one in cases
        if one.options.size is not None
        and case.options.size is not None
        and one.options.size.exceeds(case.options.size)
        and dataclasses.replace(one.key, size=None) == dataclasses.replace(case.key, size=None)
    ]


TRAIN, EPOCH, ONE, BATCH, ALL, PARTS = STAGES
SLICE_PRECISION = (
    0.01  # half-width of a block's own ratios: processes of one case differ by as much, so more would not help
)
SHARES = {TRAIN: 0.5, EPOCH: 0.2, ONE: 0.1, BATCH: 0.1, ALL: 0.1}  # of a column's time in a block
PARTS_SHARE = 0.2  # of that time again, for the three ways in which a step is taken apart
PREDICTED = {ONE: 0.3, BATCH: 0.4, ALL: 0.3}  # of a model that is not trained


def shares(protocol: Protocol, workload: WorkloadDescription) -> dict[str, float]:
    """Return each stage's share of the time; what a protocol or a workload does not have is left to the steps."""
    if protocol.kind == "sweep":
        return {TRAIN: 1.0}
    if workload.predicts_only:
        return dict(PREDICTED if workload.predicts_batches else {ONE: 0.5, ALL: 0.5})
    missing = {EPOCH: counts_epochs(workload.steps), BATCH: not workload.predicts_batches}
    found = {stage: share for stage, share in SHARES.items() if not missing.get(stage)}
    return found | {TRAIN: found[TRAIN] + 1 - sum(found.values())}


def enough(protocol: Protocol, of_stage: Mapping[str, float], stage: str, slices: Sequence[Sequence[Slice]], /) -> bool:
    """Tell whether a stage can end after a cycle: its ratios are narrow enough, or its time is up.

    ``of_stage`` are the ``shares``; ``slices`` those of each column, as many of one as of another. Cycles that others
    disturbed do not count, as long as that at most doubles how many there are, and as twice as many leave enough.
    """
    disturbed = disturbed_cycles(slices)
    undisturbed = [[slice_ for slice_ in column if slice_.cycle not in disturbed] for column in slices]
    if _is_enough(protocol, of_stage, stage, undisturbed):
        return True
    half = [column[: len(column) // 2] for column in slices]
    hopeless = 2 * min(map(len, undisturbed), default=0) < protocol.min_cycles
    return _is_enough(protocol, of_stage, stage, slices if hopeless else half)


def _is_enough(
    protocol: Protocol, of_stage: Mapping[str, float], stage: str, slices: Sequence[Sequence[Slice]]
) -> bool:
    cycles = min(map(len, slices), default=0)
    if cycles < protocol.min_cycles:
        return False
    spent_ns = max(sum(slice_.ns for slice_ in column) for column in slices)
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


PRECISION = 0.02  # half-width of every ratio's interval at which further blocks add nothing that matters
PRECISION_ON_BATTERY = 0.05
# An interval that kept so much of its width in so many blocks no longer shrinks. Six blocks from three leave
# 0.42 of it. One block says nothing: an unusual one widens the interval, which is a reason to go on.
NO_GAIN, NO_GAIN_BLOCKS = 0.95, 3

Between = Callable[[CaseSummary, CaseSummary, str, Sequence[CaseSummary]], LogEstimate | None]


class Ending(Enum):
    """Why a row takes no further block."""

    PRECISE = "precise"
    NO_GAIN = "no gain"
    ROUNDS = "rounds"
    BROKEN = "broken"


def precision_of(effect: float) -> float:
    """Return the half-width that a run aims at, by the minimal effect, which is larger on battery."""
    return PRECISION_ON_BATTERY if effect > minimal_effect(on_battery=False) else PRECISION


def ending(effort: Effort, widths: Sequence[Sequence[float | None]], precision: float = PRECISION) -> Ending | None:
    """Say why a row ends after this block; None means that it goes on.

    ``widths`` has, for each of its blocks, the ``half_widths`` after it, in an order that stays.
    """
    done = len(widths)
    if done >= effort.max_rounds:
        return Ending.ROUNDS
    if done < effort.min_rounds or not widths[-1]:
        return None
    if all(one is not None and one <= precision for one in widths[-1]):
        return Ending.PRECISE
    earlier = done - NO_GAIN_BLOCKS
    if earlier >= effort.min_rounds and not _gained(widths[earlier - 1], widths[-1], precision):
        return Ending.NO_GAIN
    return None


def half_widths(trials: Sequence[TrialRecord], between: Between) -> list[float | None]:
    """Return the half-widths of all ratios of a row's columns that have not failed; of its one column's own interval.

    ``between`` is ``analysis.ratios.between``. None: too little is known.
    """
    cases: dict[CaseKey, list[TrialRecord]] = {}
    for trial in trials:
        cases.setdefault(trial.case, []).append(trial)
    metric = headline_of(trials)
    measured = [found for own in cases.values() if (found := summarize_case(own)).failure is None]
    if len(measured) == 1:
        own_interval = measured[0].estimate(metric)
        return [own_interval.half_width if own_interval else None]
    ratios = [between(one, other, metric, measured) for one, other in itertools.combinations(measured, 2)]
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


def said(one: Ending, effort: Effort, precision: float, several: bool = True) -> str:
    """Put an ending into words; ``several``: of columns that are compared."""
    what = "ratio" if several else "interval"
    match one:
        case Ending.PRECISE:
            return f"every {what} is within ±{100 * precision:.0f} %"
        case Ending.NO_GAIN:
            return f"no {what} that is still too wide has shrunk in the last {NO_GAIN_BLOCKS} rounds"
        case Ending.ROUNDS:
            return f"all {effort.max_rounds} rounds are done" if effort.max_rounds > 1 else "one round was asked for"
        case Ending.BROKEN:
            return "base or head has failed, so that nothing is left to compare"


def summed_up(endings: Sequence[Ending], effort: Effort, precision: float, several: bool = True) -> str:
    """Say why a run ended whose every row has: in one sentence for all, or for so many rows each."""
    found = Counter(endings)
    parts = [(found[one], said(one, effort, precision, several)) for one in Ending if found[one]]
    return parts[0][1] if len(parts) == 1 else "; ".join(f"{count(rows, 'row')}: {why}" for rows, why in parts)


def _gained(before: Sequence[float | None], after: Sequence[float | None], precision: float) -> bool:
    """Tell whether the last blocks made an interval narrower that is not narrow enough."""
    if len(before) != len(after):
        return True  # a column has failed in between
    return any(
        new is None or (new > precision and (old is None or new < NO_GAIN * old))
        for old, new in zip(before, after, strict=True)
    )


def finer(planned: Plan, record: Record, spent_s: float) -> Plan | None:
    """Return the plan with the further sizes, measured where it matters: on the two columns of each crossing.

    None where that was not asked for, the run was interrupted or quick, nothing crosses significantly, or --budget has
    no time left for it.
    """
    if not planned.config.refine or record.unfinished or record.rounds_completed < MIN_TRIALS_FOR_INTERVAL:
        return None
    wanted = more_sizes(summarize(record))
    bases = {case.column: case for case in planned.cases if not case.options.control}
    cases = [
        dataclasses.replace(base, options=base.options.at(size))
        for size, columns in wanted.items()
        for column, base in bases.items()
        if column in columns
    ]
    cases = with_controls(cases) if planned.config.control else cases
    if not cases or not _affordable(cases, record, planned.effort.budget_s, spent_s):
        return None
    asked = dataclasses.replace(
        planned.config,
        options=list(dict.fromkeys([*planned.config.options, *(_bare(case.options) for case in cases)])),
        effort=_up_to(record.rounds_completed, planned.effort),
        refine=False,
    )
    named = ", ".join(size.label for size in wanted)
    return Plan(
        asked, planned.machine, [*planned.cases, *cases], planned.absent, [f"more sizes where series cross: {named}"]
    )


def _bare(options: Options) -> Options:
    """Return what is asked for, whichever interpreter runs it; a control is asked for once, for all rows."""
    return dataclasses.replace(options, environment="", control=False)


def _up_to(rounds: int, effort: Effort) -> Effort:
    """Return the effort of at most so many rounds: what was measured then has enough, for the reasons that it had."""
    return dataclasses.replace(effort, min_rounds=min(effort.min_rounds, rounds), max_rounds=rounds, budget_s=None)


def more_sizes(summary: Summary) -> dict[Size, set[Column]]:
    """Return the sizes inside the brackets of all crossings that have an interval, each with the columns that cross."""
    found: dict[Size, set[Column]] = {}
    for one in swept(summary):
        for crossing in (crossing for duel in one.duels for crossing in duel.crossings if crossing.has_interval):
            for size in sizes_between(*crossing.bracket, whole=one.axis == "batch"):
                found.setdefault(_at(one, size), set()).update((crossing.winner, crossing.loser))
    return dict(sorted(found.items(), key=lambda item: item[0].order))


def _at(found: SizeSeries, size: float) -> Size:
    base = next(iter(found.rows.values())).size or Size()
    if found.axis == "batch":
        return dataclasses.replace(base, batch=int(size))
    return dataclasses.replace(base, width=size)


def _affordable(cases: list[Case], record: Record, budget_s: float | None, spent_s: float) -> bool:
    each_s = statistics.fmean(trial.own_ns / 1e9 for trial in record.trials if trial.measurement is not None)
    return budget_s is None or spent_s + len(cases) * record.rounds_completed * each_s <= budget_s


def as_begun(planned: Plan, record: Record) -> Plan:
    """Return the plan of a sweep that goes on: at each size that was begun, of those columns that were tried there.

    The further sizes are measured on the columns that cross, and nothing else tells them from the others.
    """
    if planned.effort.protocol.kind != "sweep" or planned.config.refine:
        return planned
    tried = {trial.case for trial in record.trials if trial.round > 0}
    begun = {case.row for case in planned.cases if case.key in tried}
    cases = [case for case in planned.cases if case.key in tried or case.row not in begun]
    return dataclasses.replace(planned, cases=cases)


def earlier(record: Record) -> Record:
    """Return what the run with the further sizes goes on with; what could not be tried it finds itself."""
    return dataclasses.replace(record, trials=[trial for trial in record.trials if trial.round > 0])


def joined(first: Record, going_on: Record) -> Record:
    """Return the record of both parts, which is one run to its reader; an interruption takes no round of the first."""
    stopped = going_on.stopped_because if going_on.unfinished else first.stopped_because
    effort = going_on.config.effort if going_on.unfinished else first.config.effort
    asked = dataclasses.replace(going_on.config, effort=effort)
    return dataclasses.replace(going_on, config=asked, rounds_completed=first.rounds_completed, stopped_because=stopped)
