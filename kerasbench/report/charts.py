"""Which charts there are: ratios to the fastest, the parts of an epoch, and the curves of a sweep."""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kerasbench.analysis.breakdown import StepBreakdown
from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import Estimate, mean
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import NS_PER_MS
from kerasbench.analysis.race import Race
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.series import SizeSeries
from kerasbench.analysis.soak import Soak
from kerasbench.protocol.columns import Column
from kerasbench.report.figures import duration, failed, names, percent, place_of, timed_in, times, took
from kerasbench.report.sections import (
    LEVEL,
    LINEAR_UP_TO,
    Bar,
    BarChart,
    BarGroup,
    Crossover,
    Line,
    LineChart,
    Panel,
    Piece,
)
from kerasbench.text import MIB

# Okabe and Ito's palette, without black and yellow: people who are colour-blind can tell these colours apart, on white
# and on black.
BACKEND_COLOURS = {"jax": "#0072B2", "tensorflow": "#D55E00", "torch": "#009E73"}
OTHER_COLOURS = ("#CC79A7", "#E69F00", "#56B4E9", "#999999")
PALER, PALEST = 0.55, 0.25  # another device or option of a backend has its colour, each paler than the one before

RATIO_CAPTION = "Time of a {} relative to the fastest. Shorter is better."
LOGARITHMIC = " Logarithmic scale."
FASTEST = 1.0
LONGEST_INTERVAL = 1.5  # times the longest bar: the rest of a wider one is cut off, and only its numbers tell
ROOM = 1.02  # an interval's end is still seen

EPOCH_CAPTION = "Where the time of an epoch goes. In each group the longest epoch fills the width."
# None of them is a backend's colour; black letters can be read on each.
PIECE_COLOURS = {
    "computation": "#56B4E9",
    "Python and framework": "#E69F00",
    "feeding": "#CC79A7",
    "once an epoch": "#999999",
}
WORTH_A_LABEL = 0.12  # of the width: a narrower piece has no room for its percentage

CURVE_CAPTION = "Time of a step inside an epoch, in ms, over size. Both axes are logarithmic."
CURVE_INTERVALS = " Vertical lines: 95 % intervals."


class Look(NamedTuple):
    colour: str
    opacity: float


def looks(columns: Iterable[Column]) -> dict[Column, Look]:
    """Return how each column looks beside the others."""
    unique = list(dict.fromkeys(columns))
    return dict(zip(unique, looks_of([column.backend for column in unique]), strict=True))


def looks_of(backends: Sequence[str]) -> list[Look]:
    """Return how columns of these backends look beside each other."""
    colours = dict(BACKEND_COLOURS)
    others = sorted(set(backends) - set(colours))
    colours |= zip(others, itertools.cycle(OTHER_COLOURS), strict=False)
    seen: Counter[str] = Counter()
    result = []
    for backend in backends:
        colour = colours[backend]
        result.append(Look(colour, max(PALEST, PALER ** seen[colour])))
        seen[colour] += 1
    return result


def ratios(found: Findings) -> BarChart | None:
    """Return the bars of each row in which columns were compared; None where there is none."""
    rows = compared(found)
    if not rows:
        return None
    columns = found.plain.columns
    named, seen = names(columns), looks(columns)
    bars = [
        [_bar(row, ranking, column, named[column], seen[column]) for column in columns if column in row.cases]
        for row, ranking in rows
    ]
    return _on_one_scale([row for row, _ in rows], bars)


def _on_one_scale(rows: Sequence[Row], bars: Sequence[Sequence[Bar]]) -> BarChart:
    """Return the ratios of each row."""
    longest = max(bar.size for group in bars for bar in group)
    highest = max(bar.high or 0.0 for group in bars for bar in group)
    end = min(max(longest, highest), longest * LONGEST_INTERVAL) * ROOM
    logarithmic = end > LINEAR_UP_TO
    caption = RATIO_CAPTION.format(timed_in(rows)) + (LOGARITHMIC if logarithmic else "")
    groups = [BarGroup(row.label, group, end) for row, group in zip(rows, bars, strict=True)]
    return BarChart(caption, groups, reference=FASTEST, logarithmic=logarithmic)


def ladder(races: Sequence[Race]) -> BarChart:
    """Return the bars of each race: every candidate that was measured, the winner first."""
    groups = []
    for one in races:
        measured = [standing for standing in one.standings if standing.failure is None]
        named = names([standing.column for standing in measured])
        seen = looks(standing.column for standing in sorted(measured, key=lambda each: each.column.order))
        bars = []
        for standing in measured:
            column, ratio = standing.column, standing.ratio
            piece = Piece(named[column], ratio.value if ratio else FASTEST, seen[column].colour)
            interval = (ratio.low, ratio.high) if ratio else (None, None)
            shown = times(ratio) if ratio else "1×"
            is_first = column == one.leader
            bars.append(Bar(named[column], shown, [piece], column.backend, *interval, is_first, seen[column].opacity))
        groups.append(bars)
    return _on_one_scale([one.row for one in races], groups)


def compared(found: Findings) -> list[tuple[Row, Ranking]]:
    """Return the rows in which columns were compared, with who is fastest."""
    return [(row, ranking) for row, ranking in found.plain.ranked if ranking.comparisons]


def _bar(row: Row, ranking: Ranking, column: Column, name: str, look: Look) -> Bar:
    if column == ranking.fastest:
        piece = Piece(name, FASTEST, look.colour)
        strong = ranking.first is not None and ranking.proven
        return Bar(name, _fastest(row, ranking), [piece], column.backend, strong=strong, opacity=look.opacity)
    ratio = ranking.over_fastest(column)
    if ratio is None:
        found = row.cases[column].estimate(row.headline) if column in row.cases else None
        return Bar(name, took(found, row) if found else failed(row, column).text, backend=column.backend)
    mark = f"{LEVEL} " if column in ranking.level else ""
    piece = Piece(name, ratio.value, look.colour)
    return Bar(name, mark + times(ratio), [piece], column.backend, ratio.low, ratio.high, opacity=look.opacity)


def _fastest(row: Row, ranking: Ranking) -> str:
    """Return what stands at the fastest bar: that it is, as far as that is proven, and its time."""
    assert ranking.fastest is not None  # or there would be no bar
    found = row.cases[ranking.fastest].estimate(row.headline)
    time = took(found, row) if found else ""
    if ranking.level:
        return f"{LEVEL} 1×, {time}"
    if ranking.first is None:
        return f"1×, {time}"
    return f"{'fastest' if ranking.proven else 'looks fastest'}, {time}"


def epoch_chart(found: Sequence[StepBreakdown]) -> BarChart | None:
    """Return a group for each scenario, a bar for each of its columns; None where nothing was explained."""
    if not found:
        return None
    named = names(dict.fromkeys(one.column for one in found))
    labels = dict.fromkeys(one.row.label for one in found)
    groups = []
    for label in labels:
        breakdowns = [one for one in found if one.row.label == label]
        end = max(sum(_sizes_ms(one).values()) for one in breakdowns)
        groups.append(BarGroup(label, [_epoch_bar(one, named[one.column], end) for one in breakdowns], end))
    return BarChart(EPOCH_CAPTION, groups, legend=list(PIECE_COLOURS.items()))


def _epoch_bar(one: StepBreakdown, name: str, end: float) -> Bar:
    pieces = [
        Piece(part, ms, PIECE_COLOURS[part], percent(ms / one.epoch_ms.value) if ms > WORTH_A_LABEL * end else "")
        for part, ms in _sizes_ms(one).items()
        if ms > 0
    ]
    return Bar(name, duration(one.epoch_ms.value * NS_PER_MS), pieces, backend=one.column.backend)


def _sizes_ms(one: StepBreakdown) -> dict[str, float]:
    """Return what each part has of an epoch; a part that was not seen has nothing."""
    of_steps = {"computation": one.computation_ms, "Python and framework": one.framework_ms, "feeding": one.feeding_ms}
    found = {part: ms.value * one.steps for part, ms in of_steps.items()}
    found["once an epoch"] = one.overhead_ms.value
    return {part: max(0.0, ms) for part, ms in found.items()}


def curves(found: Findings) -> LineChart | None:
    """Return a panel for each workload and axis that was swept, but where no step was measured; None without any."""
    panels = [panel for series in found.sweeps if (panel := _panel(series)).lines]
    if not panels:
        return None
    known = any(step.low is not None for panel in panels for line in panel.lines for _, step in line.points)
    return LineChart(CURVE_CAPTION + (CURVE_INTERVALS if known else ""), panels)


def _panel(series: SizeSeries) -> Panel:
    steps_ms = {column: series.steps_ms(column) for column in series.columns}
    measured = [column for column, steps in steps_ms.items() if steps]
    named, seen = names(measured), looks(measured)
    lines = [
        Line(named[column], seen[column].colour, steps_ms[column], column.backend, seen[column].opacity)
        for column in measured
    ]
    crossovers = [
        Crossover(one.at, one.interval, f"crossover at {place_of(one, series.axis)}")
        for duel in series.duels
        for one in duel.crossings
    ]
    return Panel(series.label, series.axis, lines, crossovers)


SOAK_CAPTION = "Memory of the process, and the time of a unit over that of the control, over the minutes of the run."
MOST_POINTS = 60


def soaked(found: Sequence[Soak]) -> LineChart | None:
    """Return panels for each row of a soak: memory, the device's where it is told, and times over the control's."""
    named = names(one.column for one in found)
    styles = looks(list(named))
    panels = []
    for label in dict.fromkeys(one.row.label for one in found):
        own = [one for one in found if one.row.label == label]
        memory = [(one, [(minute, held / MIB) for minute, held in one.held_bytes]) for one in own]
        on_device = [(one, [(minute, held / MIB) for minute, held in one.held_on_device]) for one in own]
        for what, unit, series in (
            ("memory", "MiB", memory),
            ("device memory", "MiB", on_device),
            ("time over the control's", "×", [(one, one.ratios) for one in own]),
        ):
            lines = []
            for one, points in series:
                colour, opacity = styles[one.column]
                if points:
                    lines.append(Line(named[one.column], colour, _thinned(points), one.column.backend, opacity))
            if lines:
                panels.append(Panel(label, "minutes", lines, unit=unit, linear=True, what=what))
    return LineChart(SOAK_CAPTION, panels) if panels else None


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, Estimate]]:
    """Return the means of so many parts as a picture can show."""
    each = -(-len(points) // MOST_POINTS)
    parts = [points[first : first + each] for first in range(0, len(points), each)]
    return [(statistics.fmean(at for at, _ in part), mean([value for _, value in part])) for part in parts]
