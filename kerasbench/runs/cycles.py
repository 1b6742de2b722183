"""When a stage of a bout has slices enough (pure)."""

import itertools
import math
from collections.abc import Mapping, Sequence

from kerasbench.analysis.estimates import median_error, t_quantile
from kerasbench.exchange.descriptions import RegimeDescription
from kerasbench.exchange.measurement import Block, disturbed_cycles
from kerasbench.exchange.requests import Protocol, counts_epochs
from kerasbench.exchange.turns import STAGES

TRAIN, EPOCH, ONE, BATCH, ALL, PARTS = STAGES
PRECISION = 0.01  # half-width of a bout's own ratios: processes of one cell differ by as much, so more would not help
SHARES = {TRAIN: 0.5, EPOCH: 0.2, ONE: 0.1, BATCH: 0.1, ALL: 0.1}  # of a column's time in a bout
PARTS_SHARE = 0.2  # of that time again, for the three ways in which a step is taken apart
PREDICTED = {ONE: 0.3, BATCH: 0.4, ALL: 0.3}  # of a model that is not trained


def shares(protocol: Protocol, regime: RegimeDescription) -> dict[str, float]:
    """Return each stage's share of the time; what a protocol or a regime does not have is left to the steps."""
    if protocol.kind == "sweep":
        return {TRAIN: 1.0}
    if regime.predicts_only:
        return dict(PREDICTED if regime.predicts_batches else {ONE: 0.5, ALL: 0.5})
    missing = {EPOCH: counts_epochs(regime.steps), BATCH: not regime.predicts_batches}
    found = {stage: share for stage, share in SHARES.items() if not missing.get(stage)}
    return found | {TRAIN: found[TRAIN] + 1 - sum(found.values())}


def enough(protocol: Protocol, of_stage: Mapping[str, float], stage: str, slices: Sequence[Sequence[Block]], /) -> bool:
    """Tell whether a stage can end after a cycle: its ratios are narrow enough, or its time is up.

    ``of_stage`` are the ``shares``; ``slices`` those of each column, as many of one as of another. Cycles that others
    disturbed do not count, as long as that at most doubles how many there are, and as twice as many leave enough.
    """
    disturbed = disturbed_cycles(slices)
    undisturbed = [[block for block in column if block.cycle not in disturbed] for column in slices]
    if _is_enough(protocol, of_stage, stage, undisturbed):
        return True
    half = [column[: len(column) // 2] for column in slices]
    hopeless = 2 * min(map(len, undisturbed), default=0) < protocol.min_cycles
    return _is_enough(protocol, of_stage, stage, slices if hopeless else half)


def _is_enough(
    protocol: Protocol, of_stage: Mapping[str, float], stage: str, slices: Sequence[Sequence[Block]]
) -> bool:
    cycles = min(map(len, slices), default=0)
    if cycles < protocol.min_cycles:
        return False
    spent_ns = max(sum(block.ns for block in column) for column in slices)
    if stage == PARTS:  # a slice is the sum of three ways: how precise their ratios are cannot be seen from it
        return spent_ns >= PARTS_SHARE * protocol.slices_max_ns
    return spent_ns >= of_stage.get(stage, 0.0) * protocol.slices_max_ns or widest(slices) <= PRECISION


def widest(slices: Sequence[Sequence[Block]]) -> float:
    """Return the largest half-width of the median log difference of two columns; of the log times of one alone."""
    logs = [[math.log(block.unit_ns) for block in column] for column in slices]
    if len(logs) == 1:
        return _half_width(logs[0])
    return max(
        _half_width([a - b for a, b in zip(one, other, strict=False)]) for one, other in itertools.combinations(logs, 2)
    )


def _half_width(values: Sequence[float]) -> float:
    error = median_error(values)
    return math.inf if error is None else t_quantile(len(values) - 1) * error
