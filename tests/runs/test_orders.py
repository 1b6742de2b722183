from collections import Counter
from itertools import islice, pairwise

import pytest

from kerasbench.runs import schedule


@pytest.mark.parametrize("columns", range(1, 9))
def test_in_a_square_every_column_follows_every_other_and_has_every_place_equally_often(columns: int) -> None:
    square = schedule.williams(range(columns))
    assert all(sorted(order) == list(range(columns)) for order in square)
    neighbours = Counter(pair for order in square for pair in pairwise(order))
    places = Counter((place, column) for order in square for place, column in enumerate(order))
    assert len(neighbours) == columns * (columns - 1)
    assert len(set(neighbours.values())) <= 1 and len(set(places.values())) == 1


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
def test_every_column_has_one_turn_in_each_cycle_and_whole_squares_are_balanced(columns: int) -> None:
    length = len(schedule.williams(range(columns)))
    found = list(islice(schedule.draw_orders("7/1")(columns), 4 * length))
    assert all(sorted(order) == list(range(columns)) for order in found)
    neighbours = Counter(pair for order in found for pair in pairwise(order))
    assert len(set(neighbours.values())) <= 1


def test_orders_are_the_same_for_the_same_seed_and_others_for_another_and_for_the_next_stage() -> None:
    def first(seed: str, stages: int = 1) -> list[list[int]]:
        draw = schedule.draw_orders(seed)
        return [list(order) for _ in range(stages) for order in islice(draw(4), 8)]

    assert first("7/1") == first("7/1")
    assert first("7/1") != first("7/2")
    both = first("7/1", stages=2)
    assert both[:8] != both[8:]
