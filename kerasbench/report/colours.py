"""One colour for each backend, the same in a terminal, a PNG and a page, on white and on black."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from kerasbench.results.keys import Column

# Okabe and Ito's palette, without black and yellow: people who are colour-blind can tell these colours apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
KNOWN = ("jax", "tensorflow", "torch")
PALER, PALEST = 0.55, 0.25  # another device or option of a backend has its colour, each paler than the one before


class Look(NamedTuple):
    """The place of a column's backend in COLOURS, and which column of that colour it is."""

    hue: int
    turn: int

    @property
    def colour(self) -> str:
        return COLOURS[self.hue]

    @property
    def opacity(self) -> float:
        return max(PALEST, PALER**self.turn)


def looks(columns: Iterable[Column]) -> dict[Column, Look]:
    """Return how each column looks beside the others."""
    unique = list(dict.fromkeys(columns))
    hues = _hues({backend for backend, _, _ in unique})
    seen: Counter[int] = Counter()
    found: dict[Column, Look] = {}
    for column in unique:
        hue = hues[column[0]]
        found[column] = Look(hue, seen[hue])
        seen[hue] += 1
    return found


def _hues(backends: set[str]) -> dict[str, int]:
    others = sorted(backends - set(KNOWN))
    rest = len(COLOURS) - len(KNOWN)
    return {one: index for index, one in enumerate(KNOWN)} | {
        one: len(KNOWN) + index % rest for index, one in enumerate(others)
    }
