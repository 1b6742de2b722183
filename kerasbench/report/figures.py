"""Numbers as they stand in tables: three significant digits, a unit, an interval.

Columns in a sentence: ``JAX``, ``torch on the GPU``, ``TensorFlow with jit=on``.

What stands below a table of steps: what its figures and its marks are.

What tables of figures are made of: figures with their intervals, names of columns.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from kerasbench.analysis.cases import Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Estimate
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.summary import Summary, is_warned
from kerasbench.protocol.columns import (
    APPLE,
    AT,
    CPU,
    GPU,
    Axis,
    CaseKey,
    Column,
)
from kerasbench.report.sections import EMPTY, Cell, Section, Table, texts
from kerasbench.text import count, label

DIGITS = 3
WHOLE_BATCH = 100  # from here on a crossover is told to the sample
# Said of a cost that is none, in place of a negative number.
NOT_TOLD, BELOW = "not significantly above zero", "below zero"


def significant(value: float) -> str:
    """Return three significant digits, thousands separated, never in exponents: 0.0123, 1.85, 12.3, 1,230."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{DIGITS}g}")  # first, because 9.999 has one decimal fewer than it seems
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def with_interval(estimate: Estimate, unit: str = "") -> str:
    """Return ``12.3 ms ±1.8 %``, without the interval where there is none."""
    value = f"{significant(estimate.value)} {unit}".strip()
    return value if estimate.half_width is None else f"{value} ±{percent(estimate.half_width)}"


def factor(ratio: Estimate) -> str:
    """Return ``3.52× ±2 %``, without the interval where there is none; its width in one digit below 1 %, else whole."""
    value = f"{significant(ratio.value)}×"
    width = ratio.half_width
    if width is None:
        return value
    return f"{value} ±{percent(width)}" if width < 0.0095 else f"{value} ±{100 * width:.0f} %"


def times(ratio: Estimate) -> str:
    """Return ``3.9× (3.7–4.1)`` as a sentence has it, without the interval where there is none."""
    low, high = ratio.low, ratio.high
    decimals = 0 if ratio.value >= 9.95 else 1 if ratio.value >= 1.995 else 2
    if low is None or high is None:
        return f"{ratio.value:,.{decimals}f}×"
    while decimals < DIGITS and f"{low:.{decimals}f}" == f"{high:.{decimals}f}":
        decimals += 1
    return f"{ratio.value:,.{decimals}f}× ({_bound(low, decimals)}–{_bound(high, decimals)})"


def _bound(bound: float, decimals: int) -> str:
    """Return an end of a ratio's interval with as many decimals as the ratio, but two significant digits at least."""
    return f"{bound:,.{max(decimals, 1 - math.floor(math.log10(bound)))}f}"


def size_along(axis: Axis, size: float) -> str:
    """Return a size of a sweep; a crossover at a large batch is told to the sample."""
    if axis == "batch" and (size >= WHOLE_BATCH or float(size).is_integer()):
        return f"{size:,.0f}"
    return f"{size:.3g}"


def about(axis: Axis, size: float) -> str:
    """Return a size between those that were measured: a batch in whole samples."""
    return size_along(axis, round(size) if axis == "batch" else size)


def percent(share: float) -> str:
    """Return ``1.8 %``, two significant digits below ten."""
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"


def seconds(value: float) -> str:
    """Return a duration as a person says it: ``8 s``, ``2 min 05 s``, ``1 h 10 min``."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


SPELLED = {"jax": "JAX", "tensorflow": "TensorFlow"}  # torch writes itself in small letters


def names(columns: Iterable[Column]) -> dict[Column, str]:
    """Return what each column is called beside the others: its device is named where there are several.

    The label of an interpreter follows the backend: ``torch @keras-3.14 with jit=on``.
    """
    known = list(columns)
    several = len({column.device for column in known}) > 1
    return {column: _name(column, several) for column in known}


def _name(column: Column, several: bool) -> str:
    environment, terms = column.options.environment, column.with_options(environment="").options.label
    named = SPELLED.get(column.backend, column.backend) + (f" {AT}{environment}" if environment else "")
    place = f" on {_place(column.device)}" if several else ""
    return f"{named}{place}{f' with {terms}' if terms else ''}"


def _place(device: str) -> str:
    kind, _, index = device.partition(":")
    known = kind.upper() if kind in (CPU, GPU) else kind
    return f"{known} {index}" if index else f"the {known}"


def listed(parts: Sequence[str]) -> str:
    """Return ``JAX``, ``JAX and torch``, ``JAX, TensorFlow and torch``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


OVERHEAD_STEP_MS = 5  # below it a step is mostly Python and framework overhead (floors on a CPU: 0.2 to 1.5 ms)
LEGEND = "Bold: significantly the fastest. ≈: not significantly slower than the fastest. ⚠: see Warnings."
PREDICTED = (
    "(predict): a model that is not trained, because it was saved without compile(); its figure is predict_on_batch "
    "of one batch, median."
)
STEP = (
    "A typical step of fit, without its progress bar: the time of an epoch over its steps, by medians. It contains "
    "feeding the batch, the step, its metrics, and its share of what each epoch costs once."
)


def timed_in(rows: Sequence[Row]) -> str:
    """Return what the headline of these rows is the time of: a training step, but of a model that is not trained."""
    kinds = {row.workload.predicts_only for row in rows}
    return "prediction" if kinds == {True} else "training step or prediction" if True in kinds else "training step"


def training_notes(summary: Summary, step: str = STEP) -> list[str]:
    """Return what a table of steps cannot say in a cell, one line each; ``step`` says what a step is there."""
    notes = list(_verdict_notes(summary))
    if not all(row.workload.predicts_only for row in summary.rows):
        notes.append(step)
    if any(row.workload.predicts_only for row in summary.rows):
        notes.append(PREDICTED)
    if any(_is_mostly_overhead(row) for row in summary.rows):
        notes.append(
            f"Steps under {OVERHEAD_STEP_MS} ms are mostly Python and framework overhead, not the device's work."
        )
    if any(column.options.native for column in summary.columns):
        notes.append("native=on: the same model in the plain framework, without Keras; see What Keras costs.")
    if any(column.options.busy_cores for column in summary.columns):
        notes.append("busy-cores=N: kerasbench kept N processors busy beside it; see What busy cores cost.")
    return notes


def _verdict_notes(summary: Summary) -> Iterator[str]:
    """Say what the marks of the table rest on."""
    few = [row for row in summary.rows if row.rounds < MIN_TRIALS_FOR_INTERVAL]
    proven = any(ranking.proven for ranking in summary.rankings)
    if not proven and len(few) == len(summary.rows):
        rounds = max((row.rounds for row in summary.rows), default=summary.record.rounds_completed)
        yield (
            f"Bold: the fastest measured in {count(rounds, 'complete round')}: too few for an interval, so nothing is "
            "proven. ⚠: see Warnings."
        )
        return
    yield LEGEND
    yield f"×: the time over that of the fastest of the row. ±: the 95 % interval of it, {paired(summary.rows)}."
    yield f"Significant: by more than {summary.record.minimal_effect:.0%}{corrected(summary)}."


def paired(rows: Sequence[Row]) -> str:
    """Return how the cells of these rows were compared."""
    ways = {row.in_turn for row in rows if len(row.cases) > 1}
    if ways == {True, False}:
        return "compared block by block, and what was measured one after another by rounds"
    return "compared block by block" if ways == {True} else "paired by rounds"


def first_step(summary: Summary) -> list[str]:
    """Return what a first step is, and how cold its compilation was."""
    notes = ["First step: tracing, compiling and running one fit of one batch, with empty compilation caches."]
    if any(trial.device.platform in APPLE for trial in summary.record.trials):
        # Metal's compiler keeps kernels in the user's cache folder of macOS (com.apple.metal), by program.
        notes.append("On the Apple GPU, macOS keeps Metal's own cache: kernels may come from an earlier trial.")
    return notes


def corrected(summary: Summary) -> str:
    """Return how many verdicts of a table were judged together."""
    made = sum(len(ranking.comparisons) for ranking in summary.rankings if ranking.proven and not ranking.withheld)
    return f" ({made} verdicts corrected by Holm's method)" if made > 1 else ""


def _is_mostly_overhead(row: Row) -> bool:
    found = [cell.estimate(row.headline) for cell in row.cases.values() if not row.workload.predicts_only]
    return any(estimate.value < OVERHEAD_STEP_MS for estimate in found if estimate)


def metric_section(
    summary: Summary, title: str, names: Sequence[str], notes: Sequence[str], needed: str = ""
) -> Section | None:
    """Return a section with a row for each workload and figure; none where no cell has the ``needed`` one."""
    if needed and not any(cell.estimate(needed) for row in summary.rows for cell in row.cases.values()):
        return None
    rows = [
        [*texts(row.label, title_of(name)), *values]
        for row in summary.rows
        for name in names
        for values in [[value(row, column, name) for column in summary.columns]]
        if any(one != EMPTY for one in values)
    ]
    if not rows:
        return None
    table = Table(["scenario", "figure", *column_names(summary.columns)], rows)
    return Section(title, table=table, notes=notes)


def title_of(name: str) -> str:
    metric = BY_NAME[name]
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def value(row: Row, column: Column, name: str, unit: str = "") -> Cell:
    cell = row.cases.get(column)
    found = cell.estimate(name) if cell else None
    if cell is None or found is None:
        return EMPTY
    if BY_NAME[name].difference and (sign := cell.sign(name)) < 1:
        return Cell(BELOW if sign else NOT_TOLD)
    return estimated(found, unit)


def estimated(found: Estimate, unit: str = "") -> Cell:
    """Return a figure with its interval."""
    return Cell(with_interval(found, unit), found.value)


def timed(row: Row, column: Column, place: Ranking) -> Cell:
    """Return the step of a cell as it stands in a table of steps, with its marks and its place.

    ``2.45 ms`` for the fastest, ``8.62 ms, 3.52× ±2 %`` for the others. A cell that is compared with no other has its
    own interval.
    """
    cell = row.cases.get(column)
    found = cell.estimate(row.headline) if cell else None
    if cell is None or found is None:
        return failed(row, column)
    text = _time(found, BY_NAME[row.headline].unit, column, place)
    level = bool(place.level) and column in (place.fastest, *place.level)
    return Cell(
        text, found.value, strong=column == place.first, level=level, warned=place.disturbed or is_warned(row, column)
    )


def failed(row: Row, column: Column) -> Cell:
    """Return what stands where there is no number: the failure's code, or nothing."""
    cell = row.cases.get(column)
    return Cell(cell.failure.code, failed=True) if cell and cell.failure else EMPTY


def _time(found: Estimate, unit: str, column: Column, place: Ranking) -> str:
    if column == place.fastest and place.comparisons:
        return f"{significant(found.value)} {unit}"
    ratio = place.over_fastest(column)
    return with_interval(found, unit) if ratio is None else f"{significant(found.value)} {unit}, {factor(ratio)}"


def column_names(columns: Sequence[Column]) -> list[str]:
    return [column_name(column) for column in columns]


def column_name(column: Column) -> str:
    """Return a column's name, ``jax cpu threads=1``."""
    return column.label


def case_name(case: CaseKey) -> str:
    """Return ``mnist_mlp/tiny jax cpu``, with the options where there are any."""
    column = case.column
    parts = (label(case.scenario, case.workload), column.backend, column.device, case.options.label)
    return " ".join(part for part in parts if part)


def whole_steps(steps: float) -> str:
    """Return ``78 steps`` for anything above 77, three digits of what is larger; the first step is always made."""
    return f"{significant(steps)} steps" if steps >= 100 else count(max(1, math.ceil(steps)), "step")
