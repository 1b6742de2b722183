"""When something pays: a compilation that makes later steps quicker, a GPU that makes steps quicker than the CPU."""

from dataclasses import dataclass
from itertools import permutations

from kerasbench.analysis.estimates import Estimate
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import HEADLINE, CellSummary, Column, Row
from kerasbench.analysis.verdicts import Verdict, judge, judge_all, ratio
from kerasbench.exchange.devices import CPU

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
    ratio: Estimate
    verdict: Verdict


def break_evens(rows: list[Row], effect: float) -> list[BreakEven]:
    """Return where a longer first step buys quicker later ones: (first_A - first_B) / (step_B - step_A) steps.

    Only where both differences are beyond doubt, paired by round.
    """
    return [
        BreakEven(row, a, b, extra, extra / (step[b] - step[a]))
        for row in rows
        for a, b in permutations(_measured(row), 2)
        if _beyond(row, a, b, FIRST, effect) is Verdict.SLOWER
        and _beyond(row, a, b, HEADLINE, effect) is Verdict.FASTER
        if (step := {column: _value(row.cells[column], HEADLINE) for column in (a, b)})
        if (extra := _value(row.cells[a], FIRST) - _value(row.cells[b], FIRST))
    ]


def speed_ups(rows: list[Row], effect: float) -> list[SpeedUp]:
    """Return CPU against GPU for each backend and regime that was measured on both; all verdicts judged together."""
    metric = BY_NAME[HEADLINE]
    pairs = [
        (row, cpu, gpu, found)
        for row in rows
        for cpu in _measured(row)
        for gpu in _measured(row)
        if cpu[1] == CPU and gpu[1] != CPU and (cpu[0], cpu[2]) == (gpu[0], gpu[2])
        if (found := ratio(row.cells[cpu].by_round(metric), row.cells[gpu].by_round(metric))) is not None
    ]
    # The ratio is CPU over GPU, the verdict is the GPU's: a slower CPU is a faster GPU.
    of_gpu = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    verdicts = [of_gpu.get(verdict, verdict) for verdict in judge_all([found for *_, found in pairs], effect)]
    return [SpeedUp(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]


def _measured(row: Row) -> list[Column]:
    return [column for column, cell in row.cells.items() if cell.estimate(HEADLINE) is not None]


def _beyond(row: Row, a: Column, b: Column, name: str, effect: float) -> Verdict:
    metric = BY_NAME[name]
    return judge(ratio(row.cells[a].by_round(metric), row.cells[b].by_round(metric)), effect)


def _value(cell: CellSummary, name: str) -> float:
    found = cell.estimate(name)
    return found.value if found else float("nan")
