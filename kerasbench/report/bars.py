"""The picture of the answer: a bar for each column of a row, as long as its step takes against the fastest one's."""

from kerasbench.analysis.cells import Row
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.standings import Standing
from kerasbench.report.cells import failed
from kerasbench.report.chart import LINEAR_UP_TO, Bar, Chart, Group, Piece
from kerasbench.report.colours import Look, looks
from kerasbench.report.naming import names
from kerasbench.report.notes import timed_in
from kerasbench.report.number import significant, times
from kerasbench.report.sections import LEVEL
from kerasbench.results.keys import Column

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
    columns = [column for column in found.plain.columns if any(column in row.cells for row, _ in rows)]
    named, seen = names(found.plain.columns), looks(found.plain.columns)
    bars = [
        (row, [_bar(row, standing, column, named[column], seen[column]) for column in columns if column in row.cells])
        for row, standing in rows
    ]
    end = _end([bar for _, each in bars for bar in each])
    logarithmic = end > LINEAR_UP_TO
    caption = CAPTION.format(timed_in([row for row, _ in rows])) + (LOGARITHMIC if logarithmic else "")
    groups = [Group(row.label, each, end) for row, each in bars]
    return Chart(caption, groups, reference=FASTEST, logarithmic=logarithmic)


def compared(found: Findings) -> list[tuple[Row, Standing]]:
    """Return the rows in which columns were compared, with who is fastest."""
    pairs = zip(found.plain.rows, found.plain.standings, strict=True)
    return [(row, standing) for row, standing in pairs if standing.comparisons]


def _bar(row: Row, standing: Standing, column: Column, name: str, look: Look) -> Bar:
    if column == standing.fastest:
        piece = Piece(name, FASTEST, look.colour)
        strong = standing.first is not None and standing.proven
        return Bar(name, _fastest(row, standing), [piece], column[0], strong=strong, opacity=look.opacity)
    ratio = standing.over_fastest(column)
    if ratio is None:
        return Bar(name, failed(row, column).text, backend=column[0])
    mark = f"{LEVEL} " if column in standing.level else ""
    piece = Piece(name, ratio.value, look.colour)
    return Bar(name, mark + times(ratio), [piece], column[0], ratio.low, ratio.high, opacity=look.opacity)


def _fastest(row: Row, standing: Standing) -> str:
    """Return what stands at the fastest bar: that it is, as far as that is proven, and its time."""
    assert standing.fastest is not None  # or there would be no bar
    found = row.cells[standing.fastest].estimate(row.headline)
    took = f"{significant(found.value)} {BY_NAME[row.headline].unit}" if found else ""
    if standing.level:
        return f"{LEVEL} 1×, {took}"
    if standing.first is None:
        return f"1×, {took}"
    return f"{'fastest' if standing.proven else 'looks fastest'}, {took}"


def _end(bars: list[Bar]) -> float:
    longest = max(bar.size for bar in bars)
    highest = max([bar.high for bar in bars if bar.high is not None], default=longest)
    return min(max(longest, highest), longest * LONGEST_INTERVAL) * ROOM
