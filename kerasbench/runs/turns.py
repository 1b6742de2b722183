"""Who has a turn and until when: the order of columns in a block's cycles, and when a stage has enough slices."""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from kerasbench.analysis.estimates import median_error, t_quantile
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import TURNS_FOR_ONE, TrialPlan
from kerasbench.protocol.stages import STAGES, standing

Orders = Callable[[int], Iterator[Sequence[int]]]
Slices = Sequence[Sequence[Slice]]  # of each column


def draw_orders(seed: str) -> Orders:
    rng = random.Random(seed)

    def orders(columns: int) -> Iterator[Sequence[int]]:
        while True:
            square = williams(rng.sample(range(columns), columns))
            yield from rng.sample(square, len(square))

    return orders


def long_orders(controls: Sequence[bool]) -> Orders:
    """TURNS_FOR_ONE in a row for each column that is no control, one for a control, and for one that is left."""
    turns = [place for place, control in enumerate(controls) for _ in range(1 if control else TURNS_FOR_ONE)]

    def orders(columns: int) -> Iterator[Sequence[int]]:
        return itertools.repeat(turns if columns == len(controls) else list(range(columns)))

    return orders


def williams(columns: Sequence[int]) -> list[list[int]]:
    """Return orders in which every column follows every other equally often, and has every position equally often.

    E. J. Williams, "Experimental designs balanced for the estimation of residual effects of treatments", 1949.
    """
    size = len(columns)
    if size == 1:
        return [list(columns)]
    zigzag = [(step + 1) // 2 if step % 2 else (size - step // 2) % size for step in range(size)]  # 0, 1, n-1, 2, n-2
    square = [[columns[(place + shift) % size] for place in zigzag] for shift in range(size)]
    return square if size % 2 == 0 else [*square, *(order[::-1] for order in square)]


QUOTA_PERIOD_S = 0.1  # the kernel's (cpu.max): what a column used beyond its share is not taken from the next one's


def rest_s(quota_cores: float | None, cores: int) -> float:
    """Nobody runs for so long before each turn, on so many processors of which a group may use so much."""
    return QUOTA_PERIOD_S if quota_cores is not None and quota_cores < cores else 0.0


SLICE_PRECISION = 0.01  # half-width of a block's ratios: processes of a case differ by as much, more would not help
REPEATED_NS = 20_000_000_000  # how long a stage's slices may have taken for disturbed ones to be measured again
LEAST_CYCLES = 3  # of units that cannot be made shorter: what an epoch costs once is a small part of it
PARTS_SHARE = 0.4  # of a column's time again, for the three ways in which a step is taken apart


def enough(plan: TrialPlan, shares: Mapping[str, float], stage: str, slices: Slices, most: int | None = None) -> bool:
    """Tell whether a stage can end: its ratios are narrow, its time is up, or it has had the ``most`` cycles."""
    if plan.fixed_time:  # the stage that stands for the trial goes on, the others have one cycle
        whole_ns = plan.slices_max_ns if stage == standing(plan.stages) else 0
        return max(sum(slice_.ns for slice_ in column) for column in slices) >= whole_ns
    is_enough = partial(_is_enough, plan, shares, stage, most)
    disturbed = {slice_.cycle for column in slices for slice_ in column if slice_.disturbed}
    undisturbed = [[slice_ for slice_ in column if slice_.cycle not in disturbed] for column in slices]
    if is_enough(undisturbed):
        return True
    spent_ns = max(sum(slice_.ns for slice_ in column) for column in slices)
    too_slow = spent_ns >= max(REPEATED_NS, 2 * plan.slices_max_ns)
    if too_slow or 2 * min(map(len, undisturbed), default=0) < plan.min_cycles:
        return is_enough(slices)  # twice as many would take minutes, or not leave enough
    return is_enough([column[: len(column) // 2] for column in slices])


def _is_enough(plan: TrialPlan, shares: Mapping[str, float], stage: str, most: int | None, slices: Slices) -> bool:
    cycles = min(map(len, slices), default=0)
    if cycles and max(sum(slice_.ns for slice_ in column) for column in slices) >= plan.column_max_ns:
        return True  # a quick look at steps of many seconds has one or two of each
    if cycles < min(plan.min_cycles, LEAST_CYCLES):
        return False
    has_parts = STAGES[stage].sum_of > 1
    share = PARTS_SHARE if has_parts else shares.get(stage, 0.0)
    is_over = max(sum(slice_.ns for slice_ in column) for column in slices) >= share * plan.slices_max_ns
    if cycles < plan.min_cycles:
        return STAGES[stage].long and is_over
    return is_over or (most is not None and cycles >= most) or (not has_parts and widest(slices) <= SLICE_PRECISION)


def widest(slices: Slices) -> float:
    """Return the largest half-width of the median log difference of two columns; of the log times of one alone."""
    logs = [[math.log(slice_.unit_ns) for slice_ in column] for column in slices]
    if len(logs) == 1:
        return _half_width(logs[0])
    return max(
        _half_width([a - b for a, b in zip(first, second, strict=False)])
        for first, second in itertools.combinations(logs, 2)
    )


def _half_width(values: Sequence[float]) -> float:
    error = median_error(values)
    return math.inf if error is None else t_quantile(len(values) - 1) * error
