"""Are the verdicts right? The same case as two columns, and two whose steps are prolonged by exactly 5 % and 10 %.

    python validation/power.py 12                      twelve blocks on each backend
    python validation/power.py 12 --backend torch      on one of them

All four are columns of the same blocks. Each comparison of the verdicts is made of blocks that are drawn again from
those that were measured, with replacement, 2,000 times (a bootstrap over blocks): how often is each pair called
different at so many blocks? What a plan says that it will see (``duration.minimum_detectable_effect``) is printed
beside it.
"""

import argparse
import math
import random
import statistics
from pathlib import Path

from columns import Column, blocks, by_block, chosen

from kerasbench import backends
from kerasbench.analysis.estimates import MINIMAL_EFFECT, Verdict, estimate, judge
from kerasbench.host.lock import machine_lock
from kerasbench.plan.duration import RunScatter, minimum_detectable_effect

SLOWED = Path(__file__).with_name("slowed.py")
VARIANTS = ("same_1", "same_2", "slow_5", "slow_10")
PAIRS = (("same_1", "same_2"), ("slow_5", "same_1"), ("slow_5", "same_2"), ("slow_10", "same_1"), ("slow_10", "same_2"))
DRAWS = 2_000


def main(count: int, names: list[str]) -> None:
    workloads = {one.workload.name: one for one in chosen(str(SLOWED))}
    for backend in names:
        found = blocks([Column(name, workloads[name], backend) for name in VARIANTS], count)
        for slower, faster in PAIRS:
            ratios = [one.value for one in by_block(found[slower], found[faster])]
            say(backend, f"{slower} / {faster}", ratios)


def say(backend: str, pair: str, ratios: list[float]) -> None:
    rng, whole = random.Random(0), estimate(ratios)
    assert whole.half_width is not None
    called = {
        count: statistics.fmean(
            judge([estimate(rng.choices(ratios, k=count))])[0].verdict is Verdict.SLOWER for _ in range(DRAWS)
        )
        for count in (3, 6, 12)
    }
    scatter = statistics.stdev(map(math.log, ratios))
    seen = ", ".join(f"{count} blocks {share:.0%}" for count, share in called.items())
    print(
        f"{backend:<10} {pair:<16} {whole.value:.3f} ±{whole.half_width:.1%}, blocks scatter by {scatter:.1%}; called "
        f"slower in {seen}; 12 blocks see {minimum_detectable_effect(12, RunScatter(scatter), MINIMAL_EFFECT):.1%}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", type=int)
    parser.add_argument("--backend", default=",".join(backends.built_in()))
    asked = parser.parse_args()
    with machine_lock():
        main(asked.blocks, asked.backend.split(","))
