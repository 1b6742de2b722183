from typing import Any

import numpy as np
import pytest

from kerasbench.native import batches, take


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_row_is_in_one_batch_and_the_last_may_be_partial(shuffle: bool) -> None:
    found = list(batches(10, 4, shuffle, "int32"))
    assert [len(rows) for rows in found] == [4, 4, 2]
    assert all(rows.dtype == np.int32 for rows in found)
    assert sorted(np.concatenate(found)) == list(range(10))


def test_the_order_is_the_given_one_unless_it_is_shuffled_anew_in_each_epoch() -> None:
    assert list(np.concatenate(list(batches(1000, 10, False, "int64")))) == list(range(1000))
    first, second = (np.concatenate(list(batches(1000, 10, True, "int64"))) for _ in range(2))
    assert list(first) != list(second) != list(range(1000))


def test_one_batch_of_all_rows_is_taken_as_it_lies() -> None:
    assert list(batches(10, 10, True, "int64")) == list(batches(10, 32, False, "int64")) == [None]


def test_a_batch_is_gathered_from_both_unless_it_is_all_there_is() -> None:
    x: Any = np.arange(10)
    y: Any = x % 3
    some_x, some_y = take(x, y, np.array([4, 1]), lambda rows, chosen: rows[chosen])
    assert (some_x.tolist(), some_y.tolist()) == ([4, 1], [1, 1])
    assert take(x, y, None, lambda rows, chosen: None) == (x, y)
