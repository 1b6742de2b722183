"""Does the interval of a single block (--quick) hold what the others found? For each metric, out of result files.

    python validation/one_block.py results/2026-11-25T205748.json
    python validation/one_block.py FILE FILE --from-round 4     without their first rounds

Each block of each two columns of a row is taken alone, as a quick run has it, and its interval is compared with the
ratio of all other blocks. ``between`` is the standard deviation between blocks that slices do not explain, in the
median over the ratios: kerasbench/analysis/families.py says for each family of ratios by how much the interval of one
block is widened.

Intervals of training steps that miss by more than 5 % are counted by row and columns. Would the block's own slices have
told? Printed is the part of them, and of the others, whose halves in time differ by more than those of nine blocks in
ten.

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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from columns import spread

from kerasbench.analysis.cases import Measured
from kerasbench.analysis.families import Family
from kerasbench.analysis.ratios import RowRatios, divide_slices, estimate_ratio, family_of
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.measurement import Samples
from kerasbench.results.store import load

METRICS = ("train_step_ms", "steady_step_ms", "predict_p50_ms", "predict_batch_p50_ms", "predict_samples_per_s")
LEAST = 4  # blocks
LEAST_SLICES = 12
FAR = 1.05
Pair = tuple[Measured, Measured]


def main(files: list[Path], first: int) -> None:
    rows = []
    for file in files:
        record = load(file)
        trials = [one for one in record.trials if one.round >= first]
        rows += summarize(dataclasses.replace(record, trials=trials)).rows
    pairs = [pair for row in rows for pair in itertools.combinations(row.cases.values(), 2)]
    for family, metric in itertools.product(Family, METRICS):
        say(family, metric, [pair for pair in pairs if len(blocks(*pair)) >= LEAST and family_of(*pair) is family])
    for name, halved in (("halves in time", in_time), ("odd and even slices", by_turns)):
        apart = [found for a, b in pairs for found in differences(a, b, halved)]
        wide = math.sqrt(statistics.fmean(one**2 for one in apart))
        print(f"{name} of {len(apart)} blocks differ by {wide:.2f} standard errors")
    say_missed(rows)
    drifts = sorted(drift for row in rows for case in row.cases.values() for drift in drifted(case))
    middle, ninth = (drifts[int(share * len(drifts))] for share in (0.5, 0.9))
    print(
        f"times of {len(drifts)} trials: {middle:.1%} between halves in the median, {ninth:.1%} in one of ten or more"
    )


def say_missed(rows: Sequence[Row]) -> None:
    """Say which intervals miss by far, and whether the halves of a block tell so."""
    missed, shifts = Counter[str](), dict[bool, list[float]]({True: [], False: []})
    for row in rows:
        for one, other in itertools.combinations(row.cases, 2):
            a, b = row.cases[one], row.cases[other]
            for block in blocks(a, b) if len(blocks(a, b)) >= LEAST else ():
                off = miss(a, b, block, "steady_step_ms")
                halves = list(differences(of(a, {block}), of(b, {block}), in_time))
                if off is not None:
                    is_far = off > math.log(FAR)
                    missed[f"{row.label}, {one.label} / {other.label}"] += is_far
                    shifts[is_far] += [abs(each) for each in halves]
    total = sum(map(len, shifts.values()))
    print(f"{missed.total()} intervals miss by more than {FAR - 1:.0%}: {dict(+missed)}")
    limit = sorted(itertools.chain(*shifts.values()))[int(0.9 * total)]
    far, near = (statistics.fmean(each > limit for each in shifts[is_far]) for is_far in (True, False))
    print(
        f"their halves differ by more than {limit:.1f} standard errors in {far:.0%} of them, and {near:.0%} of others"
    )


def miss(a: Measured, b: Measured, block: int, metric: str) -> float | None:
    """Return by how much the interval of a block misses the ratio of all others, of logarithms; 0 if it holds it."""
    one = estimate_ratio(of(a, {block}), of(b, {block}), metric)
    others = blocks(a, b) - {block}
    rest = estimate_ratio(of(a, others), of(b, others), metric)
    if one is None or rest is None or one.low is None or one.high is None:
        return None
    return max(0.0, math.log(one.low / rest.value), math.log(rest.value / one.high))


def drifted(case: Measured) -> Iterator[float]:
    """Return for each trial by how much the second half of its steps took longer or shorter than the first."""
    for _, measurement in case.trials:
        if measurement.training is not None and len(measurement.samples["train"]) >= LEAST_SLICES:
            each = [slice_.unit_ns for slice_ in measurement.samples["train"]]
            middle = len(each) // 2
            yield abs(math.log(statistics.median(each[middle:]) / statistics.median(each[:middle])))


def say(family: Family, metric: str, pairs: list[Pair]) -> None:
    hits = [hit for a, b in pairs for hit in held(a, b, metric)]
    unexplained = [scatter[1] for a, b in pairs if (scatter := spread(a, b, metric)) is not None]
    if hits:
        print(
            f"{family.name}, {metric}: the interval of one block holds the ratio of the others in "
            f"{statistics.fmean(hits):.0%} of {len(hits)}; between blocks {statistics.median(unexplained):.1%}, "
            f"assumed {statistics.median(RowRatios({0: a, 1: b}).assumed_scatter(0, 1, metric) for a, b in pairs):.1%}"
        )


def held(a: Measured, b: Measured, metric: str) -> Iterator[bool]:
    """Tell for each block whether its interval holds the ratio of all others."""
    for block in blocks(a, b):
        off = miss(a, b, block, metric)
        if off is not None:
            yield off == 0


def blocks(a: Measured, b: Measured) -> set[int]:
    """Return the blocks that both had."""
    return {trial.block for trial, _ in a.trials} & {trial.block for trial, _ in b.trials}


def of(case: Measured, wanted: set[int]) -> Measured:
    """Return the case with those blocks alone."""
    return Measured([one for one in case.trials if one[0].block in wanted], case.failure)


def differences(a: Measured, b: Measured, halved: Callable[[int, int], bool]) -> Iterator[float]:
    """Return for each block by how many standard errors the ratios of its halves differ, of training steps."""
    theirs = {trial.block: measurement for trial, measurement in b.trials}
    for trial, ours in a.trials:
        other = theirs.get(trial.block)
        if other is None or ours.training is None or other.training is None:
            continue
        sides = ours.samples["train"], other.samples["train"]
        count = min(map(len, sides))
        if count >= LEAST_SLICES:
            one, two = (divide_slices(*(half(side, count, halved, which) for side in sides)) for which in (True, False))
            if one and two and one.error and two.error:
                yield (one.log - two.log) / math.hypot(one.error, two.error)


def half(side: Samples, count: int, halved: Callable[[int, int], bool], which: bool) -> Samples:
    return Samples.of(one for one in side if one.cycle is not None and halved(one.cycle, count) == which)


def in_time(cycle: int, count: int) -> bool:
    return cycle < count // 2


def by_turns(cycle: int, _count: int) -> bool:
    return cycle % 2 == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--from-round", type=int, default=1)
    given = parser.parse_args()
    main(given.files, given.from_round)
