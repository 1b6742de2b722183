"""Does the interval of a single block (--quick) hold what the others found? For each metric, out of a result file.

    python benchmarks/one_block.py results/2026-11-25T070400.json
    python benchmarks/one_block.py FILE --from-round 4     without its first rounds

Each block of each two columns of a row is taken alone, as a quick run has it, and its interval is compared with the
ratio of all other blocks. ``between`` is the standard deviation between blocks that slices do not explain, in the
median over the ratios: kerasbench/analysis/ratios.py has a constant for each metric that widens the interval of one
block.

It also compares the halves of each block: by how many standard errors their ratios differ, as the root of the mean
square, which is 1 for independent slices. Halves in time know of what drifts within a block, odd and even slices do
not. Last it says by how much the halves in time of one column's steps differ by themselves: by so much any two times of
a block do that are not taken in turn, such as an epoch's overhead and the steps that are subtracted from it.
"""

import argparse
import dataclasses
import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from kerasbench.analysis.cases import CaseSummary
from kerasbench.analysis.ratios import by_slices, ratio_of, spread, typical_scatter
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.measurement import Slices
from kerasbench.results.store import load

METRICS = ("train_step_ms", "steady_step_ms", "predict_p50_ms", "predict_batch_p50_ms", "predict_samples_per_s")
LEAST = 4  # blocks
LEAST_SLICES = 12
Pair = tuple[CaseSummary, CaseSummary]


def main(file: Path, first: int) -> None:
    record = load(file)
    left = dataclasses.replace(record, trials=[one for one in record.trials if one.round >= first])
    pairs = [pair for row in summarize(left).rows for pair in itertools.combinations(row.cases.values(), 2)]
    for metric in METRICS:
        say(metric, [(a, b) for a, b in pairs if len(blocks(a, b)) >= LEAST])
    for name, halved in (("halves in time", in_time), ("odd and even slices", by_turns)):
        apart = [found for a, b in pairs for found in differences(a, b, halved)]
        wide = math.sqrt(statistics.fmean(one**2 for one in apart))
        print(f"{name} of {len(apart)} blocks differ by {wide:.2f} standard errors")
    drifts = sorted(drift for row in summarize(left).rows for case in row.cases.values() for drift in drifted(case))
    middle, ninth = (drifts[int(share * len(drifts))] for share in (0.5, 0.9))
    print(
        f"times of {len(drifts)} trials: {middle:.1%} between halves in the median, {ninth:.1%} in one of ten or more"
    )


def drifted(case: CaseSummary) -> Iterator[float]:
    """Return for each trial by how much the second half of its steps took longer or shorter than the first."""
    for _, measurement in case.trials:
        if measurement.training is not None and len(measurement.training.slices) >= LEAST_SLICES:
            each = [slice_.unit_ns for slice_ in measurement.training.slices]
            middle = len(each) // 2
            yield abs(math.log(statistics.median(each[middle:]) / statistics.median(each[:middle])))


def say(metric: str, pairs: list[Pair]) -> None:
    hits = [hit for a, b in pairs for hit in held(a, b, metric)]
    unexplained = [found.between for a, b in pairs if (found := spread(a, b, metric)) is not None]
    if hits:
        print(
            f"{metric}: the interval of one block holds the ratio of the others in {statistics.fmean(hits):.0%} of "
            f"{len(hits)}; between blocks {statistics.median(unexplained):.1%}, assumed {typical_scatter(metric):.0%}"
        )


def held(a: CaseSummary, b: CaseSummary, metric: str) -> Iterator[bool]:
    """Tell for each block whether its interval holds the ratio of all others."""
    for block in blocks(a, b):
        one = ratio_of(of(a, {block}), of(b, {block}), metric, ())
        others = blocks(a, b) - {block}
        rest = ratio_of(of(a, others), of(b, others), metric, ())
        if one is not None and rest is not None and one.low is not None and one.high is not None:
            yield one.low <= rest.value <= one.high


def blocks(a: CaseSummary, b: CaseSummary) -> set[int]:
    """Return the blocks that both had."""
    return {trial.block for trial, _ in a.trials} & {trial.block for trial, _ in b.trials}


def of(case: CaseSummary, wanted: set[int]) -> CaseSummary:
    """Return the case with those blocks alone."""
    return CaseSummary([one for one in case.trials if one[0].block in wanted], case.failure)


def differences(a: CaseSummary, b: CaseSummary, halved: Callable[[int, int], bool]) -> Iterator[float]:
    """Return for each block by how many standard errors the ratios of its halves differ, of training steps."""
    theirs = {trial.block: measurement for trial, measurement in b.trials}
    for trial, ours in a.trials:
        other = theirs.get(trial.block)
        if other is None or ours.training is None or other.training is None:
            continue
        sides = ours.training.slices, other.training.slices
        count = min(map(len, sides))
        if count >= LEAST_SLICES:
            one, two = (by_slices(*(half(side, count, halved, which) for side in sides)) for which in (True, False))
            if one and two and one.error and two.error:
                yield (one.log - two.log) / math.hypot(one.error, two.error)


def half(side: Slices, count: int, halved: Callable[[int, int], bool], which: bool) -> Slices:
    return Slices.of(one for one in side if one.cycle is not None and halved(one.cycle, count) == which)


def in_time(cycle: int, count: int) -> bool:
    return cycle < count // 2


def by_turns(cycle: int, _count: int) -> bool:
    return cycle % 2 == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--from-round", type=int, default=1)
    given = parser.parse_args()
    main(given.file, given.from_round)
