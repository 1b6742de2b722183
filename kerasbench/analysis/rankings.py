"""Who is fastest in a row, what the rows' variants cost or save, and when a longer start pays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

from kerasbench import variants
from kerasbench.analysis.cases import FIRST_STEP, HEADLINE
from kerasbench.analysis.contrasts import (
    CaseInRow,
    Contrast,
    believed,
    between,
    control,
    control_ratio_of,
    is_off,
    judge,
    varied,
)
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, LogEstimate, Verdict
from kerasbench.analysis.metrics import A_CALL
from kerasbench.analysis.ratios import divide_means
from kerasbench.analysis.rows import Row
from kerasbench.protocol.columns import CPU, Column
from kerasbench.variants.variant import Variant


@dataclass(frozen=True)
class Ranking:
    """Who is fastest in a row, or comes first of several; where each is slower than another, there is no ``winner``."""

    fastest: Column | None  # None where there is nothing to be compared with
    others: list[Contrast]  # each other column over the fastest
    tentative: bool = False  # no row of the table has an interval
    control: Contrast | None = None  # what is the same, measured twice; where it is off, nothing is called different

    @property
    def proven(self) -> bool:
        return bool(self.others) and all(contrast.ratio.has_interval for contrast in self.others)

    @property
    def winner(self) -> Column | None:
        """The fastest where the intervals of all others lie above the smallest effect: it is clearly fastest."""
        is_clear = self.proven and self.believed
        return self.fastest if is_clear and all(other.verdict is Verdict.SLOWER for other in self.others) else None

    @property
    def disturbed(self) -> bool:
        return any(contrast.ratio.disturbed for contrast in self.others)

    @property
    def withheld(self) -> bool:
        return self.control is not None and is_off(self.control.ratio)

    @property
    def believed(self) -> bool:
        """Whether its ratios may be said apart from their table, where a mark stands beside them."""
        return not self.disturbed and not self.withheld

    def over_fastest(self, column: Column) -> Contrast | None:
        """Return None for the fastest itself, and where there is no ratio."""
        return next((contrast for contrast in self.others if contrast.over.column == column), None)


def rank(rows: Sequence[Row], effect: float) -> list[Ranking]:
    pairs = [_over_fastest(row) for row in rows]
    contrasts = judge({contrast.over.key: contrast for _, others in pairs for contrast in others}, effect)
    believable = [contrast for contrast in contrasts.values() if not contrast.withheld]
    few = all(row.rounds < MIN_TRIALS_FOR_INTERVAL for row in rows)
    tentative = few and not any(contrast.ratio.has_interval for contrast in believable)
    return [
        Ranking(fastest, [contrasts[contrast.over.key] for contrast in others], tentative, control(row))
        for row, (fastest, others) in zip(rows, pairs, strict=True)
    ]


def _over_fastest(row: Row) -> tuple[Column | None, list[Contrast]]:
    """By ratios, which know of slow hours; each other column over the fastest."""
    competing = {column: case for column, case in row.cases.items() if variants.competes(column) and case.is_ranked}
    estimates = {column: case.estimate(row.headline) for column, case in competing.items()}
    values = {column: estimate.value for column, estimate in estimates.items() if estimate is not None}
    if len(values) < 2:
        return None, []
    in_order = sorted(values, key=values.__getitem__)
    ratios: dict[tuple[Column, ...], LogEstimate | None] = {}
    for a, b in combinations(in_order, 2):
        if ratio := row.ratios.estimate(a, b, row.headline):
            ratios[a, b], ratios[b, a] = ratio, ratio.inverse
    fastest = leading(in_order, ratios)
    under, again = CaseInRow(row, fastest), control_ratio_of(row)
    over = {column: ratios.get((column, fastest)) for column in values}
    return fastest, [
        Contrast(CaseInRow(row, column), under, row.headline, ratio, again) for column, ratio in over.items() if ratio
    ]


def leading(columns: Sequence[Column], ratios: Mapping[tuple[Column, ...], LogEstimate | None]) -> Column:
    """Return the first that fewest others are faster than."""

    def led(column: Column) -> int:
        others = (ratios.get((column, other)) for other in columns)
        return sum(ratio is not None and ratio.log_centre <= 0 for ratio in others)

    return max(columns, key=led)


def longer_by_means(contrast: Contrast) -> float | None:
    """Return the ratio of two training steps by means, where that lies outside the interval of the medians."""
    ratio = contrast.ratio
    if contrast.metric != HEADLINE or ratio.low is None or ratio.high is None:
        return None
    means = divide_means(contrast.over.case, contrast.under.case)
    return None if means is None or ratio.low <= means <= ratio.high else means


def beside(variant: Variant[Any], rows: Sequence[Row], effect: float) -> list[Contrast]:
    """Return each case with a variant over the same without it, or the other way round, as its table has it."""
    stands = variant.beside
    if stands is None:
        return []
    contrasts = {
        (row.key(column), metric): between(
            row, *((without, column) if stands.inverse else (column, without)), metric, control_ratio_of(row)
        )
        for row in rows
        for column, without in varied(variant.name, row)
        for metric in ((stands.calls or A_CALL) if row.origin.agenda.only_predicts else stands.metrics)
    }
    return list(judge(contrasts, effect).values())


def speed_ups(rows: Sequence[Row], effect: float) -> list[Contrast]:
    contrasts = {
        row.key(gpu): between(row, gpu, cpu, row.headline, control_ratio_of(row))
        for row in rows
        for cpu, gpu in permutations(_measured(row, row.headline), 2)
        if cpu.device == CPU and gpu.device != CPU and cpu == replace(gpu, device=CPU)
    }
    return list(judge(contrasts, effect).values())


@dataclass(frozen=True)
class BreakEven:
    """``slow_start`` takes ``extra_ms`` longer for its first step than ``rival`` and is ahead of it after ``steps``."""

    slow_start: Column
    rival: Column
    extra_ms: float
    steps: float


def break_even(row: Row, column: Column, rival: Column, extra_ms: float) -> BreakEven | None:
    """Return when a longer first step is made up for; None unless the rival's others take longer, by their interval."""
    later, rival_ms = row.ratios.estimate(rival, column, HEADLINE), row.cases[rival].estimate(HEADLINE)
    if extra_ms <= 0 or later is None or rival_ms is None or not later.is_above(1):
        return None
    return BreakEven(column, rival, extra_ms, extra_ms / (rival_ms.value * (1 - 1 / later.value)))


def break_evens(row: Row, column: Column, effect: float) -> list[BreakEven]:
    """Return where a longer first step buys quicker later ones, of a column or of the others against it."""
    repaid = []
    rivals = [rival for rival in _measured(row, HEADLINE) if rival != column] if believed(row) else []
    for a, b in [pair for rival in rivals for pair in ((column, rival), (rival, column))]:
        first, first_ms = row.ratios.estimate(a, b, FIRST_STEP), row.cases[b].estimate(FIRST_STEP)
        if first and first_ms and first.is_above(1 + effect):
            repaid.append(break_even(row, a, b, first_ms.value * (first.value - 1)))
    return list(filter(None, repaid))


def _measured(row: Row, metric: str) -> list[Column]:
    """Return the columns that have a metric; a control is none of its own."""
    return [column for column, case in row.cases.items() if case.estimate(metric) and not column.options.control]
