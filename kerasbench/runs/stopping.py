"""When a row has bouts enough, and a run rounds enough (pure)."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum

from kerasbench.analysis.cells import CellSummary, headline_of, summarize_cell
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.verdicts import minimal_effect
from kerasbench.results.asked import Effort
from kerasbench.results.keys import CellKey
from kerasbench.results.record import BUDGET, TrialRecord
from kerasbench.text import count

PRECISION = 0.02  # half-width of every ratio's interval at which further bouts add nothing that matters
PRECISION_ON_BATTERY = 0.05
# An interval that kept so much of its width in so many bouts no longer shrinks. Six bouts from three leave
# 0.42 of it. One bout says nothing: an unusual one widens the interval, which is a reason to go on.
NO_GAIN, NO_GAIN_BOUTS = 0.95, 3

Between = Callable[[CellSummary, CellSummary, str, Sequence[CellSummary]], LogEstimate | None]


class Ending(Enum):
    """Why a row takes no further bout."""

    PRECISE = "precise"
    NO_GAIN = "no gain"
    ROUNDS = "rounds"
    BROKEN = "broken"


def precision_of(effect: float) -> float:
    """Return the half-width that a run aims at, by the minimal effect, which is larger on battery."""
    return PRECISION_ON_BATTERY if effect > minimal_effect(on_battery=False) else PRECISION


def ending(effort: Effort, widths: Sequence[Sequence[float | None]], precision: float = PRECISION) -> Ending | None:
    """Say why a row ends after this bout; None means that it goes on.

    ``widths`` has, for each of its bouts, the ``half_widths`` after it, in an order that stays.
    """
    done = len(widths)
    if done >= effort.max_rounds:
        return Ending.ROUNDS
    if done < effort.min_rounds or not widths[-1]:
        return None
    if all(one is not None and one <= precision for one in widths[-1]):
        return Ending.PRECISE
    earlier = done - NO_GAIN_BOUTS
    if earlier >= effort.min_rounds and not _gained(widths[earlier - 1], widths[-1], precision):
        return Ending.NO_GAIN
    return None


def half_widths(trials: Sequence[TrialRecord], between: Between) -> list[float | None]:
    """Return the half-widths of all ratios of a row's columns that have not failed; of its one column's own interval.

    ``between`` is ``analysis.ratios.between``. None: too little is known.
    """
    cells: dict[CellKey, list[TrialRecord]] = {}
    for trial in trials:
        cells.setdefault(trial.cell, []).append(trial)
    metric = headline_of(trials)
    measured = [found for own in cells.values() if (found := summarize_cell(own)).failure is None]
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
            return f"no {what} that is still too wide has shrunk in the last {NO_GAIN_BOUTS} rounds"
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
    """Tell whether the last bouts made an interval narrower that is not narrow enough."""
    if len(before) != len(after):
        return True  # a column has failed in between
    return any(
        new is None or (new > precision and (old is None or new < NO_GAIN * old))
        for old, new in zip(before, after, strict=True)
    )
