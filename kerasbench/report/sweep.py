"""The sections of a sweep: the step at each size, who overtakes whom where, and what a step is made of."""

from collections.abc import Iterator, Sequence

from kerasbench.analysis.cells import Row
from kerasbench.analysis.cost_model import FIT_TOLERANCE, CostModel, Parameter
from kerasbench.analysis.estimates import sign
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.series import Crossing, Duel, Swept
from kerasbench.analysis.summary import Summary
from kerasbench.exchange.options import AXES, Axis
from kerasbench.report.cells import column_name, column_names, metric_tables, timed
from kerasbench.report.markdown import NOTHING, draw_table, escape
from kerasbench.report.notes import first_step, paired, training_notes
from kerasbench.report.number import BELOW, NOT_TOLD, percent, significant, size_along
from kerasbench.text import label

STEP = (
    "A step inside an epoch (`steady_step_ms`): feeding the batch, the step, its metrics. What an epoch costs once is "
    "not in it."
)


def document(found: Findings) -> str:
    """Return all sections of what was swept; nothing where nothing was."""
    parts = (steps(found), crossovers(found), costs(found), _besides(found.sized))
    return "\n\n".join(part for part in parts if part)


def brief(found: Findings) -> str:
    """Return what a terminal shows."""
    parts = (_steps(found, narrow_table(found.sized)), crossovers(found), costs(found))
    return "\n\n".join(part for part in parts if part)


def steps(found: Findings) -> str:
    """Return the time of a step: a line for each size, a column for each backend, device and options."""
    return _steps(found, table(found.sized))


def _steps(found: Findings, drawn: str) -> str:
    if not found.sized.rows:
        return ""
    notes = "\n".join([training_notes(found.sized, STEP), *(f"- {line}" for line in _ended(found.sweeps))])
    return f"## Sweep\n\n{drawn}\n\n{notes}"


def table(sized: Summary) -> str:
    """Return the table alone, of rows that were all swept."""
    return _table(sized, named=True)


def narrow_table(sized: Summary) -> str:
    """Return it for a terminal: of one regime, which the command has named, the sizes alone."""
    return _table(sized, named=len({label(row.scenario.name, row.regime.name) for row in sized.rows}) > 1)


def _table(sized: Summary, named: bool) -> str:
    columns = [column for column in sized.columns if any(column in row.cells for row in sized.rows)]
    axes = [axis for axis in AXES if any(_at(row, axis) != NOTHING for row in sized.rows)]
    body = [
        [
            *([escape(label(row.scenario.name, row.regime.name))] if named else []),
            *(_at(row, axis) for axis in axes),
            *(timed(row, column, standing) for column in columns),
        ]
        for row, standing in zip(sized.rows, sized.standings, strict=True)
    ]
    return draw_table([*(["scenario"] if named else []), *axes, *column_names(columns)], body)


def _at(row: Row, axis: Axis) -> str:
    size = row.size.along(axis) if row.size else None
    return NOTHING if size is None else size_along(axis, size)


def _ended(sweeps: Sequence[Swept]) -> Iterator[str]:
    for one in sweeps:
        for column in one.columns:
            size = one.out_of_memory(column)
            if size is not None:
                where = f"{one.axis} {size_along(one.axis, size)}"
                yield f"{escape(one.label)} {column_name(column)}: out of memory at {where}; the series ends there."


def crossovers(found: Findings) -> str:
    """Return for each pair of series where one overtakes the other, or that none does."""
    lines = [
        f"- {escape(one.label)}: {'; '.join(_said(one, duel))}."
        for one in found.sweeps
        for duel in one.duels
        if len(duel.ratios) > 1
    ]
    if not lines:
        return ""
    explanation = (
        f"Who is slower by more than {found.effect:.0%} is judged at each size, {paired(found.sized.rows)} and "
        "corrected for the number of sizes and pairs by Holm's method. A crossover lies between a size at which it is "
        "significantly the one and a size at which it is the other: the ratio's logarithm, interpolated over log2 of "
        "the size, with a 95 % interval by parametric bootstrap. Nothing is said beyond these sizes."
    )
    return "## Crossovers\n\n" + "\n".join(lines) + f"\n\n{explanation}"


def _said(found: Swept, duel: Duel) -> list[str]:
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


def _one_sided(axis: Axis, duel: Duel) -> str:
    sizes = [size for size, _ in duel.ratios]
    span = f"({size_along(axis, sizes[0])} to {size_along(axis, sizes[-1])})"
    slower = next((found for found in duel.signs if found), 0)
    if not slower:
        return f"{column_name(duel.a)} and {column_name(duel.b)} cannot be told apart at any size measured {span}"
    loser, winner = (duel.a, duel.b) if slower > 0 else (duel.b, duel.a)
    unsettled = [size_along(axis, size) for size, found in zip(sizes, duel.signs, strict=True) if not found]
    known = f"every size measured {span}"
    if unsettled:
        known = f"the sizes measured {span}, but for {', '.join(unsettled)}, where they cannot be told apart"
    return f"{column_name(loser)} is slower than {column_name(winner)} at {known}"


def costs(found: Findings) -> str:
    """Return overhead and cost per sample of each series over batches."""
    rows = [
        [escape(one.label), column_name(column), *_cost(model)]
        for one in found.sweeps
        for column, model in one.costs.items()
    ]
    if not rows:
        return ""
    headers = [
        "scenario",
        "column",
        "overhead (ms)",
        "cost per sample (µs)",
        "largest deviation",
        "explains the series",
    ]
    explanation = (
        "Step = overhead + cost per sample · batch: a line by least squares, weighted by the sizes' intervals; in "
        f"brackets 95 % intervals. It explains a series of which it misses no size by more than {FIT_TOLERANCE:.0%} "
        "and by more than the size's own interval. It may explain a crossover; it does not define it."
    )
    return f"## Overhead and cost per sample\n\n{draw_table(headers, rows)}\n\n{explanation}"


def _cost(model: CostModel) -> list[str]:
    deviation = f"{percent(model.deviation)} at batch {model.worst:,}"
    return [_parameter(model.overhead), _parameter(model.per_sample, 1e3), deviation, "yes" if model.fits else "no"]


def _parameter(found: Parameter, factor: float = 1.0) -> str:
    value, low, high = (significant(one * factor) for one in (found.value, found.low, found.high))
    said = {1: value, 0: NOT_TOLD, -1: BELOW}[sign(found.value, found.low, found.high)]
    return f"{said} ({low} to {high})"


def _besides(sized: Summary) -> str:
    return metric_tables(
        sized,
        "Throughput and memory by size",
        ("train_samples_per_s", "first_step_ms", "peak_rss_mib", "peak_device_mib"),
        f"Throughput follows from the step inside an epoch. {first_step(sized)}",
    )
