"""Does a column take the same time in turns as when it runs on? One process measured both ways, again and again.

    python validation/stretches.py mnist_dense 2            two blocks on each backend

Each backend is a column of a block with the two others. Its slices in turn are compared with stretches of some 2 s in
which it has one turn after another and nobody else has any; of these the first three slices, which still follow a
stranger, are left out. The two alternate every few cycles, so that drift hits both alike. Printed, after each block, is
the ratio of the medians of neighbouring groups, of all blocks by then.
"""

import random
import statistics
import sys
from collections.abc import Iterator, Sequence

import medians
from columns import STEPS, Column, chosen, launched

from kerasbench import backends
from kerasbench.host.lock import machine_lock
from kerasbench.processes.process import Limits
from kerasbench.protocol.measurement import Slice

IN_TURN = 6  # cycles before a stretch
STRETCH = 16  # slices of 0.1 s and what each discards: about 2 s
LED_IN = 3
GROUPS = 32
LIMITS = Limits(900.0, "this benchmark's limit of 900 s")  # of a column's own time: some 3 s a group


def main(pattern: str, count: int) -> None:
    (selected, *_) = chosen(pattern)
    names = backends.names()
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for index in range(count):
        for subject in range(len(names)):
            columns = [Column(name, selected, name) for name in names]
            found = ratios[names[subject]]
            found += of_one(columns, subject, random.Random(f"{index}/{subject}"))
            say(selected.label, names[subject], sorted(found))


def say(label: str, name: str, found: Sequence[float]) -> None:
    low, high = medians.interval(found)
    middle = statistics.median(found)
    print(f"{label} {name}: in turn / unbroken {middle:.4f} [{low:.4f}, {high:.4f}], {len(found)} groups", flush=True)


def of_one(columns: Sequence[Column], subject: int, rng: random.Random) -> list[float]:
    """Hold a block in which one column has stretches; return in turn over unbroken, for each group."""

    def orders(count: int) -> Iterator[list[int]]:
        while True:
            for _ in range(IN_TURN):
                yield rng.sample(range(count), count)
            yield [subject] * STRETCH

    def enough(stage: str, slices: Sequence[Sequence[Slice]]) -> bool:
        return len(slices[subject]) >= GROUPS * (IN_TURN + STRETCH) + IN_TURN

    protocols = dict.fromkeys([column.name for column in columns], STEPS)
    _, measured = launched(columns, protocols, orders, 1, enough, LIMITS)[subject]
    steps = [slice_.unit_ns for slice_ in measured.slices]
    found = []
    for start in range(0, GROUPS * (IN_TURN + STRETCH), IN_TURN + STRETCH):
        before, unbroken = steps[start : start + IN_TURN], steps[start + IN_TURN : start + IN_TURN + STRETCH]
        after = steps[start + IN_TURN + STRETCH : start + 2 * IN_TURN + STRETCH]
        found.append(statistics.median([*before, *after]) / statistics.median(unbroken[LED_IN:]))
    return found


if __name__ == "__main__":
    with machine_lock():
        main(sys.argv[1], int(sys.argv[2]))
