"""The tables of a run, as markdown."""

from collections.abc import Sequence

from tabulate import tabulate

from kerasbench.metrics import BY_NAME
from kerasbench.report.number import with_interval
from kerasbench.results import Record
from kerasbench.stats import MIN_TRIALS_FOR_INTERVAL
from kerasbench.summary import Column, Row, Summary, standing
from kerasbench.verdict import MINIMAL_EFFECT

GIB = 1 << 30
NOTHING = "–"
OVERHEAD_STEP_MS = 5  # below it a step is mostly Python and framework overhead (floors on a CPU: 0.2 to 1.5 ms)
TRAINING = "train_step_ms"


def document(summary: Summary) -> str:
    """Return the whole page: what was measured on, the tables, what failed."""
    sections = [
        heading(summary.record),
        training(summary),
        epochs(summary),
        prediction(summary),
        cold_start(summary),
        learning(summary),
        phases(summary),
        failures(summary),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def heading(record: Record) -> str:
    machine = record.machine
    system = f"{escape(machine.system)} {escape(machine.architecture)}"
    rounds = _count(record.rounds_completed, "complete round")
    stopped = f"; stopped because {record.stopped_because}" if record.stopped_because else ""
    lines = [
        f"# kerasbench on {escape(machine.chip)}",
        f"{machine.cores} cores, {machine.memory_bytes / GIB:.0f} GiB, {system}. "
        f"Begun {record.started}, {rounds}, seed {record.seed}{stopped}.",
        escape(_versions(record)),
    ]
    return "\n\n".join(line for line in lines if line)


def training(summary: Summary) -> str:
    """Return the headline table: what a training step costs, its share of the epoch's overhead included."""
    body = [[*_subject(row), *(_timed(row, column) for column in summary.columns)] for row in summary.rows]
    table = _table(["scenario", "batch", "steps", *_names(summary.columns)], body)
    return f"## Training step\n\n{table}\n\n{_training_notes(summary)}"


def _subject(row: Row) -> list[str]:
    batch = f"{row.regime.batch:,} (all)" if row.regime.full_batch else f"{row.regime.batch:,}"
    return [escape(row.label), batch, f"{row.regime.steps:,}"]


def _timed(row: Row, column: Column) -> str:
    cell = row.cells.get(column)
    if cell is None:
        return NOTHING
    found = cell.estimate(TRAINING)
    if found is None:
        return f"*{cell.failure.code}*" if cell.failure else NOTHING
    text = with_interval(found, BY_NAME[TRAINING].unit)
    place = standing(row, TRAINING)
    if column == place.fastest:
        return f"≈ {text}" if place.level else f"**{text}**"
    return f"≈ {text}" if column in place.level else text


def _training_notes(summary: Summary) -> str:
    notes = [
        "A step as a user of `fit` sees it: the time of an epoch of the published length over its steps. It contains "
        "feeding the batch, the step, its metrics, and its share of what each epoch costs once (validation included).",
    ]
    rounds = summary.record.rounds_completed
    if rounds < MIN_TRIALS_FOR_INTERVAL:
        notes.append(
            f"Bold: the fastest measured in {_count(rounds, 'complete round')}. Fewer than {MIN_TRIALS_FOR_INTERVAL} "
            "rounds give no interval, so this is no verdict."
        )
    else:
        notes.append(
            "±: 95 % interval over processes (Student's t on logarithms). Bold: faster than every other cell of its "
            f"row by more than {MINIMAL_EFFECT:.0%}, paired by round. ≈: the fastest, and what cannot be told from it."
        )
    if any(_is_mostly_overhead(row) for row in summary.rows):
        notes.append(
            f"Steps under {OVERHEAD_STEP_MS} ms are mostly Python and framework overhead, not the device's work."
        )
    unsteady = [
        f"{row.label} {_name(column)}" for row in summary.rows for column in row.cells if _unsteady(row, column)
    ]
    if unsteady:
        notes.append(f"Not shown to be steady before it was measured: {escape(', '.join(unsteady))}.")
    return "\n".join(f"- {note}" for note in notes)


def _is_mostly_overhead(row: Row) -> bool:
    found = [cell.estimate(TRAINING) for cell in row.cells.values()]
    return any(estimate.value < OVERHEAD_STEP_MS for estimate in found if estimate)


def _unsteady(row: Row, column: Column) -> bool:
    return any(not measurement.training.steady for _, measurement in row.cells[column].trials)


def epochs(summary: Summary) -> str:
    """Return what the headline is made of: a (each epoch), b (each step), and the epoch a + b * steps."""
    return _metric_tables(
        summary,
        "Epoch",
        ("epoch_s", "epoch_overhead_ms", "steady_step_ms", "train_samples_per_s"),
        "An epoch of the published length is its overhead (start of the input pipeline, validation, a partial last "
        "batch) plus its steps. Where an epoch is one step, the two cannot be told apart.",
    )


def prediction(summary: Summary) -> str:
    return _metric_tables(
        summary,
        "Prediction",
        ("predict_p50_ms", "predict_p90_ms", "predict_batch_p50_ms"),
        "`predict_on_batch`, NumPy in and NumPy out, at batch 1 and at the training batch (32 where that is the whole "
        "set).",
    )


def cold_start(summary: Summary) -> str:
    return _metric_tables(
        summary,
        "Before the first result",
        ("startup_ms", "build_ms", "first_step_ms", "peak_rss_mib", "peak_device_mib"),
        "Start-up: from starting the process to a first operation on the device. First step: tracing, compiling and "
        "running one `fit` of one batch, with empty compilation caches.",
    )


def learning(summary: Summary) -> str:
    return _metric_tables(
        summary,
        "Learning",
        ("final_loss", "final_accuracy"),
        "After the same few steps from the same weights on the same batches: near-equal figures mean that the backends "
        "computed the same thing. They say nothing of the model at the end of its training.",
    )


def _metric_tables(summary: Summary, title: str, names: Sequence[str], note: str) -> str:
    rows = [
        [escape(row.label), _title(name), *(_value(row, column, name) for column in summary.columns)]
        for row in summary.rows
        for name in names
        if any(cell.estimate(name) for cell in row.cells.values())
    ]
    if not rows:
        return ""
    return f"## {title}\n\n{_table(['scenario', 'figure', *_names(summary.columns)], rows)}\n\n{note}"


def _title(name: str) -> str:
    metric = BY_NAME[name]
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def _value(row: Row, column: Column, name: str) -> str:
    cell = row.cells.get(column)
    found = cell.estimate(name) if cell else None
    return with_interval(found) if found else NOTHING


def phases(summary: Summary) -> str:
    """Return where the time of a trial went, on average, by column."""
    if not summary.phases_s:
        return ""
    rows = [
        [name, *(f"{by_column[column]:.3f}" if column in by_column else NOTHING for column in summary.columns)]
        for name, by_column in summary.phases_s.items()
    ]
    table = _table(["phase (s)", *_names(summary.columns)], rows)
    return f"## Where the time of a trial goes\n\n{table}\n\nMean over all trials that succeeded."


def failures(summary: Summary) -> str:
    """Return every cell without a number, with cause and remedy."""
    rows = [
        [escape(row.label), _name(column), failure.code, escape(failure.cause), escape(failure.remedy)]
        for row, column, failure in summary.failures
    ]
    if not rows:
        return ""
    return "## Failures\n\n" + _table(["scenario", "column", "code", "cause", "remedy"], rows)


def _versions(record: Record) -> str:
    """Return one line of the versions that the children really ran, by package."""
    found: dict[str, set[str]] = {}
    for trial in record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            found.setdefault(package, set()).add(version)
    return ", ".join(f"{package} {' and '.join(sorted(versions))}" for package, versions in sorted(found.items()))


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    # disable_numparse: cells are text already; tabulate would reformat "1,230".
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def _names(columns: Sequence[Column]) -> list[str]:
    return [_name(column) for column in columns]


def _name(column: Column) -> str:
    return " ".join(column)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def escape(text: str) -> str:
    """Make text from a file or a child harmless in a markdown table: one line, no markup, no control characters."""
    one_line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    for character in "\\`*_[]<>|#":
        one_line = one_line.replace(character, f"\\{character}")
    return one_line.replace("\\_", "_")
