"""A feed by itself: whether it gives the rows that it was made of."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners.inputs import leaves
from kerasbench.runners.keras import KerasRunner
from kerasbench.runners.streams import as_array, epoch_of

LONGEST_S = 10.0  # an epoch of a slow feed is looked at for so long: what is not seen by then may be missing


def require_same_rows(runner: KerasRunner) -> None:
    """Raise TrialFailure unless an epoch of the feed has each of the rows once, in whatever order."""
    feed = runner.feed
    parts = feed.step(feed.train[: len(feed.train) // feed.batch * feed.batch])
    left, until_s = Counter(row_hashes(parts)), time.monotonic() + LONGEST_S
    known = frozenset(left)
    for number, batch in enumerate(epoch_of(runner.made_feed(parts)), start=1):
        for row in row_hashes(batch):
            if row not in known:
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


def _refusal(cause: str) -> TrialFailure:
    return TrialFailure(Failure(Code.PARITY, f"in an epoch of the feed, {cause}", "mend the feed, or leave it out"))
