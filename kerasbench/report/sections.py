"""A page as data: sections with their tables, notes and charts. Text here is plain; each renderer escapes it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kerasbench.text import NOTHING

if TYPE_CHECKING:  # ``list`` draws a table without what computes
    from kerasbench.analysis.estimates import Estimate

MOST_TICKS = 7
TORN = 8.0  # times the fastest: a longer bar is torn, and its number says how long it is
LEAST_RATIO = 10.0  # of an axis' ends: a single value needs neighbours to be read off
LINEAR_ROOM, LEAST_ROOM = 0.1, 0.02  # of what is drawn, and of its largest value
LEAST_MARGIN = 1.25  # a factor between what is drawn and the end of the axis


@dataclass(frozen=True)
class Typed:
    text: str  # that a reader types


@dataclass(frozen=True)
class Strong:
    text: str


Inline = str | Typed | Strong
Words = str | Sequence[Inline]  # a sentence or a paragraph


def inlines(words: Words) -> Sequence[Inline]:
    return [words] if isinstance(words, str) else words


class SeriesStyle(NamedTuple):
    colour: str
    shape: str = "square"  # or circle, triangle, diamond: tells apart where there is no colour
    opacity: float = 1.0


class Piece(NamedTuple):
    size: float
    look: SeriesStyle
    label: str = ""  # is written on it


class Bar(NamedTuple):
    """Pieces one after the other, an interval if there is one, and the text at the end; or a dot where the bar ends."""

    name: str
    text: str
    pieces: Sequence[Piece] = ()
    backend: str = ""
    low: float | None = None
    high: float | None = None
    strong: bool = False
    tip: str = ""  # what hovering shows

    @property
    def size(self) -> float:
        return sum(piece.size for piece in self.pieces)


Group = tuple[str, Sequence[Bar]]  # a workload, and its bars


class BarChart(NamedTuple):
    """Groups of bars from zero on a linear scale. ``legend``: the names of pieces, with their colours."""

    title: str
    caption: str
    groups: Sequence[Group]
    legend: Sequence[tuple[str, str]] = ()
    end: float | None = None  # of the scale: a longer bar is torn; None: the longest of each group fills the width


class DotChart(NamedTuple):
    """A line for each workload with a dot for each configuration, on a logarithmic axis from 1; by kinds of models."""

    title: str
    caption: str
    kinds: Sequence[tuple[str, Sequence[Group]]]
    names: Sequence[tuple[str, SeriesStyle]]  # of the configurations: the legend

    @property
    def end(self) -> float:
        """Where the axis ends: an interval that is much wider than the dots are apart is cut."""
        dots = [dot for _, groups in self.kinds for _, bars in groups for dot in bars]
        farthest = max(dot.size for dot in dots)
        return max(2.0, min(max(dot.high or dot.size for dot in dots), 1.5 * farthest) * 1.1)


def round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 ... between two ends; where these are too many to be read, powers of ten alone."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    fine = [digit * power for power in powers for digit in (1, 2, 5) if low <= digit * power <= high]
    if len(fine) <= MOST_TICKS:
        return fine
    coarse = [power for power in powers if low <= power <= high]
    return coarse[:: math.ceil(len(coarse) / MOST_TICKS)]


class Line(NamedTuple):
    name: str  # of a configuration
    look: SeriesStyle
    points: "Sequence[tuple[float, Estimate]]"
    backend: str = ""


class Crossover(NamedTuple):
    at: float
    interval: tuple[float, float] | None
    text: str


class Panel(NamedTuple):
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
        values = [value for line in self.lines for _, value in line.points]
        ends = [end for value in values for end in (value.value, value.low, value.high) if end is not None]
        if self.linear:
            room = max(LINEAR_ROOM * (max(ends) - min(ends)), LEAST_ROOM * max(ends))
            return max(0.0, min(ends) - room), max(ends) + room
        margin = max(LEAST_MARGIN, math.sqrt(LEAST_RATIO * min(ends) / max(ends)))
        return min(ends) / margin, max(ends) * margin


def even_numbers(low: float, high: float) -> list[float]:
    """Return some of the multiples of a round number that lie between two ends."""
    least = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * 0.999)
    return [index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


class LineChart(NamedTuple):
    title: str
    caption: str
    panels: Sequence[Panel]


Chart = BarChart | DotChart | LineChart

SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def mark(numbers: Sequence[int]) -> str:
    """Return what stands at a number that warnings are about: ``⚠¹ ²``."""
    return f"⚠{' '.join(str(number) for number in numbers)}".translate(SUPERSCRIPT) if numbers else ""


class Cell(NamedTuple):
    text: str
    value: float | None = None  # to sort by
    strong: bool = False  # clearly the fastest
    marks: Sequence[int] = ()  # numbers of the warnings that are about it
    failed: bool = False  # the text is a failure's code
    ratio: float | None = None  # to the fastest of its row: the HTML page tints by it

    def marked(self, text: str) -> str:
        return " ".join(filter(None, [text, mark(self.marks)]))


EMPTY = Cell(NOTHING)


class Table(NamedTuple):
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def is_numeric(self, index: int) -> bool:
        cells = (row[index] for row in self.rows)
        values = [cell.value for cell in cells if not cell.failed and cell.text != NOTHING]
        return bool(values) and None not in values


class Section(NamedTuple):
    """A part of a page, drawn in the order of the fields."""

    title: str  # empty: what stands below the title of the page
    intro: Sequence[Words] = ()
    code: Sequence[str] = ()  # lines to copy
    chart: Chart | None = None
    table: Table | None = None
    notes: Sequence[Words] = ()  # paragraphs below the table
    lines: Sequence[Words] = ()  # as a list
    end: Words = ""
    folded: bool = False  # details that a reader opens


class Page(NamedTuple):
    title: str  # the finding
    sections: Sequence[Section]

    @property
    def chart(self) -> Chart | None:
        return next((section.chart for section in self.sections if section.chart is not None), None)

    @property
    def unfolded(self) -> "Page":
        return Page(self.title, [section for section in self.sections if not section.folded])


def texts(*words: str) -> list[Cell]:
    return [Cell(word) for word in words]


def number(value: int) -> Cell:
    return Cell(f"{value:,}", float(value))
