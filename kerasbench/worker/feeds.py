"""A feed by itself: whether it gives the rows that it was made of, and how fast its batches come."""

import dataclasses
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kerasbench.protocol.measurement import FeedAlone, Slice, Turn
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners.inputs import leaves
from kerasbench.runners.keras import KerasRunner
from kerasbench.runners.streams import as_array, epoch_of
from kerasbench.runners.trainer import Trainer
from kerasbench.worker.clock import Ask, Pace, measure_slices
from kerasbench.worker.parts import fit_slice
from kerasbench.worker.train import LEAST_QUEUES

LONGEST_S = 10.0  # an epoch of a slow feed is looked at for so long: what is not seen by then may be missing


def require_same_rows(runner: KerasRunner) -> None:
    """Raise TrialFailure unless an epoch of the feed has each of the rows once, in whatever order."""
    feed = runner.feed
    rows = feed.train[: len(feed.train) // feed.batch * feed.batch]
    parts = feed.step(rows)
    left, until_s = Counter(row_hashes(parts)), time.monotonic() + LONGEST_S
    originals = frozenset(left)
    for number, batch in enumerate(epoch_of(runner.made_feed(rows)), start=1):
        for row in row_hashes(batch):
            if row not in originals:
                raise _refusal(f"batch {number} has a row that is none of those it was given: it changes rows")
            left[row] -= 1
            if left[row] < 0:
                raise _refusal(f"batch {number} has a row more often than the data: it repeats rows")
        if time.monotonic() > until_s:
            return
    if missing := left.total():
        raise _refusal(f"{missing:,} of {sum(1 for _ in row_hashes(parts)):,} rows are in no batch: it drops rows")


def row_hashes(parts: Any) -> Iterator[int]:
    """Return a number for each row of structures of arrays, by its bytes."""
    arrays = [np.ascontiguousarray(as_array(leaf)) for _, leaf in leaves(parts)]
    texts = [array.reshape(len(array), -1).view(np.uint8) for array in arrays]
    whole = np.concatenate(texts, axis=1) if len(texts) > 1 else texts[0]
    return map(hash, map(bytes, whole))


def measure_alone(runner: Trainer, pace: Pace, ask: Ask) -> FeedAlone | None:
    """Measure slices of as many batches as the pace has steps, which a loop takes as Keras would, and drops.

    None: its batches cannot be had without a `fit`.
    """
    feed, count = runner.feed, pace.plan.steps_per_slice or 1
    steps = LEAST_QUEUES * (runner.queued_batches + count + 1)
    epoch = runner.epochs(feed.train.repeated(steps * feed.batch))
    if epoch is None:
        return None
    batches = Batches(epoch, steps)
    batch = runner.place(feed.stepped(feed.first_batch))
    ready_ns: list[float] = []

    def measure(turn: Turn) -> Slice:
        ready = runner.backend.ready(batch, steps)
        ready_ns.append(fit_slice(runner, ready, steps, dataclasses.replace(pace, queued=0), turn).unit_ns)
        batches.discard(runner.queued_batches, count)
        began = pace.meter.read()
        batches.take(count)
        return pace.meter.with_card(pace.meter.read().since(began, count, turn))

    measure_slices(ask, measure)
    return FeedAlone(ready_ns)


class Batches:
    """Of one epoch after another, each of so many batches."""

    def __init__(self, epoch: Callable[[], Iterator[Any]], steps: int) -> None:
        self._epoch, self._steps, self._left = epoch, steps, 0
        self._batches: Iterator[Any] = iter(())

    def discard(self, queued: int, count: int) -> None:
        """Use up what was put by, in an epoch that then has so many more; its first batch, which starts it, is gone."""
        if self._left < queued + count:
            for _ in self._batches:  # its workers end with it
                pass
            self._batches, self._left = self._epoch(), self._steps
            self.take(1)
        self.take(queued)

    def take(self, count: int) -> None:
        for _ in itertools.islice(self._batches, count):
            pass
        self._left -= count


def _refusal(cause: str) -> TrialFailure:
    return TrialFailure(Failure(Code.PARITY, f"in an epoch of the feed, {cause}", "mend the feed, or leave it out"))
