"""The sections of a sweep: the step at each size, and what a step is made of. The answer says who overtakes whom."""

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import sign
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.series import FIT_TOLERANCE, Parameter
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import AXES, Axis
from kerasbench.report import charts
from kerasbench.report.figures import (
    BELOW_ZERO,
    NOT_ABOVE_ZERO,
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
    lines = []
    for series in found.sweeps:
        for column in series.columns:
            size = series.out_of_memory(column)
            if size is not None:
                place = f"{series.axis} {size_along(series.axis, size)}"
                lines.append(f"{series.label} {column.label}: out of memory at {place}; the series ends there.")
    notes = list(training_notes(found.sized, STEP))
    if any(len(pair.ratios) > 1 for series in found.sweeps for pair in series.duels):
        notes += [
            f"Crossovers: who is slower by more than {found.effect:.0%} is judged at each size, "
            f"{paired(found.sized.rows)}, corrected for the number of sizes and pairs by Holm's method.",
            "A crossover lies between two sizes at which different columns are significantly faster. Its place: the "
            "ratio's logarithm, interpolated over log2 of the size.",
            "Its 95 % interval is by parametric bootstrap, and left out with too few rounds. It holds only for the "
            "sizes measured.",
        ]
    return Section("Sweep", table=_table(found.sized), lines=lines, notes=notes, chart=charts.curves(found))


def _table(sized: Summary) -> Table:
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
    return Table(["scenario", *axes, *(column.label for column in columns)], body)


def _at(row: Row, axis: Axis) -> Cell:
    size = row.size.along(axis) if row.size else None
    return EMPTY if size is None else Cell(size_along(axis, size), size)


def costs(found: Findings) -> Section | None:
    """Return overhead and cost per sample of each series over batches."""
    rows = []
    for series in found.sweeps:
        for column, model in series.costs.items():
            deviation = Cell(f"{percent(model.deviation)} at batch {model.worst:,}", model.deviation)
            parameters = [_parameter(model.overhead), _parameter(model.per_sample, 1e3)]
            fits = Cell("yes" if model.fits else "no")
            rows.append([*texts(series.label, column.label), *parameters, deviation, fits])
    if not rows:
        return None
    figures = ["overhead (ms)", "cost per sample (µs)", "largest deviation", "explains the series"]
    notes = [
        "Step = overhead + cost per sample · batch: a line by least squares, weighted by the sizes' intervals; in "
        "brackets 95 % intervals.",
        f"yes: every size is within {FIT_TOLERANCE:.0%} of the line or within its own interval.",
    ]
    return Section("Overhead and cost per sample", table=Table(["scenario", "column", *figures], rows), notes=notes)


def _parameter(found: Parameter, factor: float = 1.0) -> Cell:
    value, low, high = (significant(one * factor) for one in (found.value, found.low, found.high))
    match sign(found.value, found.low, found.high):
        case 1:
            return Cell(f"{value} ({low} to {high})", found.value * factor)
        case 0:
            return Cell(f"{NOT_ABOVE_ZERO} ({low} to {high})")
        case _:
            return Cell(f"{BELOW_ZERO} ({low} to {high})")


def by_size(found: Findings) -> Section | None:
    """Return what else was measured at each size."""
    return metric_section(
        found.sized,
        "Throughput and memory by size",
        ("train_samples_per_s", "first_step_ms", "peak_rss_mib", "peak_device_mib"),
        ["Throughput follows from the step inside an epoch.", *first_step(found.sized)],
    )
