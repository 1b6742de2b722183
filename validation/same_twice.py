"""The same case as two columns: by how much do blocks let them differ, and trials that run one after the other?

    python validation/same_twice.py mnist_dense 16            sixteen blocks on each backend, and pairs in sequence
    python validation/same_twice.py mnist_dense 16 --load     meanwhile something takes one core for one second in two

The standard deviation, over blocks, of the logarithm of the ratio of two columns that are the same: 0 would be perfect.
``within`` is the part that the slices of a block explain, ``between`` what is left: by how much processes differ.
Each block has both columns of a backend; the sequential pairs of 2 s each run right before and after it, so that both
ways meet the same hour.
"""

import argparse
import dataclasses
import math
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from columns import STEPS, Column, blocks, by_block, chosen, spread, step_ms
from disturbers import disturbed, spin

from kerasbench import backends
from kerasbench.analysis.cases import STEADY, Measured
from kerasbench.analysis.estimates import Verdict, judge
from kerasbench.analysis.ratios import estimate_ratio
from kerasbench.host.lock import machine_lock
from kerasbench.plan.catalog import Selected

SEQUENTIAL = dataclasses.replace(STEPS, slices_max_ns=2_000_000_000)


def main(pattern: str, count: int, names: list[str], load: bool) -> None:
    (selected, *_) = chosen(pattern)
    print(f"{selected.label}, {count} blocks{', under load' if load else ''}")
    with loaded() if load else machine_lock():
        for name in names:
            study(selected, name, count)


def study(selected: Selected, backend: str, count: int) -> None:
    columns = [Column(f"{backend} {which}", selected, backend) for which in ("a", "b")]
    sequential = list[float]()

    def one_after_the_other() -> None:
        first, second = (step_ms(column, SEQUENTIAL) for column in columns)
        sequential.append(math.log(first / second))

    a, b = blocks(columns, count, before=one_after_the_other).values()
    say(backend, a, b, sequential)


def say(backend: str, a: Measured, b: Measured, sequential: list[float]) -> None:
    parts, ratio = spread(a, b, STEADY), estimate_ratio(a, b, STEADY)
    assert parts is not None and ratio is not None and ratio.half_width is not None
    each = [one.log_centre for one in by_block(a, b)]
    slices = statistics.median(len(measured.slices) for _, measured in a.trials)
    print(
        f"  {backend:<10} sd of log ratio {statistics.stdev(each):.3f} (within {parts[0]:.3f}, between "
        f"{parts[1]:.3f}; {slices:.0f} slices), in sequence {statistics.stdev(sequential):.3f}; ratio "
        f"{ratio.value:.3f} ±{ratio.half_width:.1%}; blocks: {' '.join(f'{one:+.3f}' for one in each)}",
        flush=True,
    )
    thirds = [estimate_ratio(few(a, start), few(b, start), STEADY) for start in range(0, len(a.trials) - 2, 3)]
    called = [judge([ratio])[0].verdict in (Verdict.FASTER, Verdict.SLOWER) for ratio in thirds]
    print(f"  {'':<10} of {len(called)} comparisons of three blocks {sum(called)} called different", flush=True)


def few(case: Measured, start: int) -> Measured:
    return Measured(case.trials[start : start + 3], None)


@contextmanager
def loaded() -> Iterator[None]:
    """Keep one core busy for one second in two."""
    with machine_lock(), disturbed(1, one_second_in_two):
        yield


def one_second_in_two() -> None:
    spin(1)
    time.sleep(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("blocks", type=int)
    parser.add_argument("--backend", default=",".join(backends.built_in()))
    parser.add_argument("--load", action="store_true")
    asked = parser.parse_args()
    main(asked.scenario, asked.blocks, asked.backend.split(","), asked.load)
