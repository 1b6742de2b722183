"""Does a race choose one of the fastest, and how many processes does it start? By simulation.

    python validation/race.py [RACES]

Twelve candidates: four settings of each of three backends. The best is 0, 3, 10 or 30 % ahead of the next; the others
lie up to three times behind it. The logarithm of a block's ratio scatters as in committed results: between backends by
about 6.5 % (each backend's variance is drawn from a scaled inverse chi-square distribution), between settings of one
backend by 3 %, and its slices know it to 2.8 %. Counted are races whose choice is
within 5 % of the best, and the processes that were started, as a share of those of three blocks of all candidates.
"""

import math
import statistics
import sys
from dataclasses import dataclass

import numpy as np

from kerasbench.analysis.estimates import LogEstimate
from kerasbench.analysis.families import ASSUMED, TYPICAL_SCATTER, Family
from kerasbench.modes.fastest import MOST_ROUNDS, race

BACKENDS, SETTINGS = 3, 4
MARGIN, LOOKS = 0.05, MOST_ROUNDS
BETWEEN_BACKENDS, BETWEEN_SETTINGS = 0.065, 0.03  # standard deviations of a block's log ratio
OF_ONE_BACKEND = ASSUMED[Family.OPTIONS].blocks  # what a race assumes of these
DEGREES = 2.2  # of the distribution of a backend's scatter, as committed results have it (validation/moderated.py)
WITHIN = 0.028  # what a block's slices leave unknown
RACES = 1000


@dataclass
class Outcome:
    is_good: bool  # the choice is within 5 % of the best
    processes: int
    blocks: int


def run(ahead: float, rng: np.random.Generator) -> Outcome:
    """Run one race among candidates of which one is so much ahead."""
    times = np.exp(rng.uniform(math.log(1 + ahead), math.log(3), BACKENDS * SETTINGS))
    best, second = rng.choice(BACKENDS * SETTINGS, 2, replace=False)
    times[best], times[second] = 1.0, 1 + ahead
    left = list(range(len(times)))
    logs: dict[int, list[float]] = {index: [] for index in left}
    baseline = processes = 0
    deviations = BETWEEN_BACKENDS / math.sqrt(2) * np.sqrt(DEGREES / rng.chisquare(DEGREES, BACKENDS))
    leader = left[0]
    for _ in range(LOOKS):
        of_backend = rng.standard_normal(BACKENDS) * deviations
        measured = {*left, baseline}
        for index in measured:
            own = rng.normal(0, BETWEEN_SETTINGS / math.sqrt(2)) + rng.normal(0, WITHIN / math.sqrt(2))
            logs[index].append(math.log(times[index]) + of_backend[index // SETTINGS] + own)
        processes += len(measured)

        def compare(one: int, other: int) -> LogEstimate:
            blocks = [a - b for a, b in zip(logs[one], logs[other], strict=False)]
            of_one_backend = one // SETTINGS == other // SETTINGS
            return race.interval(blocks, math.hypot(WITHIN, OF_ONE_BACKEND if of_one_backend else TYPICAL_SCATTER))

        state = race.judge_race(left, compare, MARGIN)
        assert state is not None
        leader = race.simplest(
            state, left, compare, MARGIN, lambda candidate: (candidate != baseline, candidate % SETTINGS)
        )
        left = [candidate for candidate in left if candidate not in state.slower]
        if state.is_over:
            break
    return Outcome(bool(times[leader] <= 1 + MARGIN), processes, len(logs[baseline]))


def main() -> int:
    races = int(sys.argv[1]) if len(sys.argv) > 1 else RACES
    rng = np.random.default_rng(1)
    all_of_them = 3 * BACKENDS * SETTINGS
    print("| the best is ahead by | choice within 5 % of it | processes, of 3 blocks of all | blocks: median | most |")
    print("|---|---|---|---|---|")
    shares, rights = [], []
    for ahead in (0.0, 0.03, 0.1, 0.3):
        outcomes = [run(ahead, rng) for _ in range(races)]
        good = statistics.fmean(one.is_good for one in outcomes)
        share = statistics.fmean(one.processes for one in outcomes) / all_of_them
        blocks = [one.blocks for one in outcomes]
        rights.append(good)
        shares.append(share)
        print(f"| {ahead:.0%} | {good:.1%} | {share:.0%} | {statistics.median(blocks):g} | {max(blocks)} |")
    right, share = statistics.fmean(rights), statistics.fmean(shares)
    print(f"on average {right:.1%} and {share:.0%} (at least 95 %, at most half)")
    return int(right < 0.95 or share > 0.5)


if __name__ == "__main__":
    sys.exit(main())
