"""What Keras costs, where native twins were measured, and what busy processors cost: a section each."""

from collections.abc import Sequence

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.prices import Price
from kerasbench.report.cells import column_name, estimated, value
from kerasbench.report.notes import paired
from kerasbench.report.sections import Cell, Section, Table, texts
from kerasbench.results.keys import Column

TITLES = {"steady_step_ms": "step inside an epoch", "epoch_s": "epoch"}


def what_keras_costs(found: Findings) -> Section | None:
    """Return each model's time over its twin's, of a step and of an epoch; nothing where no twin was measured."""
    if not found.prices:
        return None
    headers = ["scenario", "backend", "of", "with Keras", "without", "Keras / native", "Keras is"]
    table = Table(
        headers,
        [
            [*texts(one.row.label, column_name(one.paying), TITLES[one.metric]), *_figures(one, one.paying, one.free)]
            for one in found.prices
        ],
    )
    steady = all(row.origin.protocol == "steady" for row in found.plain.rows)
    agreeing = "; their first six losses agree" if steady else ""
    notes = [
        "The same model, weights, loss, optimizer and metrics, trained by Keras and by a loop in the plain framework"
        f"{agreeing}.",
        f"Ratio of times, {paired(found.plain.rows)}: above 1 Keras costs something.",
        _meaning(found.prices, found.effect),
        "docs/method.md says what is equal and what is not.",
    ]
    return Section("What Keras costs", table=table, notes=notes)


def what_busy_cores_cost(found: Findings) -> Section | None:
    """Return each column's time while processors were kept busy over that without; nothing where none were."""
    if not found.busy_cores:
        return None
    headers = ["scenario", "column", "undisturbed", "beside busy cores", "times as long", "it is"]
    table = Table(
        headers,
        [
            [*texts(one.row.label, column_name(one.paying)), *_figures(one, one.free, one.paying)]
            for one in found.busy_cores
        ],
    )
    notes = [
        "busy-cores=N: while the column has its turn, N processes of kerasbench do nothing but compute.",
        "The undisturbed column takes turns with it.",
        _meaning(found.busy_cores, found.effect),
    ]
    return Section("What busy cores cost", table=table, notes=notes)


def _figures(one: Price, first: Column, second: Column) -> list[Cell]:
    unit = BY_NAME[one.metric].unit
    values = (value(one.row, column, one.metric, unit) for column in (first, second))
    return [*values, estimated(one.ratio), Cell(str(one.verdict))]


def _meaning(found: Sequence[Price], effect: float) -> str:
    """Return what the verdicts say, or that there are none."""
    if not any(one.ratio.has_interval for one in found):
        return f"Fewer than {MIN_TRIALS_FOR_INTERVAL} rounds: no interval, no verdict."
    many = f" ({len(found)} verdicts corrected by Holm's method)" if len(found) > 1 else ""
    return f"Slower or faster: significantly, by more than {effect:.0%}. Same: significantly within {effect:.0%}{many}."
