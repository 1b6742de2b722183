"""What Keras costs: a section of its own, where native twins were measured."""

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.keras_cost import Price
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.report.cells import column_name, estimated, value
from kerasbench.report.notes import paired
from kerasbench.report.sections import Cell, Section, Table, texts

TITLES = {"steady_step_ms": "step inside an epoch", "epoch_s": "epoch"}


def what_keras_costs(found: Findings) -> Section | None:
    """Return each model's time over its twin's, of a step and of an epoch; nothing where no twin was measured."""
    if not found.prices:
        return None
    headers = ["scenario", "backend", "of", "with Keras", "without", "Keras / native", "Keras is"]
    table = Table(headers, [_line(one) for one in found.prices])
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


def _meaning(found: list[Price], effect: float) -> str:
    """Return what the verdicts say, or that there are none."""
    if not any(one.ratio.has_interval for one in found):
        return f"Fewer than {MIN_TRIALS_FOR_INTERVAL} rounds: no interval, no verdict."
    many = f" ({len(found)} verdicts corrected by Holm's method)" if len(found) > 1 else ""
    return f"Slower or faster: significantly, by more than {effect:.0%}. Same: significantly within {effect:.0%}{many}."


def _line(one: Price) -> list[Cell]:
    unit = BY_NAME[one.metric].unit
    return [
        *texts(one.row.label, column_name(one.keras), TITLES[one.metric]),
        *(value(one.row, column, one.metric, unit) for column in (one.keras, one.native)),
        estimated(one.ratio),
        Cell(str(one.verdict)),
    ]
