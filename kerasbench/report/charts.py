"""One colour for each backend, the same in a terminal, a PNG and a page, on white and on black.

The picture of the answer: a bar for each column of a row, as long as its step takes against the fastest one's.

The picture of an explanation: what an epoch of each cell is made of, as bars in pieces.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.cases import Row
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.rankings import Ranking
from kerasbench.protocol.columns import Column
from kerasbench.report.figures import failed, names, percent, significant, timed_in, times
from kerasbench.report.sections import LEVEL, LINEAR_UP_TO, Bar, Chart, Group, Piece

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
    hues = _hues({column.backend for column in unique})
    seen: Counter[int] = Counter()
    found: dict[Column, Look] = {}
    for column in unique:
        hue = hues[column.backend]
        found[column] = Look(hue, seen[hue])
        seen[hue] += 1
    return found


def _hues(backends: set[str]) -> dict[str, int]:
    others = sorted(backends - set(KNOWN))
    rest = len(COLOURS) - len(KNOWN)
    return {one: index for index, one in enumerate(KNOWN)} | {
        one: len(KNOWN) + index % rest for index, one in enumerate(others)
    }


CAPTION = "Time of a {}, in times of the fastest. Shorter is better."
LOGARITHMIC = " Logarithmic scale."
FASTEST = 1.0
LONGEST_INTERVAL = 1.5  # times the longest bar: the rest of a wider one is cut off, and only its numbers tell
ROOM = 1.02  # an interval's end is still seen


def ratios(found: Findings) -> Chart | None:
    """Return the bars of each row in which columns were compared; None where there is none."""
    rows = compared(found)
    if not rows:
        return None
    columns = [column for column in found.plain.columns if any(column in row.cases for row, _ in rows)]
    named, seen = names(found.plain.columns), looks(found.plain.columns)
    bars = [
        (row, [_bar(row, ranking, column, named[column], seen[column]) for column in columns if column in row.cases])
        for row, ranking in rows
    ]
    end = _end([bar for _, each in bars for bar in each])
    logarithmic = end > LINEAR_UP_TO
    caption = CAPTION.format(timed_in([row for row, _ in rows])) + (LOGARITHMIC if logarithmic else "")
    groups = [Group(row.label, each, end) for row, each in bars]
    return Chart(caption, groups, reference=FASTEST, logarithmic=logarithmic)


def compared(found: Findings) -> list[tuple[Row, Ranking]]:
    """Return the rows in which columns were compared, with who is fastest."""
    pairs = zip(found.plain.rows, found.plain.rankings, strict=True)
    return [(row, ranking) for row, ranking in pairs if ranking.comparisons]


def _bar(row: Row, ranking: Ranking, column: Column, name: str, look: Look) -> Bar:
    if column == ranking.fastest:
        piece = Piece(name, FASTEST, look.colour)
        strong = ranking.first is not None and ranking.proven
        return Bar(name, _fastest(row, ranking), [piece], column.backend, strong=strong, opacity=look.opacity)
    ratio = ranking.over_fastest(column)
    if ratio is None:
        return Bar(name, failed(row, column).text, backend=column.backend)
    mark = f"{LEVEL} " if column in ranking.level else ""
    piece = Piece(name, ratio.value, look.colour)
    return Bar(name, mark + times(ratio), [piece], column.backend, ratio.low, ratio.high, opacity=look.opacity)


def _fastest(row: Row, ranking: Ranking) -> str:
    """Return what stands at the fastest bar: that it is, as far as that is proven, and its time."""
    assert ranking.fastest is not None  # or there would be no bar
    found = row.cases[ranking.fastest].estimate(row.headline)
    took = f"{significant(found.value)} {BY_NAME[row.headline].unit}" if found else ""
    if ranking.level:
        return f"{LEVEL} 1×, {took}"
    if ranking.first is None:
        return f"1×, {took}"
    return f"{'fastest' if ranking.proven else 'looks fastest'}, {took}"


def _end(bars: list[Bar]) -> float:
    longest = max(bar.size for bar in bars)
    highest = max([bar.high for bar in bars if bar.high is not None], default=longest)
    return min(max(longest, highest), longest * LONGEST_INTERVAL) * ROOM


EPOCH_CAPTION = "Where the time of an epoch goes. In each group the longest epoch fills the width."
# None of them is a backend's colour; black letters can be read on each.
PIECE_COLOURS = {
    "computation": "#56B4E9",
    "Python and framework": "#E69F00",
    "feeding": "#CC79A7",
    "once an epoch": "#999999",
}
WORTH_A_LABEL = 0.12  # of the width: a narrower piece has no room for its percentage
MS_PER_S = 1000.0


def epoch_chart(found: Sequence[StepBreakdown]) -> Chart | None:
    """Return a group for each scenario, a bar for each of its columns; None where nothing was explained."""
    if not found:
        return None
    named = names(dict.fromkeys(one.column for one in found))
    labels = dict.fromkeys(one.row.label for one in found)
    groups = []
    for label in labels:
        cells = [one for one in found if one.row.label == label]
        end = max(sum(_sizes_ms(one).values()) for one in cells)
        groups.append(Group(label, [_epoch_bar(one, named[one.column], end) for one in cells], end))
    return Chart(EPOCH_CAPTION, groups, legend=list(PIECE_COLOURS.items()))


def _epoch_bar(one: StepBreakdown, name: str, end: float) -> Bar:
    pieces = [
        Piece(part, ms, PIECE_COLOURS[part], percent(ms / one.epoch_ms.value) if ms > WORTH_A_LABEL * end else "")
        for part, ms in _sizes_ms(one).items()
        if ms > 0
    ]
    return Bar(name, _epoch(one.epoch_ms.value), pieces, backend=one.column.backend)


def _sizes_ms(one: StepBreakdown) -> dict[str, float]:
    """Return what each part has of an epoch; a part that was not seen has nothing."""
    of_steps = {"computation": one.computation_ms, "Python and framework": one.framework_ms, "feeding": one.feeding_ms}
    found = {part: ms.value * one.steps for part, ms in of_steps.items()}
    found["once an epoch"] = one.overhead_ms.value
    return {part: max(0.0, ms) for part, ms in found.items()}


def _epoch(ms: float) -> str:
    return f"{significant(ms)} ms" if ms < MS_PER_S else f"{significant(ms / MS_PER_S)} s"
