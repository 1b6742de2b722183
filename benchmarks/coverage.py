"""Do the intervals hold what they promise? By simulation, with the very functions that the tables use.

    python benchmarks/coverage.py

Every simulated run is drawn as METHOD describes machines: trials differ by process (lognormal), blocks within a trial
differ too, and the machine drifts over the rounds (a quarter slower in the end). Printed are the coverage of a nominal
95 % interval, how often a cell compared with itself is called different, how often a table of 24 such comparisons holds
any false verdict, with Holm's correction and without, and how often a difference is called that is as large as the plan
says it can see.
"""

import math
import random
import statistics
from collections.abc import Sequence

from kerasbench.analysis.estimates import estimate
from kerasbench.analysis.verdicts import MINIMAL_EFFECT, Verdict, judge, judge_all, ratio, visible_difference

RUNS = 4_000
TABLES = 1_000
BLOCKS, BLOCK_SPREAD = 10, 0.05
DRIFT = 0.25
COMPARISONS = 24
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)


def trial(rng: random.Random, scatter: float, factor: float = 1.0) -> float:
    """Return the median of a trial's blocks: its process' own level, and noise within."""
    level = factor * math.exp(rng.gauss(0, scatter))
    return statistics.median(level * math.exp(rng.gauss(0, BLOCK_SPREAD)) for _ in range(BLOCKS))


def column(
    rng: random.Random, rounds: int, scatter: float, factor: float = 1.0, drift: float = 0.0
) -> dict[int, float]:
    """Return a cell's value in each round, on a machine that slows down by ``drift`` until the last one."""
    return {index: trial(rng, scatter, factor * (1 + drift * index / rounds)) for index in range(rounds)}


def coverage(rng: random.Random, rounds: int, scatter: float) -> float:
    hits = 0
    for _ in range(RUNS):
        found = estimate(list(column(rng, rounds, scatter).values()))
        assert found.low is not None and found.high is not None
        hits += found.low <= 1.0 <= found.high
    return hits / RUNS


def called_different(rng: random.Random, rounds: int, scatter: float, factor: float = 1.0, drift: float = 0.0) -> float:
    calls = 0
    for _ in range(RUNS):
        a, b = column(rng, rounds, scatter, factor, drift), column(rng, rounds, scatter, 1.0, drift)
        calls += judge(ratio(a, b)) in DIFFERENT
    return calls / RUNS


def false_tables(rng: random.Random, rounds: int, scatter: float) -> tuple[float, float]:
    """Return the share of tables with a false verdict, judged together and one by one; all ratios are at the edge."""
    edge = 1 + MINIMAL_EFFECT
    together = one_by_one = 0
    for _ in range(TABLES):
        ratios = [ratio(column(rng, rounds, scatter, edge), column(rng, rounds, scatter)) for _ in range(COMPARISONS)]
        together += any(verdict in DIFFERENT for verdict in judge_all(ratios))
        one_by_one += any(judge(found) in DIFFERENT for found in ratios)
    return together / TABLES, one_by_one / TABLES


def main(scatters: Sequence[float] = (0.01, 0.03, 0.10)) -> None:
    rng = random.Random(0)
    for scatter in scatters:
        # The median of a trial's blocks scatters too: 1.25 / sqrt(10) of their own spread.
        seen = math.hypot(scatter, 1.25 * BLOCK_SPREAD / math.sqrt(BLOCKS))
        for rounds in (3, 5, 10):
            visible = visible_difference(rounds, seen)
            print(
                f"trials scatter by {scatter:.0%}, {rounds:>2} rounds: coverage {coverage(rng, rounds, scatter):.1%}, "
                f"same cell called different {called_different(rng, rounds, scatter):.2%} "
                f"(drifting {called_different(rng, rounds, scatter, drift=DRIFT):.2%}), "
                f"a difference of {visible:.1%} called {called_different(rng, rounds, scatter, 1 + visible):.1%}",
                flush=True,
            )
    for rounds in (3, 5):
        together, one_by_one = false_tables(rng, rounds, 0.03)
        print(
            f"{COMPARISONS} comparisons at the edge of the effect, {rounds} rounds: a false verdict in {together:.1%} "
            f"of tables, {one_by_one:.1%} without Holm's correction"
        )


if __name__ == "__main__":
    main()
