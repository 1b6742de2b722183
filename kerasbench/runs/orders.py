"""In which order the columns of a bout take turns (pure): every column once a cycle, neighbours balanced."""

import random
from collections.abc import Callable, Iterator, Sequence

Orders = Callable[[int], Iterator[Sequence[int]]]


def drawn(seed: str) -> Orders:
    """Return what draws a stage's orders for so many columns, endlessly: another sequence each time it is asked."""
    rng = random.Random(seed)

    def orders(columns: int) -> Iterator[Sequence[int]]:
        while True:
            yield from rng.sample(found := williams(rng.sample(range(columns), columns)), len(found))

    return orders


def williams(columns: Sequence[int]) -> list[list[int]]:
    """Return orders in which every column follows every other equally often, and has every position equally often.

    As many as there are columns, twice as many where those are odd (E. J. Williams, "Experimental designs balanced for
    the estimation of residual effects of treatments", Australian Journal of Scientific Research 2 (1949)).
    """
    count = len(columns)
    if count == 1:
        return [list(columns)]
    zigzag = [(step + 1) // 2 if step % 2 else (count - step // 2) % count for step in range(count)]
    square = [[columns[(place + shift) % count] for place in zigzag] for shift in range(count)]
    return square if count % 2 == 0 else [*square, *(order[::-1] for order in square)]
