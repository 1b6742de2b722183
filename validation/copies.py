"""How often are equal columns called different? One case as five columns, by the rule that a run follows.

    python validation/copies.py mnist_dense              up to twelve blocks on each backend, as a run at default effort
    python validation/copies.py mnist_dense --blocks 3    as few as have an interval

Five columns are ten comparisons. They are judged twice: after three blocks, and where the rule of a run
(runs/stopping.py) ends the row. Each is judged by itself: on a page, which holds its false discoveries to 5 %, it is
harder still to be called different.
"""

import argparse
import itertools

from columns import Column, chosen, growing

from kerasbench import backends
from kerasbench.analysis.cases import STEADY, Measured
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, MINIMAL_EFFECT, LogEstimate, Verdict, judge
from kerasbench.analysis.ratios import ratio_of
from kerasbench.host.lock import machine_lock
from kerasbench.plan.catalog import Selected
from kerasbench.results.run import MAX_ROUNDS, Effort
from kerasbench.runs import stopping

COPIES = 5


def study(selected: Selected, backend: str, most: int) -> None:
    columns = [Column(f"{backend} {number}", selected, backend) for number in range(COPIES)]
    effort, looks = Effort(max_rounds=most), list[stopping.Look]()
    for blocks, found in enumerate(growing(columns), start=1):
        ratios = [compared(one, other) for one, other in itertools.combinations(found.values(), 2)]
        looks.append({(place,): stopping.known_of(one, effort, MINIMAL_EFFECT) for place, one in enumerate(ratios)})
        is_last = stopping.stop_reason(effort, looks) is not None
        if is_last or blocks == MIN_TRIALS_FOR_INTERVAL:
            say(selected, backend, blocks, ratios)
        if is_last:
            return


def compared(one: Measured, other: Measured) -> LogEstimate:
    ratio = ratio_of(one, other, STEADY, ())
    assert ratio is not None
    return ratio


def say(selected: Selected, backend: str, blocks: int, ratios: list[LogEstimate]) -> None:
    called = [judge([ratio])[0].verdict in (Verdict.FASTER, Verdict.SLOWER) for ratio in ratios]
    widths = sorted(one.half_width or 0.0 for one in ratios)
    outside = sum(not (one.low or 0.0) <= 1 <= (one.high or 0.0) for one in ratios)
    values = [one.value for one in ratios]
    print(
        f"{selected.label} {backend:<10} {blocks:2} blocks: {sum(called)} of {len(called)} called different, {outside} "
        f"intervals without 1; ratios {min(values):.3f} to {max(values):.3f}, ±{widths[0]:.1%} to ±{widths[-1]:.1%}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("--blocks", type=int, default=MAX_ROUNDS, help="at most (default: %(default)s)")
    parser.add_argument("--backend", default=",".join(backends.names()))
    asked = parser.parse_args()
    (first, *_) = chosen(asked.scenario)
    with machine_lock():
        for name in asked.backend.split(","):
            study(first, name, asked.blocks)
