"""The sections of a sweep: the step at each size, who overtakes whom where, and what a step is made of."""

from collections.abc import Iterator, Sequence

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import sign
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.series import FIT_TOLERANCE, CostModel, Crossing, Parameter, SeriesComparison, SizeSeries
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import AXES, Axis
from kerasbench.report import charts
from kerasbench.report.figures import (
    BELOW,
    NOT_TOLD,
    column_name,
    column_names,
    first_step,
    metric_section,
    paired,
    percent,
    significant,
    size_along,
    timed,
    training_notes,
)
from kerasbench.report.sections import EMPTY, Cell, Section, Table, texts
from kerasbench.text import label

STEP = (
    "A step inside an epoch (steady_step_ms): feeding the batch, the step, its metrics. What an epoch costs once is "
    "not in it."
)


def steps(found: Findings) -> Section | None:
    """Return the time of a step: a line for each size, a column for each backend, device and options."""
    if not found.sized.rows:
        return None
    notes = training_notes(found.sized, STEP)
    return Section(
        "Sweep", table=table(found.sized), lines=list(_ended(found.sweeps)), notes=notes, chart=charts.curves(found)
    )


def table(sized: Summary) -> Table:
    """Return the table alone, of rows that were all swept."""
    columns = [column for column in sized.columns if any(column in row.cases for row in sized.rows)]
    axes = [axis for axis in AXES if any(not _at(row, axis).is_empty for row in sized.rows)]
    body = [
        [
            Cell(label(row.scenario.name, row.workload.name)),
            *(_at(row, axis) for axis in axes),
            *(timed(row, column, ranking) for column in columns),
        ]
        for row, ranking in zip(sized.rows, sized.rankings, strict=True)
    ]
    return Table(["scenario", *axes, *column_names(columns)], body)


def _at(row: Row, axis: Axis) -> Cell:
    size = row.size.along(axis) if row.size else None
    return EMPTY if size is None else Cell(size_along(axis, size), size)


def _ended(sweeps: Sequence[SizeSeries]) -> Iterator[str]:
    for one in sweeps:
        for column in one.columns:
            size = one.out_of_memory(column)
            if size is not None:
                where = f"{one.axis} {size_along(one.axis, size)}"
                yield f"{one.label} {column_name(column)}: out of memory at {where}; the series ends there."


def crossovers(found: Findings) -> Section | None:
    """Return for each pair of series where one overtakes the other, or that none does."""
    lines = [
        f"{one.label}: {'; '.join(_said(one, duel))}."
        for one in found.sweeps
        for duel in one.duels
        if len(duel.ratios) > 1
    ]
    if not lines:
        return None
    notes = [
        f"Who is slower by more than {found.effect:.0%} is judged at each size, {paired(found.sized.rows)}, corrected "
        "for the number of sizes and pairs by Holm's method.",
        "A crossover lies between two sizes at which different columns are significantly faster.",
        "Its place: the ratio's logarithm, interpolated over log2 of the size, with a 95 % interval by parametric "
        "bootstrap. It holds only for the sizes measured.",
    ]
    return Section("Crossovers", lines=lines, notes=notes)


def _said(found: SizeSeries, duel: SeriesComparison) -> list[str]:
    if not duel.crossings:
        return [_one_sided(found.axis, duel)]
    several = ["not monotone"] if len(duel.crossings) > 1 else []
    return several + [_crossing(found.axis, one) for one in duel.crossings]


def _crossing(axis: Axis, one: Crossing) -> str:
    interval = "too few rounds for an interval"
    if one.interval is not None:
        low, high = one.interval
        interval = f"{size_along(axis, low)} to {size_along(axis, high)}"
    names = f"{column_name(one.winner)} overtakes {column_name(one.loser)}"
    return f"{names} at {axis} {size_along(axis, one.at)} ({interval})"


def _one_sided(axis: Axis, duel: SeriesComparison) -> str:
    sizes = [size for size, _ in duel.ratios]
    span = f"({size_along(axis, sizes[0])} to {size_along(axis, sizes[-1])})"
    slower = next((found for found in duel.signs if found), 0)
    if not slower:
        return (
            f"{column_name(duel.a)} and {column_name(duel.b)} do not differ significantly at any size measured {span}"
        )
    loser, winner = (duel.a, duel.b) if slower > 0 else (duel.b, duel.a)
    unsettled = [size_along(axis, size) for size, found in zip(sizes, duel.signs, strict=True) if not found]
    known = f"every size measured {span}"
    if unsettled:
        known = f"the sizes measured {span}, but for {', '.join(unsettled)}, where they do not differ significantly"
    return f"{column_name(loser)} is slower than {column_name(winner)} at {known}"


def costs(found: Findings) -> Section | None:
    """Return overhead and cost per sample of each series over batches."""
    rows = [
        [*texts(one.label, column_name(column)), *_cost(model)]
        for one in found.sweeps
        for column, model in one.costs.items()
    ]
    if not rows:
        return None
    names = ["overhead (ms)", "cost per sample (µs)", "largest deviation", "explains the series"]
    notes = [
        "Step = overhead + cost per sample · batch: a line by least squares, weighted by the sizes' intervals; in "
        "brackets 95 % intervals.",
        f"yes: every size is within {FIT_TOLERANCE:.0%} of the line or within its own interval.",
    ]
    return Section("Overhead and cost per sample", table=Table(["scenario", "column", *names], rows), notes=notes)


def _cost(model: CostModel) -> list[Cell]:
    deviation = Cell(f"{percent(model.deviation)} at batch {model.worst:,}", model.deviation)
    fits = Cell("yes" if model.fits else "no")
    return [_parameter(model.overhead), _parameter(model.per_sample, 1e3), deviation, fits]


def _parameter(found: Parameter, factor: float = 1.0) -> Cell:
    value, low, high = (significant(one * factor) for one in (found.value, found.low, found.high))
    said = {1: value, 0: NOT_TOLD, -1: BELOW}[sign(found.value, found.low, found.high)]
    return Cell(f"{said} ({low} to {high})", found.value * factor if said == value else None)


def by_size(found: Findings) -> Section | None:
    """Return what else was measured at each size."""
    return metric_section(
        found.sized,
        "Throughput and memory by size",
        ("train_samples_per_s", "first_step_ms", "peak_rss_mib", "peak_device_mib"),
        ["Throughput follows from the step inside an epoch.", *first_step(found.sized)],
    )
