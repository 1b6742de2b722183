"""When a run has enough (pure)."""

from kerasbench.analysis.summary import headline, summarize_cell
from kerasbench.analysis.verdicts import minimal_effect
from kerasbench.plan.cells import Cell
from kerasbench.results.asked import Effort
from kerasbench.results.record import Record

PRECISION = 0.02  # half-width of every cell's interval at which further rounds add nothing that matters
PRECISION_ON_BATTERY = 0.05
NO_GAIN = 0.95  # an interval that kept so much of its width in a round no longer shrinks; four rounds from three: 0.64


def precision_of(effect: float) -> float:
    """Return the half-width that a run aims at, by the minimal effect, which is larger on battery."""
    return PRECISION_ON_BATTERY if effect > minimal_effect(on_battery=False) else PRECISION


def stop_reason(
    effort: Effort, widths: list[list[float | None]], spent_s: float = 0.0, precision: float = PRECISION
) -> str:
    """Say why a run ends after this round; an empty string means that it goes on.

    ``widths`` has, for each complete round, the intervals' half-widths of all cells that are still measured, as
    shares of their values, in an order that stays; ``spent_s`` is how long the rounds took in all.
    """
    done = len(widths)
    if done >= effort.max_rounds:
        return f"all {effort.max_rounds} rounds are done" if effort.max_rounds > 1 else "one round was asked for"
    if effort.budget_s is not None and spent_s + spent_s / done > effort.budget_s:
        return _out_of_budget(effort.budget_s, spent_s, done)
    if done < effort.min_rounds or not widths[-1]:
        return ""
    if all(width is not None and width <= precision for width in widths[-1]):
        return f"every interval is within ±{precision:.0%}"
    if done > effort.min_rounds and not _gained(widths[-2], widths[-1], precision):
        return "no interval that is still too wide has shrunk in the last round"
    return ""


def _out_of_budget(budget_s: float, spent_s: float, done: int) -> str:
    if spent_s > budget_s:
        taken = "the first round, which is always completed, has" if done == 1 else f"{done} rounds have"
        return f"--budget {budget_s:g} s is used up: {taken} taken {spent_s:.0f} s"
    return f"another round would not have fitted into --budget {budget_s:g} s"


def _gained(before: list[float | None], after: list[float | None], precision: float) -> bool:
    """Tell whether the last round made an interval narrower that is not narrow enough."""
    if len(before) != len(after):
        return True  # a cell has failed in between
    return any(
        new is None or (new > precision and (old is None or new < NO_GAIN * old))
        for old, new in zip(before, after, strict=True)
    )


def _half_widths(record: Record, cells: list[Cell], index: int) -> list[float | None]:
    """Return the half-width of each cell's training step after a round, which later ones may have followed already."""
    widths: list[float | None] = []
    for cell in cells:
        summed = summarize_cell(one for one in record.trials if one.cell == cell.key and one.round <= index)
        found = summed.estimate(headline(cell.options.size))
        widths.append(found.half_width if found else None)
    return widths
