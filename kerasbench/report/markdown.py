"""The tables of a run, as markdown."""

from kerasbench.catalog import label
from kerasbench.crossover import break_evens, speed_ups
from kerasbench.explain import anatomies
from kerasbench.machine import Machine
from kerasbench.report import explanation, sweep
from kerasbench.report.beside import beside_published
from kerasbench.report.cells import (
    NOTHING,
    column_name,
    column_names,
    count,
    draw_table,
    escape,
    metric_tables,
    timed,
    whole_steps,
)
from kerasbench.report.failures import failures
from kerasbench.report.native import what_keras_costs
from kerasbench.report.notes import corrected, first_step, let_in, training_notes
from kerasbench.report.number import plain, with_interval
from kerasbench.results import Record, TrialRecord
from kerasbench.summary import Comparison, Row, Summary
from kerasbench.verdict import Verdict, rounds_to_decide

GIB = 1 << 30
SCARCE_ROUNDS = 30  # more rounds than that are no advice


def document(summary: Summary) -> str:
    """Return the whole page: what was measured on, every table, what failed."""
    plain = summary.plain
    return _page(
        heading(summary),
        training(plain) if plain.rows or not summary.rows else "",
        explanation.document(anatomies(summary)),
        verdicts(plain),
        what_keras_costs(plain),
        devices(plain),
        sweep.document(summary),
        full_epochs(plain),
        predicted(plain),
        beside_published(plain),
        epochs(plain),
        prediction(plain),
        cold_start(plain),
        repaid(plain),
        learning(plain),
        phases(summary),
        disturbances(summary),
        failures(summary),
    )


def brief(summary: Summary) -> str:
    """Return what a terminal shows: the headline, what was published, what failed."""
    plain = summary.plain
    return _page(
        heading(summary),
        training(plain) if plain.rows or not summary.rows else "",
        sweep.brief(summary),
        what_keras_costs(plain),
        full_epochs(plain),
        beside_published(plain),
        failures(summary),
    )


def _page(*sections: str) -> str:
    return "\n\n".join(section for section in sections if section) + "\n"


def heading(summary: Summary) -> str:
    """Return the machine, the run, the versions, and on which terms each column was measured."""
    record = summary.record
    machine = record.machine
    system = f"{escape(machine.system)} {escape(machine.architecture)}"
    rounds = count(record.rounds_completed, "complete round")
    stopped = f"; stopped because {escape(record.stopped_because)}" if record.stopped_because else ""
    lines = [
        f"# kerasbench on {escape(machine.chip)}",
        f"{machine.cores} cores{_kinds(machine)}, {machine.memory_bytes / GIB:.0f} GiB{_gpus(machine)}, {system}. "
        f"Begun {escape(record.started)}{_resumed(record)}, {rounds}, seed {record.asked.seed}{stopped}.",
        escape(_versions(record)),
        escape("".join(f"Before the run: {signal.reason}. " for signal in record.noise).strip()),
        escape(let_in(summary)),
        "\n".join(f"- {column_name(column)}: {escape('; '.join(terms))}" for column, terms in summary.terms.items()),
    ]
    return "\n\n".join(line for line in lines if line)


def _resumed(record: Record) -> str:
    return escape(f", interrupted and resumed {' and '.join(record.resumed)}") if record.resumed else ""


def _kinds(machine: Machine) -> str:
    kinds = ", ".join(f"{count} {escape(kind)}" for kind, count in machine.cores_by_kind.items())
    return f" ({kinds})" if kinds else ""


def _gpus(machine: Machine) -> str:
    driver = f" (driver {machine.driver})" if machine.driver else ""
    return escape("".join(f", {gpu}" for gpu in machine.gpus) + driver)


def training(summary: Summary) -> str:
    """Return the headline table with its title and notes."""
    return f"## Training step\n\n{training_table(summary)}\n\n{training_notes(summary)}"


def table_so_far(summary: Summary) -> str:
    """Return what a run shows after each round: its tables of steps, without their titles and notes."""
    plain, swept = summary.plain, summary.swept
    tables = (training_table(plain) if plain.rows else "", sweep.table(swept) if swept.rows else "")
    return "\n\n".join(table for table in tables if table)


def training_table(summary: Summary) -> str:
    """Return the headline table: what a training step costs, its share of the epoch's overhead included."""
    body = [
        [*_subject(row), *(timed(row, column, standing) for column in summary.columns)]
        for row, standing in zip(summary.rows, summary.standings, strict=True)
    ]
    return draw_table(["scenario", "data", "batch", "steps", *column_names(summary.columns)], body)


def _subject(row: Row) -> list[str]:
    regime = row.regime
    batch = f"{regime.batch:,} (all)" if regime.full_batch else f"{regime.batch:,}"
    drawn = f"{regime.data}, synthetic" if regime.has_real_data and row.origin.data == "synthetic" else regime.data
    return [escape(row.label), escape(drawn), batch, f"{regime.steps:,}"]


def verdicts(summary: Summary) -> str:
    """Return the fastest of each row against each of the others: ratio, verdict, and what would decide."""
    rows = [
        [escape(row.label), column_name(standing.fastest), *_compared(comparison, summary.record.minimal_effect)]
        for row, standing in zip(summary.rows, summary.standings, strict=True)
        if standing.fastest is not None and standing.proven
        for comparison in standing.comparisons
    ]
    if not rows:
        return ""
    table = draw_table(["scenario", "fastest", "against", "ratio of times", "verdict", "rounds"], rows)
    effect = f"{summary.record.minimal_effect:.0%}"
    explanation = (
        f"The fastest cell's time over the other's, paired by round, with its 95 % interval{corrected(summary)}. "
        f"Faster: more than {effect} faster, beyond doubt. Same: within {effect}, beyond doubt. Rounds: about how many "
        "in all would decide at this scatter, of one comparison by itself."
    )
    return f"## Verdicts\n\n{table}\n\n{explanation}"


def _compared(one: Comparison, effect: float) -> list[str]:
    made, decides = one.ratio.trials, rounds_to_decide(one.ratio, effect)
    if one.verdict is not Verdict.INCONCLUSIVE:
        rounds = str(made)
    elif decides is None or decides > SCARCE_ROUNDS:
        rounds = f"over {SCARCE_ROUNDS}"
    else:
        rounds = str(max(decides, made + 1))  # one that Holm's correction took back needs more than it has
    return [column_name(one.rival), with_interval(one.ratio), one.verdict, rounds]


def epochs(summary: Summary) -> str:
    """Return what the headline is made of: a (each epoch), b (each step), and the epoch a + b * steps."""
    return metric_tables(
        summary,
        "Epoch",
        ("epoch_s", "epoch_overhead_ms", "steady_step_ms", "train_samples_per_s"),
        "An epoch of the published length is its overhead (start of the input pipeline, validation, a partial last "
        "batch) plus its steps. Where an epoch is one step, the two cannot be told apart.",
    )


def full_epochs(summary: Summary) -> str:
    """Return what the published protocol adds: all epochs, run in full."""
    return metric_tables(
        summary,
        "All published epochs",
        (
            "total_s",
            "epoch_s",
            "train_loss",
            "train_accuracy",
            "val_accuracy",
            "predict_s",
        ),
        "Run in full, shuffled, as published. The first epoch, which compiles, is in the total and in the epoch.",
        needed="total_s",
    )


def predicted(summary: Summary) -> str:
    """Return real epochs beside what a + b * steps says of them."""
    return metric_tables(
        summary,
        "Real epochs beside a + b · steps",
        ("later_epoch_s", "predicted_epoch_s", "prediction_ratio"),
        "The mean of the published epochs after the first, which compiles; measured seconds apart.",
        needed="total_s",
    )


def prediction(summary: Summary) -> str:
    return metric_tables(
        summary,
        "Prediction",
        (
            "predict_p50_ms",
            "predict_p90_ms",
            "predict_p99_ms",
            "predict_batch_p50_ms",
            "predict_batch_p90_ms",
            "predict_samples_per_s",
        ),
        "`predict_on_batch`, NumPy in and NumPy out, at batch 1 and at the batch of the scenario: its training "
        "batch, or 32, Keras' default, where that is the whole set or the publication predicted so. Throughput: "
        "`predict` over the test samples. In a single round, ± of a percentile is its order-statistic interval over "
        "the calls of that one process.",
    )


def cold_start(summary: Summary) -> str:
    return metric_tables(
        summary,
        "Before the first result",
        ("startup_ms", "build_ms", "first_step_ms", "compile_ms", "peak_rss_mib", "peak_device_mib"),
        f"Start-up: from starting the process to a first operation on the device. {first_step(summary)}",
    )


def repaid(summary: Summary) -> str:
    """Return after how many steps a longer first step has paid, where that is beyond doubt."""
    found = break_evens(summary.rows, summary.record.minimal_effect)
    if not found:
        return ""
    lines = [
        f"- {escape(one.row.label)}: {column_name(one.slow_start)} repays its {plain(one.extra_ms / 1e3)} s over "
        f"{column_name(one.rival)} after {whole_steps(one.steps)}."
        for one in found
    ]
    explanation = (
        "What the first step takes longer, over what each later one takes less. Only where both are beyond doubt."
    )
    return "## When compiling has paid\n\n" + "\n".join(lines) + f"\n\n{explanation}"


def devices(summary: Summary) -> str:
    """Return CPU against GPU, for each backend that was measured on both."""
    found = speed_ups(summary.rows, summary.record.minimal_effect)
    if not found:
        return ""
    rows = [
        [
            escape(one.row.label),
            column_name(one.cpu),
            column_name(one.gpu) + _named(one.row.cells[one.gpu].device_title),
            with_interval(one.ratio),
            f"GPU {one.verdict}",
        ]
        for one in found
    ]
    table = draw_table(["scenario", "CPU", "GPU", "CPU / GPU", "verdict"], rows)
    explanation = "Time of a step on the CPU over that on the GPU, paired by round: above 1 the GPU is faster."
    return f"## CPU against GPU\n\n{table}\n\n{explanation}"


def _named(title: str) -> str:
    return f", {escape(title)}" if title else ""


def learning(summary: Summary) -> str:
    return metric_tables(
        summary,
        "Learning",
        ("final_loss", "final_accuracy"),
        "After the same few steps from the same weights on the same batches: near-equal figures mean that the backends "
        "computed the same thing. They say nothing of the model at the end of its training. On samples that were not "
        "trained on, where the publication had any.",
    )


def phases(summary: Summary) -> str:
    """Return where the time of a trial went, on average, by column."""
    if not summary.phases_s:
        return ""
    rows = [
        [escape(name), *(f"{by_column[column]:.3f}" if column in by_column else NOTHING for column in summary.columns)]
        for name, by_column in summary.phases_s.items()
    ]
    table = draw_table(["phase (s)", *column_names(summary.columns)], rows)
    return f"## Where the time of a trial goes\n\n{table}\n\nMean over all trials that succeeded."


def disturbances(summary: Summary) -> str:
    """Return every trial that something disturbed, what it was, and whether the trial was repeated for it."""
    rows = [
        [
            escape(" ".join(filter(None, (label(trial.scenario, trial.regime), _size(trial))))),
            column_name(trial.column),
            str(trial.round),
            escape("; ".join(signal.reason for signal in trial.noise)),
            "invalid" if trial.disturbed else NOTHING,
        ]
        for trial in summary.record.trials
        if trial.noise
    ]
    if not rows:
        return ""
    table = draw_table(["scenario", "column", "round", "what disturbed it", ""], rows)
    return f"## Noise\n\n{table}\n\nAn invalid trial is kept in the data and repeated once in its round."


def _size(trial: TrialRecord) -> str:
    return trial.options.size.label if trial.options.size else ""


def _versions(record: Record) -> str:
    """Return one line of the versions that the children really ran, by package."""
    found: dict[str, set[str]] = {}
    for trial in record.trials:
        for package, version in trial.measurement.resolved.versions.items() if trial.measurement else ():
            found.setdefault(package, set()).add(version)
    return ", ".join(f"{package} {' and '.join(sorted(versions))}" for package, versions in sorted(found.items()))
