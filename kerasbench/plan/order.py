"""In which order cells are measured, and which of them make a series (pure)."""

import random
from collections.abc import Sequence

from kerasbench.plan.cells import Cell, Shared


def order(cells: Sequence[Cell], seed: int, round_index: int) -> list[Cell]:
    """Return the cells in this round's random order: scenarios permuted, then the cells inside each.

    Cells of one scenario, and in a sweep those of one size, stay together, because they are what is compared: drift
    between them must be small.
    """
    rng = random.Random(f"{seed}/{round_index}")
    groups: dict[Shared, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.row, []).append(cell)
    together = list(groups.values())
    rng.shuffle(together)
    return [cell for group in together for cell in rng.sample(group, len(group))]


def larger_in_series(cell: Cell, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that differ from a cell of a sweep in nothing but a larger size."""
    return [
        one
        for one in cells
        if one.options.size is not None
        and cell.options.size is not None
        and one.options.size.exceeds(cell.options.size)
        and (*one.key[:4], one.options.terms) == (*cell.key[:4], cell.options.terms)
    ]
