"""Charts that several modes have: ratios to the fastest as bars and dots."""

import itertools
from collections.abc import Iterable, Sequence

from kerasbench import variants
from kerasbench.analysis.contrasts import CaseInRow, Contrast
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column
from kerasbench.report.kinds import FEW, compared, grouped, kind_of, relative
from kerasbench.report.sections import TORN, Bar, BarChart, DotChart, Group, Piece, SeriesStyle
from kerasbench.report.words import names, timed_in, times, took
from kerasbench.results.run import Run
from kerasbench.text import count, whole_gib

# Okabe and Ito's palette, without black and yellow: people who are colour-blind can tell these colours apart, on white
# and on black. Shapes and names tell them apart where there is no colour.
LOOKS = {
    "jax": SeriesStyle("#0072B2", "circle"),
    "tensorflow": SeriesStyle("#D55E00", "square"),
    "torch": SeriesStyle("#009E73", "triangle"),
}
OTHER_LOOKS = [SeriesStyle(colour, "diamond") for colour in ("#CC79A7", "#E69F00", "#56B4E9", "#999999")]
PALER, PALEST = 0.55, 0.25  # another device or option of a backend has its colour, each paler than the one before
ROOM = 1.02  # an interval's end is still seen


def looks(columns: Iterable[Column]) -> dict[Column, SeriesStyle]:
    unique = list(dict.fromkeys(columns))
    return dict(zip(unique, looks_of([column.backend for column in unique]), strict=True))


def looks_of(backends: Sequence[str]) -> list[SeriesStyle]:
    by_backend = LOOKS | dict(zip(sorted(set(backends) - set(LOOKS)), itertools.cycle(OTHER_LOOKS), strict=False))
    paled = [max(PALEST, PALER ** backends[:index].count(backend)) for index, backend in enumerate(backends)]
    return [by_backend[backend]._replace(opacity=opacity) for backend, opacity in zip(backends, paled, strict=True)]


def where(record: Run) -> str:
    machine = record.machine
    parts = [machine.chip, count(machine.cores, "logical CPU"), whole_gib(machine.memory_bytes), *machine.gpus]
    return f"{', '.join(parts)}, {record.started[:10]}"


def ratios(summary: Summary, title: str) -> BarChart | DotChart | None:
    """Return bars for up to four workloads, and a line with dots for each of more; None where no ratio is believed."""
    ranked = [(row, ranking) for row, ranking in compared(summary.plain) if ranking.believed]
    if not ranked:
        return None
    columns = [column for column in summary.plain.columns if variants.competes(column)]
    called, styles = names(columns), looks(columns)
    groups = []
    for row, ranking in ranked:
        first = ranking.winner
        drawn = [
            bar(called[key], styles[key], CaseInRow(row, key), row.headline, ranking.over_fastest(key), key == first)
            for key in columns
            if relative(ranking, key) is not None
        ]
        groups.append((row.label, drawn))
    what, place = f"Time per {timed_in(row for row, _ in ranked)}, relative to the fastest", where(summary.record)
    if len(ranked) <= FEW:
        return bars(title, f"{what} (shorter is better). {place}.", groups)
    kinds = grouped(
        (kind_of(row), (label, [bar._replace(tip=f"{label}, {bar.tip}") for bar in drawn]))
        for (row, _), (label, drawn) in zip(ranked, groups, strict=True)
    )
    intervals = " Lines: 95 % intervals." if any(bar.low is not None for _, drawn in groups for bar in drawn) else ""
    caption = f"{what}: 1× is the fastest, further left is better. Logarithmic scale.{intervals} {place}."
    return DotChart(title, caption, list(kinds.items()), [(called[column], styles[column]) for column in columns])


def bar(
    name: str,
    look: SeriesStyle,
    place: CaseInRow,
    metric: str,
    contrast: Contrast | None,
    strong: bool,
    rounds: int | None = None,
) -> Bar:
    """Return the bar of a case relative to another; without a contrast it is what others are relative to."""
    estimate, ratio = place.case.estimate(metric), contrast.ratio if contrast else None
    text = times(ratio) if ratio else took(estimate, metric) if estimate else ""
    rounds = rounds or (ratio.trials if ratio else place.row.rounds)
    low, high = (ratio.low, ratio.high) if ratio else (None, None)
    pieces, tip = [Piece(ratio.value if ratio else 1.0, look)], f"{name}: {text}, {count(rounds, 'round')}"
    return Bar(name, text, pieces, place.column.backend, low, high, strong, tip)


def bars(title: str, caption: str, groups: Sequence[Group]) -> BarChart:
    """Return bars on one scale, from zero; what is beyond TORN is torn."""
    drawn = [bar for _, group in groups for bar in group]
    inside = [bar for bar in drawn if bar.size <= TORN]
    torn = len(inside) < len(drawn)
    end = TORN if torn else max(1.0, *(max(bar.size, min(bar.high or 0.0, 1.5 * bar.size)) for bar in inside)) * ROOM
    caption = f"{caption} Lines: 95 % intervals." if any(bar.low is not None for bar in drawn) else caption
    caption = f"{caption} A torn bar is longer than {TORN:.0f}×." if torn else caption
    return BarChart(title, caption, groups, end=end)
