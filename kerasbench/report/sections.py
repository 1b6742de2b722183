"""A page as data: sections with their tables, notes and charts. Text here is plain; each renderer escapes it.

``markdown``, ``html`` and ``console`` draw pages; ``svg`` and ``console`` draw charts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kerasbench.text import NOTHING

if TYPE_CHECKING:  # ``list`` draws a table without what computes
    from kerasbench.analysis.estimates import Estimate

LINEAR_UP_TO = 20.0  # times the fastest: beyond it the short bars could not be told apart
STUB = 0.04  # of the width: what 1 has on a logarithmic scale, so that the fastest has a bar that can be seen
MOST_TICKS = 7
INTERVAL = "the 95 % interval"


@dataclass(frozen=True)
class Piece:
    """A piece of a bar. ``label`` is written on it where there is room."""

    name: str
    size: float
    colour: str
    label: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar: its pieces one after the other, its interval if there is one, and the text at its end."""

    name: str
    text: str
    pieces: Sequence[Piece] = ()
    backend: str = ""
    low: float | None = None
    high: float | None = None
    strong: bool = False
    opacity: float = 1.0

    @property
    def size(self) -> float:
        return sum(piece.size for piece in self.pieces)


@dataclass(frozen=True)
class BarGroup:
    """The bars of a row. ``end``: what would fill the whole width."""

    label: str
    bars: Sequence[Bar]
    end: float


@dataclass(frozen=True)
class BarChart:
    """Groups of bars below a caption. ``legend``: the names of pieces, with their colours.

    ``reference``: a size that all bars are compared with. Without one, the ends of the groups differ and no tick is
    drawn. ``logarithmic``: lengths are logarithms, from 1 on.
    """

    caption: str
    groups: Sequence[BarGroup]
    legend: Sequence[tuple[str, str]] = ()
    reference: float | None = None
    logarithmic: bool = False

    def caption_with(self, interval: str) -> str:
        """Return the caption, and where bars have intervals also what shows them, ``Line: the 95 % interval.``"""
        known = any(bar.low is not None for group in self.groups for bar in group.bars)
        return f"{self.caption} {interval}: {INTERVAL}." if known else self.caption

    def share(self, size: float, group: BarGroup) -> float:
        """Return where a size lies, from 0 to 1 of the width."""
        if not self.logarithmic:
            return min(1.0, max(0.0, size / group.end))
        if size <= 0:
            return 0.0
        return min(1.0, max(0.0, STUB + (1 - STUB) * math.log(size) / math.log(group.end)))

    @property
    def ticks(self) -> list[float]:
        """The sizes to write below the bars."""
        if self.reference is None or not self.groups:
            return []
        end = self.groups[0].end
        if self.logarithmic:
            return round_numbers(1, end)
        step = _round_step(end / MOST_TICKS)
        return [index * step for index in range(math.floor(end / step) + 1)]


def _round_step(least: float) -> float:
    """Return the next of 1, 2, 5, 10 ... that is not smaller."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * 0.999)


def round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 ... between two ends; where these are too many to be read, powers of ten alone."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    fine = [digit * power for power in powers for digit in (1, 2, 5) if low <= digit * power <= high]
    if len(fine) <= MOST_TICKS:
        return fine
    coarse = [power for power in powers if low <= power <= high]
    return coarse[:: math.ceil(len(coarse) / MOST_TICKS)]


@dataclass(frozen=True)
class Line:
    """One column's times in ms, by ascending size."""

    name: str
    colour: str
    points: "Sequence[tuple[float, Estimate]]"
    backend: str = ""
    opacity: float = 1.0


@dataclass(frozen=True)
class Crossover:
    """A size at which one line overtakes another, the ends of its interval, and what is written there."""

    at: float
    interval: tuple[float, float] | None
    text: str


LEAST_RATIO = 10.0  # of an axis' ends: a single value needs neighbours to be read off
LINEAR_ROOM, LEAST_ROOM = 0.1, 0.02  # of what is drawn, and of its largest value
LEAST_MARGIN = 1.25  # a factor between what is drawn and the end of the axis


@dataclass(frozen=True)
class Panel:
    """The lines of one workload over one axis of its size. ``what``: what they are of, where it has several panels."""

    label: str
    axis: str
    lines: Sequence[Line]
    crossovers: Sequence[Crossover] = ()
    unit: str = "ms"
    linear: bool = False  # both axes; else both are logarithmic
    names: Sequence[str] = ()  # of the sizes 1, 2, 3 ..., where these are no numbers
    what: str = ""

    @property
    def sizes(self) -> list[float]:
        return sorted({size for line in self.lines for size, _ in line.points})

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the axis of values begins and ends, with room around what is drawn."""
        found = [step for line in self.lines for _, step in line.points]
        ends = [end for step in found for end in (step.value, step.low, step.high) if end is not None]
        if self.linear:
            room = max(LINEAR_ROOM * (max(ends) - min(ends)), LEAST_ROOM * max(ends))
            return max(0.0, min(ends) - room), max(ends) + room
        margin = max(LEAST_MARGIN, math.sqrt(LEAST_RATIO * min(ends) / max(ends)))
        return min(ends) / margin, max(ends) * margin


def even_numbers(low: float, high: float) -> list[float]:
    """Return some of the multiples of a round number that lie between two ends."""
    step = _round_step((high - low) / MOST_TICKS)
    return [index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


@dataclass(frozen=True)
class LineChart:
    """Panels below a caption."""

    caption: str
    panels: Sequence[Panel]


Chart = BarChart | LineChart

LEVEL, WARNED = "≈", "⚠"


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    value: float | None = None  # to sort by
    strong: bool = False  # significantly the fastest
    level: bool = False  # not significantly slower than the fastest
    warned: bool = False  # the warnings say more
    failed: bool = False  # the text is a failure's code

    @property
    def shown(self) -> str:
        """The text with those marks that are characters."""
        return f"{f'{LEVEL} ' if self.level else ''}{self.text}{f' {WARNED}' if self.warned else ''}"

    @property
    def is_empty(self) -> bool:
        """Whether there is no number because there is none to have."""
        return self.failed or self.text == NOTHING


EMPTY = Cell(NOTHING)


@dataclass(frozen=True)
class Table:
    """Names of columns, and rows of as many cells."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def is_numeric(self, index: int) -> bool:
        """Tell whether a column holds numbers, but for what is empty."""
        cells = [row[index] for row in self.rows if not row[index].is_empty]
        return bool(cells) and all(cell.value is not None for cell in cells)


@dataclass(frozen=True)
class Section:
    """A part of a page, drawn in the order of the fields."""

    title: str
    intro: Sequence[str] = ()
    table: Table | None = None
    lines: Sequence[str] = ()  # as a list
    notes: Sequence[str] = ()
    parts: "Sequence[Section]" = ()
    chart: Chart | None = None  # stands before the table, or after the lines if there is none
    folded: bool = False  # details that a reader opens, on an HTML page


@dataclass(frozen=True)
class Page:
    """A title and its sections."""

    title: str
    sections: Sequence[Section]


def texts(*words: str) -> list[Cell]:
    """Return a cell for each text."""
    return [Cell(word) for word in words]


def number(value: int) -> Cell:
    """Return the cell of a whole number, thousands separated."""
    return Cell(f"{value:,}", float(value))
