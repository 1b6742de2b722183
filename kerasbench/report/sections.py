"""A page as data: its sections with their tables, notes and pictures. Text here is plain; each renderer escapes it.

``markdown``, ``html`` and ``console`` draw pages, each with a function ``rendered(page)`` that returns text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kerasbench.report.chart import Chart

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
