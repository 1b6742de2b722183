"""Do the intervals hold what they promise? By simulation, with the very functions that the tables use.

    python validation/coverage.py

Every simulated run is drawn as docs/how-it-works.md has it. Trials differ by process (lognormal), slices within
a trial differ too, and the machine drifts over the rounds (a quarter slower in the end). Printed are the coverage of
a nominal 95 % interval of a time and of a ratio, how often a case compared with itself is called different, how often
a table of 24 such comparisons holds any false verdict, judged together and each alone, and how often a difference
is called that is as large as the plan says it can see. First comes the coverage of a ratio by the slices of one block
alone: it is widened by what kerasbench assumes of the scatter between blocks of its family, which is varied here.
"""

import itertools
import math
import random
import statistics
from collections.abc import Sequence

from kerasbench.analysis.estimates import MINIMAL_EFFECT, LogEstimate, Verdict, estimate, judge
from kerasbench.analysis.families import ASSUMED, TYPICAL_SCATTER, Family
from kerasbench.analysis.ratios import divide_slices, sum_up_blocks
from kerasbench.plan.duration import RunScatter, minimum_detectable_effect
from kerasbench.protocol.measurement import Samples, Slice

RUNS = 4_000
TABLES = 1_000
SLICES, SLICE_SPREAD = 20, 0.05
SLICE_NS = 10**8
DRIFT = 0.25
COMPARISONS = 24
BETWEEN_BLOCKS = (0.02, 0.05, 0.10, 0.15)  # of a ratio, as a standard deviation (validation/studies/one-block.md)
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)


def trial(rng: random.Random, scatter: float, factor: float = 1.0) -> Samples:
    """Return a trial's slices: its process' own level, and noise within."""
    level_ns = SLICE_NS * factor * math.exp(rng.gauss(0, scatter))
    times_ns = (int(level_ns * math.exp(rng.gauss(0, SLICE_SPREAD))) for _ in range(SLICES))
    return Samples.of(Slice(1, ns, cycle, 0, 0) for cycle, ns in enumerate(times_ns))


def time_ms(rng: random.Random, rounds: int, scatter: float) -> LogEstimate:
    """Return the estimate of a time that is one, in so many rounds."""
    trials = [trial(rng, scatter) for _ in range(rounds)]
    return estimate([statistics.median(slice_.ns for slice_ in each) / SLICE_NS for each in trials])


def ratio(
    rng: random.Random,
    blocks: int,
    scatter: float,
    factor: float = 1.0,
    drift: float = 0.0,
    assumed: float = TYPICAL_SCATTER,
) -> LogEstimate:
    """Return the estimate of a ratio that is ``factor``; the machine slows down by ``drift`` until the last block."""
    speeds = [1 + drift * index / blocks for index in range(blocks)]
    paired = [divide_slices(trial(rng, scatter, factor * speed), trial(rng, scatter, speed)) for speed in speeds]
    combined = sum_up_blocks([block for block in paired if block is not None], assumed)
    assert combined is not None
    return combined


def held(found: Sequence[LogEstimate]) -> float:
    """Return the share of intervals that hold the truth, which is 1."""
    return statistics.fmean(
        one.low is not None and one.high is not None and one.low <= 1.0 <= one.high for one in found
    )


def called(found: Sequence[LogEstimate]) -> float:
    return statistics.fmean(judge([one])[0].verdict in DIFFERENT for one in found)


def false_tables(rng: random.Random, blocks: int, scatter: float) -> tuple[float, float]:
    """Return the share of tables with a false verdict, judged together and one by one; all ratios are at the edge."""
    tables = [[ratio(rng, blocks, scatter, 1 + MINIMAL_EFFECT) for _ in range(COMPARISONS)] for _ in range(TABLES)]
    together = statistics.fmean(any(one.verdict in DIFFERENT for one in judge(table)) for table in tables)
    return together, statistics.fmean(any(judge([one])[0].verdict in DIFFERENT for one in table) for table in tables)


def main(scatters: Sequence[float] = (0.01, 0.03, 0.10)) -> None:
    rng = random.Random(0)
    for family, between in itertools.product(Family, BETWEEN_BLOCKS):
        assumed = ASSUMED[family].blocks
        estimates = [ratio(rng, 1, between / math.sqrt(2), assumed=assumed) for _ in range(RUNS)]
        print(
            f"ratios scatter by {between:.0%} between blocks and {assumed:.1%} is assumed ({family.name}), one block: "
            f"coverage {held(estimates):.1%}, same case called different {called(estimates):.2%}",
            flush=True,
        )
    for scatter in scatters:
        # Of both columns; the median of the slices' ratios scatters too: 1.25 / sqrt(20) of their own spread.
        seen = math.sqrt(2) * math.hypot(scatter, 1.25 * SLICE_SPREAD / math.sqrt(SLICES))
        for blocks in (3, 5, 10):
            visible = minimum_detectable_effect(blocks, RunScatter(seen), MINIMAL_EFFECT)
            same = [ratio(rng, blocks, scatter) for _ in range(RUNS)]
            drifting = [ratio(rng, blocks, scatter, drift=DRIFT) for _ in range(RUNS)]
            slower = [ratio(rng, blocks, scatter, 1 + visible) for _ in range(RUNS)]
            print(
                f"trials scatter by {scatter:.0%}, {blocks:>2} blocks: coverage "
                f"{held([time_ms(rng, blocks, scatter) for _ in range(RUNS)]):.1%}, of a ratio {held(same):.1%}, same "
                f"case called different {called(same):.2%} (drifting {called(drifting):.2%}), a difference of "
                f"{visible:.1%} called {called(slower):.1%}",
                flush=True,
            )
    for blocks in (3, 5):
        together, one_by_one = false_tables(rng, blocks, 0.03)
        print(
            f"{COMPARISONS} comparisons at the edge of the effect, {blocks} blocks: a false verdict in {together:.1%} "
            f"of tables, {one_by_one:.1%} where each is judged alone"
        )


if __name__ == "__main__":
    main()
