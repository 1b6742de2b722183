"""When something pays: a compilation that makes later steps quicker, a GPU that makes steps quicker than the CPU."""

from dataclasses import dataclass
from itertools import permutations

from kerasbench.analysis.cells import HEADLINE, CellSummary, Row
from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import between
from kerasbench.analysis.verdicts import Verdict, judge, judge_all
from kerasbench.exchange.devices import CPU
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

    @classmethod
    def between(cls, row: Row, slow_start: Column, rival: Column, effect: float) -> "BreakEven | None":
        """Return (first_A - first_B) / (step_B - step_A) steps; None where one of the two is not beyond doubt."""
        a, b = row.cells[slow_start], row.cells[rival]
        if _judged(a, b, FIRST, effect) is not Verdict.SLOWER or _judged(a, b, HEADLINE, effect) is not Verdict.FASTER:
            return None
        extra_ms = _value(a, FIRST) - _value(b, FIRST)
        saved_ms = _value(b, HEADLINE) - _value(a, HEADLINE)
        return cls(row, slow_start, rival, extra_ms, extra_ms / saved_ms) if extra_ms else None


@dataclass(frozen=True)
class SpeedUp:
    """The time of a step on the CPU over that on the GPU, of one backend; above 1 the GPU is the faster."""

    row: Row
    cpu: Column
    gpu: Column
    ratio: LogEstimate
    verdict: Verdict


def break_evens(rows: list[Row], effect: float) -> list[BreakEven]:
    """Return where a longer first step buys quicker later ones, of all pairs of columns, each judged by itself."""
    pairs = [(row, a, b) for row in rows for a, b in permutations(_measured(row), 2)]
    found = [BreakEven.between(row, a, b, effect) for row, a, b in pairs]
    return [one for one in found if one is not None]


def speed_ups(rows: list[Row], effect: float) -> list[SpeedUp]:
    """Return CPU against GPU for each backend and regime that was measured on both; all verdicts judged together."""
    pairs = []
    for row in rows:
        for cpu, gpu in permutations(_measured(row), 2):
            if cpu[1] == CPU and gpu[1] != CPU and (cpu[0], cpu[2]) == (gpu[0], gpu[2]):
                found = between(row.cells[cpu], row.cells[gpu], HEADLINE)
                if found is not None:
                    pairs.append((row, cpu, gpu, found))
    # The ratio is CPU over GPU, the verdict is the GPU's: a slower CPU is a faster GPU.
    of_gpu = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    verdicts = [of_gpu.get(verdict, verdict) for verdict in judge_all([found for *_, found in pairs], effect)]
    return [SpeedUp(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def _measured(row: Row) -> list[Column]:
    return [column for column, cell in row.cells.items() if cell.estimate(HEADLINE) is not None]


def _judged(a: CellSummary, b: CellSummary, name: str, effect: float) -> Verdict:
    return judge(between(a, b, name), effect)


def _value(cell: CellSummary, name: str) -> float:
    found = cell.estimate(name)
    return found.value if found else float("nan")
