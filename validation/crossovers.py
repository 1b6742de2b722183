"""Do the intervals of crossovers and of cost models hold what they promise? By simulation, with the tables' own code.

    python validation/crossovers.py

Two backends whose steps are overhead + cost per sample x batch, and cross at a batch that is known; trials scatter by
process (lognormal), and the machine drifts over the rounds. Printed are how often the sweep finds one crossover and its
interval holds the planted one, by the sizes of a sweep alone and with two more inside the bracket; the interval's
typical width; how often two equal series are said to cross; and the coverage of a cost model's coefficients.
"""

import math
import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from kerasbench.analysis.estimates import MINIMAL_EFFECT, LogEstimate, estimate, judge
from kerasbench.analysis.ratios import divide_rounds
from kerasbench.modes.sweep import series
from kerasbench.modes.sweep.plan import sizes_between
from kerasbench.modes.sweep.series import Crossing, Ratios, fit
from kerasbench.plan import parse
from kerasbench.protocol.columns import Column

RUNS = 1_000
SIZES = parse.batches(["1..4096"])
DRIFT = 0.25  # the machine is so much slower in the last round
A = (1.0, 0.004)  # overhead and cost per sample, in ms: dear to start, cheap to feed
B_OVERHEAD = 0.2
PLANTED = (3.0, 48.0, 90.0, 700.0)  # batches: between sizes, near one, and towards both ends
COLUMNS = Column("a", "cpu"), Column("b", "cpu")


class Found(NamedTuple):
    """Shares of sweeps: that find a crossover at all, or more than one; and of those that find any, whose interval
    holds the planted one, without and with two more sizes. ``width`` is an interval's median, in octaves.
    """

    any: float
    several: float
    before: float
    after: float
    width: float


def steps(rng: random.Random, cost: tuple[float, float], batch: float, rounds: int, scatter: float) -> dict[int, float]:
    """Return one case's trials: a step's cost, the machine's drift, and the process' own scatter."""
    level = cost[0] + cost[1] * batch
    return {i: level * (1 + DRIFT * i / rounds) * math.exp(rng.gauss(0, scatter)) for i in range(rounds)}


def rival(planted: float) -> tuple[float, float]:
    """Return the cost of the series that is overtaken at that batch."""
    return (B_OVERHEAD, A[1] + (A[0] - B_OVERHEAD) / planted)


def duel(
    rng: random.Random, rounds: int, scatter: float, other: tuple[float, float], sizes: Sequence[float]
) -> list[tuple[float, LogEstimate]]:
    found = []
    for size in sizes:
        paired = divide_rounds(steps(rng, A, size, rounds, scatter), steps(rng, other, size, rounds, scatter), {})
        assert paired is not None
        found.append((float(size), paired))
    return found


def crossings(ratios: Ratios) -> list[Crossing]:
    judgements = judge([ratio for _, ratio in ratios], MINIMAL_EFFECT)
    return series.crossings(*COLUMNS, ratios, [series.sign(ratio, verdict) for ratio, verdict in judgements if ratio])


def holds(found: Crossing, planted: float) -> bool:
    assert found.interval is not None
    low, high = found.interval
    return low <= planted <= high


def coverage(rng: random.Random, rounds: int, scatter: float, planted: float) -> Found:
    """Return what sweeps find of a crossover at that batch."""
    once = before = after = several = 0
    widths = []
    for _ in range(RUNS):
        ratios = duel(rng, rounds, scatter, rival(planted), SIZES)
        found = crossings(ratios)
        before += any(holds(one, planted) for one in found)
        more = {size for one in found for size in sizes_between(*one.bracket, whole=True)}
        ratios = sorted([*ratios, *duel(rng, rounds, scatter, rival(planted), sorted(more))], key=lambda one: one[0])
        refined = crossings(ratios)
        after += len(found) > 0 and any(holds(one, planted) for one in refined)
        once, several = once + bool(found), several + (len(refined) > 1)
        widths += [math.log2(one.interval[1] / one.interval[0]) for one in refined if one.interval]
    each = max(1, once)
    width = statistics.median(widths) if widths else math.nan
    return Found(once / RUNS, several / RUNS, before / each, after / each, width)


def equal(rng: random.Random, rounds: int, scatter: float) -> float:
    """Return how often two equal series are said to cross."""
    return sum(bool(crossings(duel(rng, rounds, scatter, A, SIZES))) for _ in range(RUNS)) / RUNS


def model(rng: random.Random, rounds: int, scatter: float) -> tuple[float, float, float]:
    """Return the coverage of overhead and cost per sample, and how often the model is said to fit."""
    hits, fits = [0, 0], 0
    for _ in range(RUNS):
        drifting = [(size, steps(rng, A, size, rounds, scatter)) for size in SIZES]
        at_mean = 1 + DRIFT * (rounds - 1) / rounds / 2  # what the drift adds to every size alike
        found = fit([(size, estimate(list(trials.values()))) for size, trials in drifting])
        assert found is not None
        for index, coefficient in enumerate((found.overhead, found.per_sample)):
            hits[index] += coefficient.low <= A[index] * at_mean <= coefficient.high
        fits += found.fits
    return hits[0] / RUNS, hits[1] / RUNS, fits / RUNS


def main() -> None:
    rng = random.Random(0)
    for scatter in (0.01, 0.03, 0.10):
        for rounds in (3, 5, 10):
            overhead, per_sample, fits = model(rng, rounds, scatter)
            print(
                f"trials scatter by {scatter:.0%}, {rounds:>2} rounds: equal series said to cross "
                f"{equal(rng, rounds, scatter):.1%}; cost model: overhead covered {overhead:.1%}, cost per sample "
                f"{per_sample:.1%}, said to fit {fits:.1%}"
            )
            for planted in PLANTED:
                found = coverage(rng, rounds, scatter, planted)
                print(
                    f"    crossover at {planted:>3g}: found {found.any:.1%}, more than one {found.several:.1%}, in its "
                    f"interval {found.before:.1%}, with two more sizes {found.after:.1%} "
                    f"({found.width:.2f} octaves wide)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
