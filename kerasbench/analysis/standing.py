"""Who is ahead in a row while it is measured: a figure that sharpens, and no verdict."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.ratios import by_slices
from kerasbench.protocol.measurement import Slice, Slices

FIRST_CYCLES = 3  # the median of fewer is no better than any of them

LogRatios = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Standing:
    """Columns by their labels."""

    fastest: str
    times: dict[str, LogEstimate]  # how many times as long each of the others takes, the nearest first; no intervals


def log_ratios(slices: Mapping[str, Sequence[Slice]]) -> LogRatios:
    """Return the logarithm of the ratio of each two columns in a block; none of those with too few cycles so far."""
    logs = {}
    columns = {label: Slices.of(own) for label, own in slices.items()}
    for one, other in itertools.combinations(columns, 2):
        ratio = by_slices(columns[one], columns[other])
        if ratio is not None and ratio.slices >= FIRST_CYCLES:
            logs[one, other], logs[other, one] = ratio.log, -ratio.log
    return logs


def standing(blocks: Sequence[LogRatios]) -> Standing | None:
    """Return how the columns of the last block stand, by the mean over all blocks; None if they cannot be compared."""
    labels = dict.fromkeys(one for one, _ in blocks[-1]) if blocks else {}
    if not labels:
        return None
    logs = {pair: statistics.fmean(block[pair] for block in blocks if pair in block) for pair in blocks[-1]}
    fastest = min(labels, key=lambda one: sum(logs[one, other] for other in labels if other != one))
    others = sorted((one for one in labels if one != fastest), key=lambda one: logs[one, fastest])
    return Standing(fastest, {one: LogEstimate(logs[one, fastest], None, 0, len(blocks)) for one in others})
