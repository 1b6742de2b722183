"""What a sweep shows: from which size on one configuration overtakes another, and the time at each size."""

from collections.abc import Iterator

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.series import FIT_TOLERANCE, Duel, SizeSeries
from kerasbench.report import charts
from kerasbench.report.answer import cell, nothing_compared
from kerasbench.report.sections import Cell, Section, Strong, Table, Words
from kerasbench.report.warnings import Marks
from kerasbench.report.words import Names, as_given, listed, names, percent, place_of, size_along, three_digits


def title(findings: Findings) -> str:
    """Return ``On cifar10_cnn TensorFlow overtakes JAX at about batch 6 (6–7)``; of many pairs how many do."""
    said = [f"On {series.label} {sentence}" for series, sentence in sentences(findings)]
    if not said:
        measured = [row.label for row in findings.sized.rows if any(case.trials for case in row.cases.values())]
        if not measured:
            return nothing_compared(findings.sized, names(findings.sized.columns))
        labels = [series.label for series in findings.sweeps]
        return f"A training step of {listed(labels)} at several sizes" if labels else f"{listed(measured)}: one size"
    return said[0] if len(said) == 1 else f"{said[0]}; {len(said) - 1} more below"


def sentences(findings: Findings) -> list[tuple[SizeSeries, str]]:
    called = names(findings.summary.columns)
    return [(series, _of_pair(series, pair, called)) for series in findings.sweeps for pair in series.duels]


def _of_pair(series: SizeSeries, duel: Duel, called: Names) -> str:
    axis = series.axis
    if duel.crossings:
        return "; ".join(
            f"{called[crossing.winner]} overtakes {called[crossing.loser]} at {place_of(crossing, axis)}"
            for crossing in duel.crossings
        )
    sizes = [size_along(axis, series.size(contrast)) for contrast in duel.contrasts]
    span = f"{axis} {sizes[0]}" + ("" if len(sizes) == 1 else f" to {sizes[-1]}")
    a, b = (called[place.column] for place in (duel.contrasts[0].over, duel.contrasts[0].under))
    slower = next((sign for sign in duel.signs if sign), 0)
    if not slower:
        return f"{a} and {b} are undecided at {span}"
    faster, loser = (b, a) if slower > 0 else (a, b)
    equal = [size for size, sign in zip(sizes, duel.signs, strict=True) if not sign]
    rest = f", undecided at {listed(equal)}" if equal else ""
    return f"{faster} is faster than {loser} at every {'other ' if equal else ''}size ({span}){rest}"


def sections(findings: Findings, marks: Marks) -> Iterator[Section]:
    chart = charts.curves(findings, title(findings))
    rankings = {row.label: ranking for row, ranking in findings.sized.ranked}
    called, every = names(findings.sized.columns), names(findings.summary.columns)
    for series in findings.sweeps:
        said = [_of_pair(series, duel, every) for duel in series.duels]
        lines = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in said]
        lines = lines if len(findings.sweeps) > 1 or len(lines) > 1 else []
        rows = []
        for size, row in series.rows.items():
            numbers = [cell(row, rankings[row.label], column, marks) for column in series.columns]
            rows.append([Cell(size_along(series.axis, size), size), *numbers])
        yield Section(
            f"{series.label} by {series.axis}",
            chart=chart,
            table=Table([series.axis, *(called[column] for column in series.columns)], rows),
            notes=[_caption(findings), *_notes(series, called)],
            lines=lines,
        )
        chart = None


def alone(findings: Findings, marks: Marks) -> Section | None:
    """Return the times at sizes that no series has: of a sweep that ended after its first one."""
    in_series = {row.label for series in findings.sweeps for row in series.rows.values()}
    called = names(findings.sized.columns)
    rows = [
        [Cell(row.label), *(cell(row, ranking, column, marks) for column in called)]
        for row, ranking in findings.sized.ranked
        if row.label not in in_series
    ]
    table = Table(["workload", *called.values()], rows)
    return Section("Sizes without a series", table=table, notes=[_caption(findings)]) if rows else None


def _caption(findings: Findings) -> Words:
    rankings = findings.sized.rankings
    compared = [contrast for ranking in rankings for contrast in ranking.others]
    interval = " (95 % interval)" if any(contrast.ratio.has_interval for contrast in compared) else ""
    others = f": the fastest in ms; the others take N× as long{interval}" if compared else ""
    bold: list[str | Strong] = [" ", Strong("Bold"), f": clearly fastest, by more than {as_given(findings.effect)}."]
    text = f"Time per step inside an epoch (median), without the fixed cost of an epoch{others}."
    return [text, *(bold if any(ranking.proven for ranking in rankings) else [])]


def _notes(series: SizeSeries, called: Names) -> Iterator[str]:
    """Yield what a step costs whatever its batch, and for each sample, where a line explains that; and what ends it."""
    for column, cost in series.costs.items():
        if cost.fits and cost.overhead.low > 0 and cost.per_sample.low > 0:
            overhead, sample = (three_digits(part.value) for part in (cost.overhead, cost.per_sample))
            within = percent(max(FIT_TOLERANCE, cost.deviation))
            cost_of = f"{overhead} ms per step and {sample} ms per sample"
            yield f"{called[column]} takes {cost_of}, at every size within {within}."
        elif not cost.fits:
            yield f"{called[column]} follows no straight line, so it has no cost per sample."
    for column in series.columns:
        size = series.out_of_memory(column)
        if size is not None:
            yield f"{called[column]} runs out of memory at {series.axis} {size_along(series.axis, size)}."
