"""Which rows a batch takes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def batches(samples: int, batch: int, shuffle: bool, dtype: str) -> Iterator[Any]:
    """Yield the rows of each batch; None where one batch takes all of them, in whatever order."""
    if batch >= samples:
        yield None
        return
    order: Any = np.arange(samples, dtype=dtype)
    if shuffle:
        np.random.default_rng().shuffle(order)
    for begin in range(0, samples, batch):
        yield order[begin : begin + batch]


def take(x: Any, y: Any, rows: Any, gather: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return a batch's inputs and targets; ``rows`` as ``batches`` has them, ``gather`` is the framework's."""
    return (x, y) if rows is None else (gather(x, rows), gather(y, rows))
