"""What a row's columns are to each other: who is fastest, what something costs, and when it pays."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from kerasbench.analysis.cases import FIRST_STEP, HEADLINE, STEADY, Row
from kerasbench.analysis.estimates import (
    MIN_TRIALS_FOR_INTERVAL,
    LogEstimate,
    Verdict,
    judge_all,
)
from kerasbench.analysis.metrics import CALLED, PER_TOKEN
from kerasbench.analysis.ratios import by_means, in_row, in_sittings
from kerasbench.protocol.columns import CPU, DEFAULT, Column

CONTROL_BOUND = 0.03  # what is the same and differs by more, significantly, leaves nothing to be believed


@dataclass(frozen=True)
class Comparison:
    """The fastest case of a row against one of the others."""

    rival: Column
    ratio: LogEstimate  # of their times: the fastest over the rival
    verdict: Verdict
    by_means: float | None = None  # the ratio by the means of the same slices, where it lies outside the interval


@dataclass(frozen=True)
class Control:
    """A column that was measured twice in each block: the ratio of the second to the first, which should be 1."""

    column: Column
    ratio: LogEstimate

    @property
    def is_off(self) -> bool:
        """Whether what is the same was measured as different, so that nothing else can be believed."""
        low, high = self.ratio.low, self.ratio.high
        return low is not None and high is not None and (low > 1 + CONTROL_BOUND or high < 1 / (1 + CONTROL_BOUND))


@dataclass(frozen=True)
class Ranking:
    """Who is fastest in a row: one winner, or the first of several that cannot be told apart.

    Where each column is slower than another, a rival may be significantly faster, and none is ``first``.
    """

    fastest: Column | None  # None where there is nothing to be compared with
    comparisons: list[Comparison]
    proven: bool  # every comparison has an interval
    tentative: bool = False  # no row of the table has one
    control: Control | None = None  # where it is off, nothing is called different

    @property
    def first(self) -> Column | None:
        """The fastest where all others are slower: significantly, or of a tentative table."""
        if self.disturbed:
            return None
        if self.proven:
            return self.fastest if all(one.verdict is Verdict.FASTER for one in self.comparisons) else None
        return self.fastest if self.tentative else None

    @property
    def disturbed(self) -> bool:
        """Whether other processes used so much of the machine that the row has no verdict."""
        return any(one.ratio.disturbed for one in self.comparisons)

    @property
    def by_slices(self) -> bool:
        """Whether the intervals rest on slices, because there were too few blocks."""
        return self.proven and any(one.ratio.basis == "slices" for one in self.comparisons)

    @property
    def withheld(self) -> bool:
        """Whether the control takes the row's verdicts away."""
        return self.control is not None and self.control.is_off

    def over_fastest(self, column: Column) -> LogEstimate | None:
        """Return by what factor a column's times are those of the fastest; None for itself, and without a ratio."""
        return next((one.ratio.inverse for one in self.comparisons if one.rival == column), None)


def rank(rows: Sequence[Row], effect: float) -> list[Ranking]:
    """Compare the fastest case of each row with each of its others."""
    controls = [control(row) for row in rows]
    pairs = [_over_others(row) for row in rows]
    judged = [
        None if repeated is not None and repeated.is_off else ratio
        for repeated, (_, ratios) in zip(controls, pairs, strict=True)
        for ratio in ratios.values()
    ]
    runs = [row.run for row, (_, ratios) in zip(rows, pairs, strict=True) for _ in ratios]
    judgements = iter(judge_all(judged, effect, runs))
    few = all(row.rounds < MIN_TRIALS_FOR_INTERVAL for row in rows)
    tentative = few and not any(ratio is not None and ratio.has_interval for ratio in judged)
    rankings = []
    for row, repeated, (fastest, ratios) in zip(rows, controls, pairs, strict=True):
        comparisons = []
        for rival, own in ratios.items():
            judged_ratio, verdict = next(judgements)
            ratio = judged_ratio or own
            means = _by_means(row, fastest, rival, ratio)
            comparisons.append(Comparison(rival, ratio, verdict, means))
        proven = bool(comparisons) and all(one.ratio.has_interval for one in comparisons)
        rankings.append(Ranking(fastest, comparisons, proven, tentative, repeated))
    return rankings


def _by_means(row: Row, fastest: Column | None, rival: Column, ratio: LogEstimate) -> float | None:
    """Return the ratio of the fastest to a rival by means, where that lies outside the printed interval."""
    if fastest is None or row.headline != HEADLINE or ratio.low is None or ratio.high is None:
        return None
    means = by_means(row.cases[fastest], row.cases[rival])
    return None if means is None or ratio.low <= means <= ratio.high else means


def believed(row: Row) -> bool:
    """Tell whether a row's verdicts count: where its control is off they do not."""
    repeated = control(row)
    return repeated is None or not repeated.is_off


def control(row: Row) -> Control | None:
    """Return the ratio of a row's control to the column that it repeats; None where none was measured.

    Where versions are compared, each backend has one, and none speaks for the others (analysis/versus.py). That of a
    soak is there to differ where a column becomes slower (analysis/soak.py).
    """
    for _, column, original in _with_and_without("control", [] if row.origin.in_pairs else [row]):
        ratio = in_row(row, column, original, row.headline)
        if ratio is not None:
            return Control(original, ratio)
    return None


def _over_others(row: Row) -> tuple[Column | None, dict[Column, LogEstimate]]:
    """Return the fastest column of a row and the ratio of its times to those of each other.

    The fastest is not slower than most others by these ratios, which know when the machine was slow; of several such
    columns it is the one with the shortest times. A case that is not ranked is compared with none.
    """
    competing = {column: case for column, case in row.cases.items() if column.competes and case.is_ranked}
    estimates = {column: case.estimate(row.headline) for column, case in competing.items()}
    values = {column: estimate.value for column, estimate in estimates.items() if estimate is not None}
    if len(values) < 2:
        return None, {}
    in_order = sorted(values, key=lambda column: values[column])
    ratios: dict[Column, dict[Column, LogEstimate]] = {column: {} for column in in_order}
    for a, b in combinations(in_order, 2):
        ratio = in_row(row, a, b, row.headline)
        if ratio is not None:
            ratios[a][b], ratios[b][a] = ratio, ratio.inverse
    fastest = max(in_order, key=lambda column: sum(one.log_centre <= 0 for one in ratios[column].values()))
    return fastest, {column: ratios[fastest][column] for column in values if column in ratios[fastest]}


@dataclass(frozen=True)
class Sittings:
    """The time of ``column`` over that of the fastest of its row, in each sitting."""

    row: Row
    column: Column
    fastest: Column
    ratios: dict[int, LogEstimate]

    @property
    def apart(self) -> LogEstimate | None:
        """The larger ratio of two sittings over the smaller; of more, their interval tells how they differ."""
        if len(self.ratios) != 2:
            return None
        first, last = self.ratios.values()
        over = first.and_then(last.inverse)
        return over if over.log_centre > 0 else over.inverse

    @property
    def differ(self) -> bool:
        """Whether two sittings differ by more than their intervals allow."""
        return self.apart is not None and self.apart.is_above(1)


def sittings(row: Row, ranking: Ranking) -> list[Sittings]:
    """Return what each sitting found of a row's columns; nothing for a row that had one."""
    fastest = ranking.fastest
    had = {trial.sitting for case in row.cases.values() for trial, _ in case.trials}
    if fastest is None or len(had) < 2:
        return []
    all_of_row = [
        Sittings(row, one.rival, fastest, in_sittings(row, one.rival, fastest, row.headline))
        for one in ranking.comparisons
    ]
    return [one for one in all_of_row if len(one.ratios) > 1]


MEDIANS = tuple(f"{called}_p50_ms" for called in CALLED)
EPOCH, FIRST_CALL = "epoch_s", "compiled_call_first_ms"


@dataclass(frozen=True)
class Contrast:
    """Two columns that differ in one thing: the time of a step or an epoch of the one over that of the other.

    So columns that do not compete are compared: each with the one that it differs from.
    """

    row: Row
    column: Column
    other: Column
    metric: str
    ratio: LogEstimate
    verdict: Verdict  # of the one


def of_keras(rows: Sequence[Row], effect: float) -> list[Contrast]:
    """Return each case that was measured with Keras and without: its step and epoch, or each way to predict."""
    pairs = []
    for row, native, keras in _with_and_without("native", rows):
        metrics = (*MEDIANS, *PER_TOKEN) if row.origin.agenda.only_predicts else (STEADY, EPOCH)
        pairs += [(row, keras, native, metric) for metric in metrics]
    return _contrasts(pairs, effect)


def of_warm_cache(rows: Sequence[Row], effect: float) -> list[Contrast]:
    """Return the first step, or the first compiled call, of each case that found a cache and of the same without."""
    pairs = [
        (row, warm, cold, FIRST_CALL if row.origin.agenda.only_predicts else FIRST_STEP)
        for row, warm, cold in _with_and_without("warm_cache", rows)
    ]
    return _contrasts(pairs, effect)


def _with_and_without(option: str, rows: Sequence[Row]) -> Iterator[tuple[Row, Column, Column]]:
    """Yield each column that has an option, and the one that differs from it by not having it."""
    default = getattr(DEFAULT, option)
    for row in rows:
        for column in row.cases:
            if getattr(column.options, option) != default:
                other = column.with_options(**{option: default})
                if other in row.cases:
                    yield row, column, other


def speed_ups(rows: Sequence[Row], effect: float) -> list[Contrast]:
    """Return the GPU against the CPU for each backend that was measured on both, by what stands for its row."""
    pairs = [
        (row, gpu, cpu, row.headline)
        for row in rows
        for cpu, gpu in permutations(_measured(row, row.headline), 2)
        if cpu.device == CPU and gpu.device != CPU and cpu == dataclasses.replace(gpu, device=CPU)
    ]
    return _contrasts(pairs, effect)


def _contrasts(pairs: Sequence[tuple[Row, Column, Column, str]], effect: float) -> list[Contrast]:
    """Return those pairs that have a ratio, all verdicts judged together."""
    compared = [(*pair, ratio) for pair in pairs if (ratio := in_row(*pair)) is not None]
    ratios = [ratio if believed(row) else None for row, *_, ratio in compared]
    judgements = judge_all(ratios, effect, [row.run for row, *_ in compared])
    return [
        Contrast(row, column, other, metric, judged or ratio, verdict)
        for (row, column, other, metric, ratio), (judged, verdict) in zip(compared, judgements, strict=True)
    ]


@dataclass(frozen=True)
class BreakEven:
    """``slow_start`` takes ``extra_ms`` longer for its first step than ``rival`` and is ahead of it after ``steps``."""

    slow_start: Column
    rival: Column
    extra_ms: float
    steps: float


def break_even(row: Row, column: Column, rival: Column, extra_ms: float) -> BreakEven | None:
    """Return after how many steps a column has made up for a first step that takes so much longer than a rival's.

    None unless the rival's other steps take longer by their whole interval.
    """
    later, rival_ms = in_row(row, rival, column, HEADLINE), row.cases[rival].estimate(HEADLINE)
    if extra_ms <= 0 or later is None or rival_ms is None or not later.is_above(1):
        return None
    return BreakEven(column, rival, extra_ms, extra_ms / (rival_ms.value * (1 - 1 / later.value)))


def break_evens(row: Row, column: Column, effect: float) -> list[BreakEven]:
    """Return where a longer first step buys quicker later ones, of a column or of the others against it."""
    found = []
    rivals = [rival for rival in _measured(row, HEADLINE) if rival != column] if believed(row) else []
    for a, b in [pair for rival in rivals for pair in ((column, rival), (rival, column))]:
        first, first_ms = in_row(row, a, b, FIRST_STEP), row.cases[b].estimate(FIRST_STEP)
        if first is not None and first_ms is not None and first.is_above(1 + effect):
            found.append(break_even(row, a, b, first_ms.value * (first.value - 1)))
    return [known for known in found if known is not None]


def _measured(row: Row, metric: str) -> list[Column]:
    """Return the columns that have a metric; a control is none of its own."""
    return [column for column, case in row.cases.items() if case.estimate(metric) and not column.options.control]
