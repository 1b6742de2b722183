"""When a row has enough: who is fastest is decided, and each ratio that its page prints is known."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from kerasbench import variants
from kerasbench.analysis.estimates import CONFIDENCE, LogEstimate, claim
from kerasbench.analysis.families import Family
from kerasbench.analysis.rankings import leading
from kerasbench.analysis.ratios import RowRatios
from kerasbench.protocol.columns import Column
from kerasbench.results.run import BUDGET, Effort
from kerasbench.text import count

BEYOND, FAR = 2.0, 2.0  # what takes so many times as long may have an interval so many times as wide
HOPE_ROUNDS = 5  # fewer tell too little of what the last one would bring


class StopReason(Enum):
    KNOWN = "who is faster is decided, and every interval is within ±{near:.3g} % (beyond {beyond:g}×: ±{far:.3g} %)"
    TIMED = "every time is known to ±{near:.3g} %"
    HOPELESS = "not even {most} rounds would make it known to ±{near:.3g} %, judging by the first ones"
    ROUNDS = "all {most} rounds are done"
    BROKEN = "base or head failed, so nothing is left to compare"
    WON = "no other setting can beat the leader by more than the margin"


class RatioPrecision(NamedTuple):
    """What is known of a ratio, or of the time of a row's only column."""

    half_width: float | None  # of the interval that a page prints; None: too little is known, or others disturbed it
    is_enough: bool
    is_hopeless: bool = False  # it would not be enough after the last round either


RowPrecision = Mapping[tuple[object, ...], RatioPrecision]  # by the two columns of a ratio, or the only one


def precision_of(of_row: RowRatios[Column], metric: str, paired: bool, effort: Effort, effect: float) -> RowPrecision:
    """Return how well the ratios of a page are known: of other columns over the fastest, and over those beside them.

    ``paired``: what is there twice over itself. ``effect``: the smallest difference that counts.
    """
    columns = of_row.measured
    if len(columns) == 1:
        ((column, measured),) = columns.items()
        interval = measured.estimate(metric)
        half_width = interval.half_width if interval else None
        return {(column,): RatioPrecision(half_width, half_width is not None and half_width <= effort.aim)}
    ratios: dict[tuple[Column, ...], LogEstimate | None] = {}
    for a, b in itertools.combinations(columns, 2):
        ratio = of_row.estimate(a, b, metric)
        ratios[a, b], ratios[b, a] = ratio, ratio and ratio.inverse
    competing = [column for column, case in columns.items() if variants.competes(column) and case.is_ranked]
    pairs = [pair for pair in itertools.combinations(competing, 2) if Family.of(*pair) is Family.REPEATED]
    if competing and not paired:
        fastest = leading(competing, ratios)
        pairs = [(column, fastest) for column in competing if column != fastest]
    beside = [(column, variants.without(column)) for column in columns]
    return {
        **{pair: ratio_precision(ratios[pair], effort, effect) for pair in pairs},
        **{pair: ratio_precision(ratios[pair], effort, None) for pair in beside if pair in ratios},
    }


def ratio_precision(ratio: LogEstimate | None, effort: Effort, effect: float | None) -> RatioPrecision:
    """``effect``: None where it need not be decided."""
    if ratio is None or ratio.disturbed or ratio.half_width is None:
        return RatioPrecision(None, False)
    will_be = any(_is_enough(last, effort.aim, effect) for last in _after(ratio, effort.max_rounds))
    return RatioPrecision(ratio.half_width, _is_enough(ratio, effort.aim, effect), not will_be)


def _is_enough(ratio: LogEstimate, aim: float, effect: float | None) -> bool:
    _, p = claim(ratio, effect or 0.0)
    is_decided = effect is None or (p is not None and p <= 1 - CONFIDENCE)
    allowed = FAR * aim if ratio.is_above(BEYOND) else aim
    return is_decided and ratio.half_width is not None and ratio.half_width <= allowed


def _after(ratio: LogEstimate, rounds: int) -> Iterator[LogEstimate]:
    """Yield what so many rounds make of it, if those to come scatter as those so far; also if it is a bit farther."""
    assert ratio.log_error is not None
    more = max(0, rounds - ratio.trials)
    error = ratio.log_error * math.sqrt(ratio.trials / (ratio.trials + more))
    for centre in (ratio.log_centre, ratio.log_centre + math.copysign(ratio.log_error, ratio.log_centre)):
        yield replace(ratio, log_centre=centre, log_error=error, degrees=ratio.degrees + more)


def stop_reason(effort: Effort, done: int, precision: RowPrecision) -> StopReason | None:
    """Say why a row ends after so many rounds; None: it goes on."""
    if done >= effort.max_rounds:
        return StopReason.ROUNDS
    if done < effort.min_rounds or not precision:
        return None
    still_open = [of_ratio for of_ratio in precision.values() if not of_ratio.is_enough]
    if not still_open:
        return StopReason.TIMED if all(len(pair) == 1 for pair in precision) else StopReason.KNOWN
    is_hopeless = done >= HOPE_ROUNDS and all(of_ratio.is_hopeless for of_ratio in still_open)
    return StopReason.HOPELESS if is_hopeless else None


def out_of_budget(budget_s: float | None, spent_s: float, another_s: float, done: int) -> str:
    """Say why no further round begins after so many; empty where it would end within the budget."""
    if budget_s is None or not done or spent_s + another_s <= budget_s:
        return ""
    if spent_s > budget_s:
        taken = "the first round, which is always completed, has" if done == 1 else f"{done} rounds have"
        return f"{BUDGET} {budget_s:g} s is used up: {taken} taken {spent_s:.0f} s"
    left_s = budget_s - spent_s
    return f"another round of about {another_s:.0f} s does not fit into the {left_s:.0f} s that {BUDGET} leaves"


def in_words(reason: StopReason, effort: Effort) -> str:
    if reason is StopReason.ROUNDS and effort.max_rounds <= 1:
        return "one round was asked for"
    near = 100 * effort.aim
    return reason.value.format(near=near, far=FAR * near, beyond=BEYOND, most=effort.max_rounds)


def all_in_words(reasons: Sequence[StopReason], effort: Effort) -> str:
    rows = Counter(reasons)
    parts = [(rows[reason], in_words(reason, effort)) for reason in StopReason if rows[reason]]
    if len(parts) == 1:
        return parts[0][1]
    return "; ".join(f"{count(number, 'workload')}: {why}" for number, why in parts)
