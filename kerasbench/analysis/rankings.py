"""Who is fastest in each row of a table, and what the others are to it.

Sittings: the ratios that each of them found, and whether these differ by more than their intervals allow.

What something costs: the time of a column over that of the one that differs from it in that alone.

When something pays: a compilation that makes later steps quicker, a GPU that makes steps quicker than the CPU.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, compress, permutations

from kerasbench.analysis.cases import HEADLINE, CaseSummary, Row
from kerasbench.analysis.estimates import (
    MIN_TRIALS_FOR_INTERVAL,
    Claim,
    LogEstimate,
    Verdict,
    claim,
    judge_all,
    rounds_to_decide,
    significant,
)
from kerasbench.analysis.ratios import between, by_means, in_sittings
from kerasbench.protocol.columns import CPU, Column

CONTROL_BOUND = 0.03  # what is the same and differs by more, significantly, leaves nothing to be believed


@dataclass(frozen=True)
class Comparison:
    """The fastest case of a row against one of the others: the ratio of their times, and what it means.

    ``decides``: about how many rounds in all would decide it by itself; None where no number would. ``by_means`` is the
    ratio by the means of the same slices, where that lies outside the interval; else None.
    """

    rival: Column
    ratio: LogEstimate
    verdict: Verdict
    decides: int | None
    by_means: float | None = None


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

    Nobody is, where there is nobody to be compared with. Where each column is slower than another, a rival may be
    significantly faster, and none is ``first``. ``proven`` is False where too little is known for an interval; where no
    row of the table has one, it is ``tentative``. With a ``control`` that is off, nothing is called different.
    """

    fastest: Column | None
    comparisons: list[Comparison]
    proven: bool
    tentative: bool = False
    control: Control | None = None

    @property
    def first(self) -> Column | None:
        """The fastest where none is level with it: significantly, or of a tentative table."""
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
    def level(self) -> list[Column]:
        """Those that cannot be told from the fastest."""
        undecided = (Verdict.SAME, Verdict.INCONCLUSIVE)
        decides = self.proven and not self.disturbed
        return [one.rival for one in self.comparisons if decides and one.verdict in undecided]

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


def stand(rows: Sequence[Row], effect: float) -> list[Ranking]:
    """Compare the fastest case of each row with each of its others.

    All verdicts of the table are judged together, because their number matters.
    """
    controls = [control(row) for row in rows]
    pairs = [_pairs(row) for row in rows]
    judged = [
        None if one is not None and one.is_off else ratio
        for one, (_, ratios) in zip(controls, pairs, strict=True)
        for ratio in ratios.values()
    ]
    verdicts = iter(judge_all(judged, effect))
    few = all(row.rounds < MIN_TRIALS_FOR_INTERVAL for row in rows)
    tentative = few and not any(one is not None and one.has_interval for one in judged)
    rankings = []
    for row, repeated, (fastest, ratios) in zip(rows, controls, pairs, strict=True):
        comparisons = [
            Comparison(
                rival, found, next(verdicts), rounds_to_decide(found, effect), _by_means(row, fastest, rival, found)
            )
            for rival, found in ratios.items()
        ]
        proven = bool(comparisons) and all(one.ratio.has_interval for one in comparisons)
        rankings.append(Ranking(fastest, comparisons, proven, tentative, repeated))
    return rankings


def _by_means(row: Row, fastest: Column | None, rival: Column, ratio: LogEstimate) -> float | None:
    """Return the ratio of the fastest to a rival by means, where that lies outside the interval of the medians'."""
    if fastest is None or row.headline != HEADLINE or ratio.low is None or ratio.high is None:
        return None
    found = by_means(row.cases[fastest], row.cases[rival])
    return None if found is None or ratio.low <= found <= ratio.high else found


def believed(row: Row) -> bool:
    """Tell whether a row's verdicts count: where its control is off they do not."""
    found = control(row)
    return found is None or not found.is_off


def control(row: Row) -> Control | None:
    """Return the ratio of a row's control to the column that it repeats; None where none was measured.

    Where versions are compared, each backend has one, and none speaks for the others (analysis/versus.py).
    """
    if row.origin.versus:
        return None
    for column, case in row.cases.items():
        original = column.with_options(control=False)
        if column.options.control and original in row.cases:
            ratio = between(case, row.cases[original], row.headline, row.cases.values())
            if ratio is not None:
                return Control(original, ratio)
    return None


def _pairs(row: Row) -> tuple[Column | None, dict[Column, LogEstimate]]:
    """Return the fastest column of a row and the ratio of its times to those of each other.

    The fastest is not slower than most others by these ratios, which know whom the machine slowed down; of several such
    columns it is the one with the shortest times.

    Native twins do not compete, and neither does what was measured beside busy processors: they are compared with their
    own backend (prices.py). Nor does a control.
    """
    competing = {column: case for column, case in row.cases.items() if column.competes}
    values = {column: found.value for column, case in competing.items() if (found := case.estimate(row.headline))}
    if len(values) < 2:
        return None, {}
    in_order = sorted(values, key=lambda column: values[column])
    ratios: dict[Column, dict[Column, LogEstimate]] = {column: {} for column in in_order}
    for one, other in itertools.combinations(in_order, 2):
        found = between(row.cases[one], row.cases[other], row.headline, row.cases.values())
        if found is not None:
            ratios[one][other], ratios[other][one] = found, found.inverse
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
        found = first.and_then(last.inverse)
        return found if found.log_centre > 0 else found.inverse

    @property
    def differ(self) -> bool:
        """Whether two sittings differ by more than their intervals allow."""
        low = self.apart.low if self.apart else None
        return low is not None and low > 1


def sittings(row: Row, ranking: Ranking) -> list[Sittings]:
    """Return what each sitting found of a row's columns; nothing for a row that had one."""
    if ranking.fastest is None:
        return []
    fastest = row.cases[ranking.fastest]
    found = [
        Sittings(row, one.rival, ranking.fastest, in_sittings(row.cases[one.rival], fastest, row.headline))
        for one in ranking.comparisons
    ]
    return [one for one in found if len(one.ratios) > 1]


STEP, EPOCH = "steady_step_ms", "epoch_s"


@dataclass(frozen=True)
class Overhead:
    """The time of a step or an epoch with something over that without; above 1 it costs something."""

    row: Row
    paying: Column
    free: Column
    metric: str
    ratio: LogEstimate
    verdict: Verdict


def of_keras(rows: Sequence[Row], effect: float) -> list[Overhead]:
    """Return each case that was measured with Keras and without, step before epoch."""

    def with_keras(column: Column) -> Column | None:
        return column.with_options(native=False) if column.options.native else None

    return _judged(
        [
            (row, keras, native, metric)
            for row, native, keras in _counterparts(rows, with_keras)
            for metric in (STEP, EPOCH)
        ],
        effect,
    )


def of_busy_cores(rows: Sequence[Row], effect: float) -> list[Overhead]:
    """Return each case that was measured beside busy processors and without them, by what stands for its row."""

    def undisturbed(column: Column) -> Column | None:
        return column.with_options(busy_cores=0) if column.options.busy_cores else None

    return _judged([(row, busy, quiet, row.headline) for row, busy, quiet in _counterparts(rows, undisturbed)], effect)


def _judged(asked: Sequence[tuple[Row, Column, Column, str]], effect: float) -> list[Overhead]:
    """Return the prices, all verdicts judged together.

    A case that a failure withholds has no price: one that computes something else says nothing.
    """
    found = [
        (row, paying, free, metric, compared)
        for row, paying, free, metric in asked
        if (compared := between(row.cases[paying], row.cases[free], metric, row.cases.values())) is not None
    ]
    verdicts = judge_all([compared if believed(row) else None for row, *_, compared in found], effect)
    return [Overhead(*one, verdict) for one, verdict in zip(found, verdicts, strict=True)]


def _counterparts(
    rows: Sequence[Row], counterpart: Callable[[Column], Column | None]
) -> list[tuple[Row, Column, Column]]:
    """Return the columns that have a counterpart in their row, and that; None: a column asks for none."""
    found = []
    for row in rows:
        for column, case in row.cases.items():
            other = counterpart(column) if case.trials else None
            if other is not None and other in row.cases:
                found.append((row, column, other))
    return found


FIRST = "first_step_ms"


@dataclass(frozen=True)
class BreakEven:
    """``slow_start`` takes ``extra_ms`` longer for its first step than ``rival`` and is ahead of it after ``steps``."""

    row: Row
    slow_start: Column
    rival: Column
    extra_ms: float
    steps: float


@dataclass(frozen=True)
class SpeedUp:
    """The time of a step on the CPU over that on the GPU, of one backend; above 1 the GPU is the faster."""

    row: Row
    cpu: Column
    gpu: Column
    ratio: LogEstimate
    verdict: Verdict


def break_evens(rows: list[Row], effect: float) -> list[BreakEven]:
    """Return where a longer first step buys quicker later ones: (first_A - first_B) / (step_B - step_A) steps.

    All pairs of columns are judged together. Both differences of a pair must be significant, so that the weaker one
    speaks for the two (R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24
    (1982)).
    """
    pairs = [_Pair(row, a, b, *_ratios(row, a, b)) for row in rows for a, b in combinations(_measured(row), 2)]
    claims = [one.claim(effect) for one in pairs]
    sure = compress(zip(pairs, claims, strict=True), significant(claims))
    return [one.break_even(its.verdict is Verdict.SLOWER) for one, its in sure]


@dataclass(frozen=True)
class _Pair:
    """Two cases, and the ratios a/b of their first steps and of their later ones."""

    row: Row
    a: Column
    b: Column
    first: LogEstimate | None
    later: LogEstimate | None

    def claim(self, effect: float) -> Claim:
        """Return that A begins slower and goes on faster, as ``slower``, or the other way round, with the greater p."""
        first, later = claim(self.first, effect), claim(self.later, effect)
        if first.p is None or later.p is None or not believed(self.row):
            return Claim(Verdict.INCONCLUSIVE, None)
        if {first.verdict, later.verdict} != {Verdict.SLOWER, Verdict.FASTER}:
            return Claim(Verdict.INCONCLUSIVE, 1.0)
        return Claim(first.verdict, max(first.p, later.p))

    def break_even(self, a_is_slow: bool) -> BreakEven:
        """Return when the slow start has paid, by B's times and the two ratios."""
        assert self.first is not None and self.later is not None
        case = self.row.cases[self.b]
        extra_ms = _value(case, FIRST) * (self.first.value - 1)
        steps = extra_ms / (_value(case, HEADLINE) * (1 - self.later.value))
        return BreakEven(self.row, *((self.a, self.b) if a_is_slow else (self.b, self.a)), abs(extra_ms), steps)


def _ratios(row: Row, a: Column, b: Column) -> tuple[LogEstimate | None, LogEstimate | None]:
    mine, other = row.cases[a], row.cases[b]
    return between(mine, other, FIRST, row.cases.values()), between(mine, other, HEADLINE, row.cases.values())


def speed_ups(rows: list[Row], effect: float) -> list[SpeedUp]:
    """Return CPU against GPU for each backend and workload that was measured on both; all verdicts judged together."""
    pairs = []
    for row in rows:
        for cpu, gpu in permutations(_measured(row), 2):
            if cpu.device == CPU and gpu.device != CPU and cpu == dataclasses.replace(gpu, device=CPU):
                found = between(row.cases[cpu], row.cases[gpu], HEADLINE, row.cases.values())
                if found is not None:
                    pairs.append((row, cpu, gpu, found))
    # The ratio is CPU over GPU, the verdict is the GPU's: a slower CPU is a faster GPU.
    judged = [found if believed(row) else None for row, _, _, found in pairs]
    of_gpu = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    verdicts = [of_gpu.get(verdict, verdict) for verdict in judge_all(judged, effect)]
    return [SpeedUp(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def _measured(row: Row) -> list[Column]:
    """Return the columns that have a training step; a control is none of its own."""
    return [column for column, case in row.cases.items() if case.estimate(HEADLINE) and not column.options.control]


def _value(case: CaseSummary, name: str) -> float:
    found = case.estimate(name)
    return found.value if found else float("nan")
