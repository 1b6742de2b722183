"""Does the interval hold what it promises when the run decides by it whether to go on? By simulation.

    python benchmarks/stopping.py

The ratio of two columns scatters between blocks by so much. Blocks are added by the very rule that a run follows
(runs/schedule.py: at least three, at most twelve), and Student's t interval of what there is then is looked at.
Printed are its coverage of the truth, nominally 95 %, how many blocks it took, and how often two equal columns are
called different.
"""

import math
import random
import statistics

from kerasbench.analysis.estimates import Verdict, estimate, judge
from kerasbench.results.run import DEFAULT
from kerasbench.runs import schedule

RUNS = 4_000


def run(rng: random.Random, scatter: float) -> list[float]:
    """Return the ratios of one row's blocks."""
    ratios, widths = list[float](), list[list[float | None]]()
    while not widths or schedule.stop_reason(DEFAULT, widths) is None:
        ratios.append(math.exp(rng.gauss(0, scatter)))
        widths.append([estimate(ratios).half_width])
    return ratios


def main() -> None:
    rng = random.Random(0)
    for scatter in (0.005, 0.01, 0.02, 0.03, 0.05, 0.1):
        counts, hits, called = list[int](), 0, 0
        for _ in range(RUNS):
            ratios = run(rng, scatter)
            found = estimate(ratios)
            assert found.low is not None and found.high is not None
            counts.append(len(ratios))
            hits += found.low <= 1.0 <= found.high
            called += judge([found])[0].verdict in (Verdict.FASTER, Verdict.SLOWER)
        print(
            f"blocks scatter by {scatter:.1%}: {statistics.fmean(counts):.1f} blocks, coverage {hits / RUNS:.1%}, "
            f"equal columns called different {called / RUNS:.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
