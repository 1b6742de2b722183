"""When something pays: a compilation that makes later steps quicker, a GPU that makes steps quicker than the CPU."""

from dataclasses import dataclass
from itertools import combinations, compress, permutations

from kerasbench.analysis.cells import HEADLINE, CellSummary, Row
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import between
from kerasbench.analysis.standings import believed
from kerasbench.analysis.verdicts import Claim, Verdict, claim, judge_all, significant
from kerasbench.exchange.devices import CPU
from kerasbench.exchange.options import is_control
from kerasbench.results.keys import Column

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
    """Two cells, and the ratios a/b of their first steps and of their later ones."""

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
        cell = self.row.cells[self.b]
        extra_ms = _value(cell, FIRST) * (self.first.value - 1)
        steps = extra_ms / (_value(cell, HEADLINE) * (1 - self.later.value))
        return BreakEven(self.row, *((self.a, self.b) if a_is_slow else (self.b, self.a)), abs(extra_ms), steps)


def _ratios(row: Row, a: Column, b: Column) -> tuple[LogEstimate | None, LogEstimate | None]:
    mine, other = row.cells[a], row.cells[b]
    return between(mine, other, FIRST, row.cells.values()), between(mine, other, HEADLINE, row.cells.values())


def speed_ups(rows: list[Row], effect: float) -> list[SpeedUp]:
    """Return CPU against GPU for each backend and regime that was measured on both; all verdicts judged together."""
    pairs = []
    for row in rows:
        for cpu, gpu in permutations(_measured(row), 2):
            if cpu[1] == CPU and gpu[1] != CPU and (cpu[0], cpu[2]) == (gpu[0], gpu[2]):
                found = between(row.cells[cpu], row.cells[gpu], HEADLINE, row.cells.values())
                if found is not None:
                    pairs.append((row, cpu, gpu, found))
    # The ratio is CPU over GPU, the verdict is the GPU's: a slower CPU is a faster GPU.
    judged = [found if believed(row) else None for row, _, _, found in pairs]
    of_gpu = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    verdicts = [of_gpu.get(verdict, verdict) for verdict in judge_all(judged, effect)]
    return [SpeedUp(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def _measured(row: Row) -> list[Column]:
    """Return the columns that have a training step; a control is none of its own."""
    return [column for column, cell in row.cells.items() if cell.estimate(HEADLINE) and not is_control(column[2])]


def _value(cell: CellSummary, name: str) -> float:
    found = cell.estimate(name)
    return found.value if found else float("nan")
