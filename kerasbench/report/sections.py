"""Bars as data: groups of bars, what each is made of, and where it ends. Text here is plain; a renderer escapes it.

``chart_html``, ``chart_text`` and ``chart_plot`` draw them.

A page as data: its sections with their tables, notes and pictures. Text here is plain; each renderer escapes it.

``markdown``, ``html`` and ``console`` draw pages, each with a function ``rendered(page)`` that returns text.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LINEAR_UP_TO = 20.0  # times the fastest: beyond it the short bars could not be told apart
STUB = 0.04  # of the width: what 1 has on a logarithmic scale, so that the fastest has a bar that can be seen
MOST_TICKS = 7


@dataclass(frozen=True)
class Piece:
    """A piece of a bar. ``label`` stands in it where there is room."""

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
class Group:
    """The bars of a row. ``end``: what would fill the whole width."""

    label: str
    bars: Sequence[Bar]
    end: float


@dataclass(frozen=True)
class Chart:
    """Groups of bars below a caption. ``legend``: the names of pieces, with their colours.

    ``reference``: a size that all bars are compared with. Without one, the ends of the groups differ and no tick is
    drawn. ``logarithmic``: lengths are logarithms, from 1 on.
    """

    caption: str
    groups: Sequence[Group]
    legend: Sequence[tuple[str, str]] = ()
    reference: float | None = None
    logarithmic: bool = False

    def told(self, interval: str) -> str:
        """Return the caption, and where there is an interval also what shows it, ``Line: the 95 % interval.``"""
        known = any(bar.low is not None for group in self.groups for bar in group.bars)
        return f"{self.caption} {interval}: the 95 % interval." if known else self.caption

    def share(self, size: float, group: Group) -> float:
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
        if not self.logarithmic:
            step = _round_step(end / MOST_TICKS)
            return [index * step for index in range(math.floor(end / step) + 1)]
        powers = range(math.floor(math.log10(end)) + 1)
        fine = [tick for power in powers for digit in (1, 2, 5) if (tick := digit * 10.0**power) <= end]
        return fine if len(fine) <= MOST_TICKS else [10.0**power for power in powers]


def _round_step(least: float) -> float:
    """Return the next of 1, 2, 5, 10 ... that is not smaller."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * 0.999)


NOTHING = "–"
LEVEL, WARNED = "≈", "⚠"


@dataclass(frozen=True)
class Cell:
    """One cell: its text, its number to sort by, and its marks.

    ``strong``: significantly the fastest. ``level``: not told from the fastest. ``warned``: see the warnings.
    ``failed``: the text is a failure's code.
    """

    text: str
    value: float | None = None
    strong: bool = False
    level: bool = False
    warned: bool = False
    failed: bool = False

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
    """A part of a page, drawn in this order: title, intro, table, lines as a list, notes, parts.

    ``chart``: its bars, on a terminal and on an HTML page; they stand before the table, or after the lines where there
    is none. ``picture`` names a figure that shows the same. ``folded``: details that a reader opens, where that is
    possible.
    """

    title: str
    intro: Sequence[str] = ()
    table: Table | None = None
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    parts: "Sequence[Section]" = ()
    picture: str = ""
    chart: Chart | None = None
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A title and its sections."""

    title: str
    sections: Sequence[Section]


def page(title: str, sections: Iterable[Section | None]) -> Page:
    """Return a page of those sections that have something to say."""
    return Page(title, [section for section in sections if section is not None])


def texts(*words: str) -> list[Cell]:
    """Return a cell for each text."""
    return [Cell(one) for one in words]


def number(value: int) -> Cell:
    """Return the cell of a whole number, thousands separated."""
    return Cell(f"{value:,}", float(value))
