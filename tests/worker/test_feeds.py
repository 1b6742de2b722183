"""Whether a feed gives the rows that it was made of, with planted ones; no framework is here."""

import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.keras import KerasRunner
from kerasbench.scenario import Workload
from kerasbench.worker import feeds
from kerasbench.worker.feeds import Batches, require_same_rows, row_hashes

Given = list[tuple[Any, ...]]


def runner(change: Callable[[Given], Given], rows: Rows | None = None) -> KerasRunner:
    """What of one is asked: its rows, and batches that were made of them in another order."""
    rows = rows or Rows(np.arange(64, dtype=np.float32).reshape(32, 2), np.arange(32) % 3)
    feed = Feed(Workload(name="default", train=32, batch=8, epochs=1), rows, rows[:0], rows[:0])

    def made_feed(rows: Rows) -> Given:
        parts = feed.step(rows)
        order = np.random.default_rng(0).permutation(32).reshape(4, 8)
        return change([tuple(np.array(part)[chosen] for part in parts) for chosen in order])

    return cast("KerasRunner", SimpleNamespace(feed=feed, made_feed=made_feed))


def test_a_feed_may_give_its_rows_in_another_order() -> None:
    require_same_rows(runner(list))


def test_rows_without_targets_and_with_weights_are_compared_too() -> None:
    x: Any = np.arange(32, dtype=np.int32).reshape(32, 1)
    require_same_rows(runner(list, Rows(x)))
    require_same_rows(runner(list, Rows(x, x[:, 0], x[:, 0].astype("float32"))))


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda batches: [*batches, batches[0]], "batch 5 has a row more often than the data: it repeats rows"),
        (lambda batches: batches[:-1], "8 of 32 rows are in no batch: it drops rows"),
        (lambda batches: [], "32 of 32 rows are in no batch: it drops rows"),
        (lambda batches: [*batches[:2], (batches[2][0] + 1, batches[2][1])], "batch 3 has a row that is none of"),
        (lambda batches: [(batches[0][0], batches[0][1][::-1]), *batches[1:]], "batch 1 has a row that is none of"),
    ],
)
def test_a_feed_that_repeats_drops_or_changes_rows_is_refused(change: Callable[[Given], Given], cause: str) -> None:
    with pytest.raises(TrialFailure) as raised:
        require_same_rows(runner(change))
    assert raised.value.failure.code is Code.PARITY and cause in raised.value.failure.cause


def test_of_a_slow_feed_what_came_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LONGEST_S", -1.0)
    require_same_rows(runner(lambda batches: batches[:1]))


def test_equal_rows_have_equal_hashes_whatever_holds_them() -> None:
    x: Any = np.arange(6, dtype=np.float32).reshape(3, 2)
    whole = list(row_hashes((x, {"b": x, "a": x[:, 0]})))
    assert list(row_hashes([x.tolist()])) != whole  # of another type
    assert list(row_hashes([x[::-1], {"a": x[::-1, 0], "b": x[::-1]}])) == whole[::-1]


def test_a_slice_of_batches_lies_behind_what_was_put_by_and_in_one_epoch() -> None:
    taken = list[tuple[int, int]]()

    def epochs() -> Callable[[], Iterator[int]]:
        numbers = itertools.count()

        def epoch() -> Iterator[int]:
            number = next(numbers)
            for batch in range(10):
                taken.append((number, batch))
                yield batch

        return epoch

    batches, slices = Batches(epochs(), 10), []
    for _ in range(3):
        batches.discard(queued=2, count=4)
        taken.clear()
        batches.take(4)
        slices.append(list(taken))
    # The first batch starts an epoch, two are discarded, and what is left of an epoch has no room for six more.
    assert slices == [[(number, batch) for batch in range(3, 7)] for number in range(3)]
