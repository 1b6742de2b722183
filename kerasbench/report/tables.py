"""The tables of a page: steps, verdicts, epochs, prediction, devices, baselines, sessions, noise, and a sweep."""

from collections.abc import Callable, Sequence
from itertools import chain

from kerasbench.analysis.cases import HEADLINE, Row
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL, Interval, Verdict, sign
from kerasbench.analysis.findings import Figure, Findings, Side, figures
from kerasbench.analysis.metrics import BY_NAME, CALLED
from kerasbench.analysis.rankings import CONTROL_BOUND, Comparison, Contrast, believed, sittings
from kerasbench.analysis.series import FIT_TOLERANCE
from kerasbench.analysis.summary import Summary
from kerasbench.host.noise import Severity, Signal
from kerasbench.protocol.columns import AXES, Axis, Column
from kerasbench.report import charts
from kerasbench.report.conditions import advice
from kerasbench.report.figures import (
    BELOW_ZERO,
    NOT_ABOVE_ZERO,
    as_given,
    confidence,
    corrected,
    could_have_seen,
    estimated,
    first_step,
    judged_together,
    metric_section,
    names,
    paired,
    percent,
    size_along,
    start_up,
    three_digits,
    timed,
    timed_in,
    times,
    training_notes,
    value,
    with_interval,
)
from kerasbench.report.sections import EMPTY, Cell, Section, Table, number, texts
from kerasbench.results.record import TrialRecord
from kerasbench.text import label

OF_TRAINING = {"epoch_s": "epoch", "steady_step_ms": "step inside an epoch"}
SCARCE_ROUNDS = 30  # more rounds than that are no advice


def training(found: Findings) -> Section | None:
    """Return the headline table: steps, or predictions of untrained models; None if only a sweep was measured."""
    summary = found.plain
    what = timed_in(summary.rows)
    title = "Time of a prediction" if what == "prediction" else what.capitalize()
    if not found.summary.rows:
        return Section(title, lines=["Nothing was measured."])
    if not summary.rows:
        return None
    body = [
        [Cell(row.label), *(timed(row, column, ranking) for column in summary.columns)]
        for row, ranking in summary.ranked
    ]
    table = Table(["scenario", *(column.label for column in summary.columns)], body)
    return Section(title, table=table, notes=list(training_notes(summary)))


def verdicts(found: Findings) -> Section | None:
    """Return the fastest of each row against each of the others: ratio, verdict, and what would decide."""
    summary, least = found.plain, as_given(found.effect)
    rows = [
        [*texts(row.label, ranking.fastest.label), *_compared(comparison, ranking.withheld)]
        for row, ranking in summary.ranked
        if ranking.fastest is not None and ranking.proven
        for comparison in ranking.comparisons
    ]
    table = Table(["scenario", "fastest", "against", "ratio of times", "verdict", "rounds"], rows)
    notes = [
        f"The fastest case's time over the other's, {paired(summary.rows)}, ±: its {confidence(summary.rankings)} "
        f"interval{corrected(summary)}.",
        f"Faster: significantly, by more than {least}. Same: significantly within {least}.",
        "Rounds: how many were made, and of an inconclusive verdict about how many this comparison alone would need. "
        "Another day: more rounds of one sitting would not decide it.",
        *could_have_seen(
            chain.from_iterable(one.comparisons for one in summary.rankings if one.proven and not one.withheld),
            found.effect,
        ),
    ]
    return Section("Verdicts", table=table, notes=notes) if rows else None


def _compared(one: Comparison, withheld: bool) -> list[Cell]:
    made, decides = one.ratio.trials, one.decides
    if one.verdict is not Verdict.INCONCLUSIVE:
        rounds = number(made)
    elif one.ratio.disturbed or withheld:
        rounds = EMPTY  # it has no verdict
    elif one.ratio.basis == "sittings" or (decides is None and one.ratio.between_sittings):
        rounds = Cell("another day")  # more rounds of the same days would not decide it
    elif decides is None or decides > SCARCE_ROUNDS:
        rounds = Cell(f"over {SCARCE_ROUNDS}", SCARCE_ROUNDS)
    else:
        rounds = number(max(decides, made + 1))  # one that is not called beside the others needs more than it has
    return [Cell(one.rival.label), estimated(one.ratio), Cell(one.verdict), rounds]


def controls(found: Findings) -> Section | None:
    summary = found.summary
    lines = []
    for row, ranking in summary.ranked:
        if ranking.control is not None:
            ratio = with_interval(ranking.control.ratio)
            off = "; this is not 1, so the row has no verdicts" if ranking.control.is_off else ""
            lines.append(f"{row.label}: {ranking.control.column.label} against itself: {ratio}{off}.")
    notes = [
        "One column of each row was measured twice in every block. The ratio of the two should be 1; smaller "
        "differences than its interval cannot be distinguished here.",
        f"Where the interval lies wholly outside ±{as_given(CONTROL_BOUND)}, the row has no verdicts.",
    ]
    return Section("A/A control: what this machine cannot distinguish", lines=lines, notes=notes) if lines else None


def _of_metrics(title: str, metrics: str, *notes: str, needed: str = "") -> Callable[[Findings], Section | None]:
    return lambda found: metric_section(found.plain, title, metrics.split(), notes, needed)


epochs = _of_metrics(
    "Epoch",
    "train_step_ms epoch_s epoch_overhead_ms steady_step_ms train_samples_per_s",
    "An epoch of the published length is its overhead plus its steps. Overhead: starting the input pipeline, "
    "validation, a partial last batch.",
    "The overhead and the steps are not measured in turn: where the machine's speed changes in between, the overhead "
    "is off by that share of a short epoch. Ratios are not.",
    "Where an epoch is one step, the two cannot be told apart.",
)
full_epochs = _of_metrics(
    "All published epochs",
    "total_s epoch_s train_loss train_accuracy val_accuracy predict_s",
    "Run in full, shuffled, as published. The first epoch, which compiles, is in the total and in the epoch.",
    needed="total_s",
)
predicted = _of_metrics(
    "Real epochs and a + b · steps",
    "later_epoch_s predicted_epoch_s prediction_ratio",
    "Measured: the mean of all epochs after the first, which compiles. Predicted: a + b · steps, where a is what an "
    "epoch costs once and b the time of a step. They are measured seconds apart.",
    needed="total_s",
)
prediction = _of_metrics(
    "Prediction",
    "predict_p50_ms predict_p90_ms predict_p99_ms predict_batch_p50_ms predict_batch_p90_ms predict_samples_per_s",
    "predict_on_batch, NumPy in and NumPy out, at batch 1 and at the training batch (32 if that is the whole data "
    "set, or if the publication used 32).",
    "The 99th percentile is of those rounds alone that had 1,000 calls.",
    "Throughput: predict over the test samples.",
)
calls = _of_metrics(
    "Calls",
    " ".join(f"{called}_p50_ms" for called in CALLED) + " compiled_call_first_ms",
    "Medians. One batch: the training batch (32 if that is the whole data set).",
    "model(x): model(x, training=False) on a tensor that lies on the device, without gradients (torch: in "
    "inference_mode). compile(jit_compile=...) does not change it.",
    "Compiled: the same call as a whole, by torch.compile (jit=on), jax.jit or tf.function (jit=on: with XLA).",
    "predict_on_batch and predict take NumPy and give NumPy. They are compiled as compile() says. predict is called "
    "once for each batch.",
    "First compiled call: the first of model(x) compiled, one sample. On torch, predict_on_batch of Keras has compiled "
    "the same model before, so much of it lies ready.",
    "All ways gave the same outputs.",
    needed="call_p50_ms",
)
learning = _of_metrics(
    "Learning",
    "final_loss final_accuracy",
    "After the same few steps from the same weights on the same batches: near-equal figures mean that the backends "
    "computed the same thing.",
    "They say nothing of the model at the end of its training.",
    "On samples that were not trained on, where the publication had any.",
)


def cold_start(found: Findings) -> Section | None:
    return metric_section(
        found.plain,
        "Before the first result",
        (
            *("startup_ms", "build_ms", "first_step_ms", "compile_ms"),
            *("rss_start_mib", "rss_build_mib", "rss_train_mib", "peak_rss_mib"),
            *("device_start_mib", "device_build_mib", "device_train_mib", "peak_device_mib"),
        ),
        [
            *start_up(found.plain),
            "Peak memory is with at most 64 MiB of training rows; with --protocol published, with all of them.",
            "More rows take more memory, on TensorFlow twice their size: it copies what fit is given.",
        ],
    )


def devices(found: Findings) -> Section | None:
    rows = [
        [
            *texts(one.row.label, one.other.label),
            Cell(", ".join(filter(None, (one.column.label, one.row.cases[one.column].device_title)))),
            estimated(one.ratio.inverse),
            Cell(f"GPU {one.verdict}"),
        ]
        for one in found.speed_ups
    ]
    table = Table(["scenario", "CPU", "GPU", "CPU / GPU", "verdict"], rows)
    timed = timed_in(found.plain.rows)
    note = f"Time of a {timed} on the CPU over that on the GPU, {paired(found.plain.rows)}: above 1 the GPU is faster."
    notes = [note, *could_have_seen(_believed(found.speed_ups), found.effect)]
    return Section("CPU against GPU", table=table, notes=notes) if rows else None


def noise(found: Findings) -> Section | None:
    """Return what disturbed trials: each signal with how many trials had it, one of the worst, and what helps."""
    trials = found.record.trials
    signals: dict[str, list[tuple[TrialRecord, Signal]]] = {}
    for trial in trials:
        for signal in trial.noise:
            signals.setdefault(signal.name, []).append((trial, signal))
    rows = []
    for name, disturbed in signals.items():
        badly = [each for each in disturbed if each[1].severity is Severity.INVALID]
        trial, signal = (badly or disturbed)[0]
        case = f"{label(trial.scenario, trial.workload)} {trial.column.label}"
        example = f"{signal.reason} ({case}, round {trial.round})"
        rows.append([Cell(name), number(len(disturbed)), number(len(badly)), Cell(example)])
    table = Table(["disturbance", "trials", "of these severe", "for example"], rows)
    notes = [
        f"Of {len(trials)} trials. The data file has the signals of each.",
        "These signals leave nothing out. What counts is decided turn by turn (docs/how-it-works.md, Other processes).",
    ]
    return Section("Noise", table=table, lines=[advice(name) for name in signals], notes=notes) if rows else None


def what_keras_costs(found: Findings) -> Section | None:
    rows = []
    for one in found.prices:
        what = OF_TRAINING.get(one.metric, BY_NAME[one.metric].title)
        rows.append([*texts(one.row.label, one.column.label, what), *_overhead(one, one.column, one.other)])
    headers = ["scenario", "column", "of", "with Keras", "without", "Keras / native", "Keras is"]
    steady = all(row.origin.protocol == "steady" for row in found.plain.rows)
    agreeing = "; their first six losses agree" if steady else ""
    trained = any(one.metric in OF_TRAINING for one in found.prices)
    notes = [
        "The same model, weights, loss, optimizer and metrics, trained by Keras and by a loop in the plain framework"
        f"{agreeing}."
        if trained
        else "The same model with the same weights, in Keras and in the plain framework.",
        f"Ratio of times, {paired(found.plain.rows)}: above 1 Keras costs something.",
        _meaning(found.prices, found.effect),
        *could_have_seen(_believed(found.prices), found.effect),
        "docs/how-it-works.md says what is equal and what is not.",
    ]
    return Section("What Keras costs", table=Table(headers, rows), notes=notes) if rows else None


def what_a_warm_cache_saves(found: Findings) -> Section | None:
    """Return the first step, or the first compiled call, cold and warm."""
    rows, lines = [], []
    called = names(one.other for one in found.warm_caches)
    for one in found.warm_caches:
        what, case = BY_NAME[one.metric].title, one.row.cases[one.column]
        times_ms = [one.row.cases[column].estimate(one.metric) for column in (one.other, one.column)]
        cold, warm = (f"{three_digits(time.value / 1000)} s" if time else "–" for time in times_ms)
        lines.append(f"{one.row.label}: {called[one.other]}: {what.lower()} {cold} cold, {warm} warm.")
        read = [m.resolved.cached for _, m in case.trials if m.resolved.cached is not None]
        cells = _overhead(one, one.other, one.column)
        rows.append([*texts(one.row.label, one.other.label, what), *cells, number(max(read)) if read else EMPTY])
    headers = ["scenario", "column", "of", "cold", "warm", "warm / cold", "warm it is", "files read"]
    notes = [
        "Warm: a fresh process that finds what an earlier one of the same case has compiled. Cold: one that finds "
        "nothing.",
        "Files read: with compiled programs. A warm column that reads none is no row. –: not known, because the file "
        "system keeps no times of access.",
        "JAX keeps all that it compiles. torch and TensorFlow keep what --jit on compiles (TensorFlow: XLA).",
        _meaning(found.warm_caches, found.effect),
    ]
    return Section("What a warm cache saves", lines=lines, table=Table(headers, rows), notes=notes) if rows else None


def _believed(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Return those whose row's control takes no verdict away."""
    return [one for one in contrasts if believed(one.row)]


def _overhead(one: Contrast, first: Column, second: Column) -> list[Cell]:
    unit = BY_NAME[one.metric].unit
    values = (value(one.row, column, one.metric, unit) for column in (first, second))
    return [*values, estimated(one.ratio), Cell(str(one.verdict))]


def _meaning(overheads: Sequence[Contrast], effect: float) -> str:
    if not any(one.ratio.has_interval for one in overheads):
        return f"Fewer than {MIN_TRIALS_FOR_INTERVAL} rounds: no interval, no verdict."
    least, many = as_given(effect), judged_together(len(_believed(overheads)))
    return f"Slower or faster: significantly, by more than {least}. Same: significantly within {least}{many}."


def beside_published(found: Findings) -> Section | None:
    """Return the published figures beside what was measured here, all as ms a step, and what else was published."""
    known = figures()
    rows, lines = [], []
    for row in found.plain.rows:
        # A user's own scenario may have the name of a built-in one.
        for figure in [] if row.own else known.get((row.scenario.name, row.workload.name), []):
            measured = [value(row, column, HEADLINE) for column in found.plain.columns]
            rows.append([Cell(row.label), *_published(figure, row.workload.steps), *measured])
            if figure.remarks:
                lines.append(f"{row.label}: {'; '.join(figure.remarks)}.")
    headers = ["scenario", "published CPU", "published GPU", "GPU / CPU", "their machine"]
    table = Table([*headers, *(column.label for column in found.plain.columns)], rows)
    notes = [
        "All figures are milliseconds a step, with validation and everything else in an epoch. A published total or "
        "epoch is divided by its steps.",
        "GPU / CPU above 1: the author's GPU was the slower one. ⚠ at a published figure: it cannot be right.",
    ]
    has_any = any(not cell.is_empty for row in rows for cell in row[len(headers) :])
    return Section("Published figures", table=table, lines=lines, notes=notes) if has_any else None


def _published(figure: Figure, steps: int) -> list[Cell]:
    ratio = figure.gpu_over_cpu(steps)
    batch = "" if figure.batch is None else f"batch {figure.batch}"
    machine = "; ".join(filter(None, (figure.hardware, figure.software, batch, figure.precision)))
    over = EMPTY if ratio is None else Cell(f"{ratio:.2f}", ratio)
    return [_side(figure.cpu, steps), _side(figure.gpu, steps), over, Cell(machine)]


def _side(side: Side | None, steps: int) -> Cell:
    span = side.ms_per_step(steps) if side else None
    if side is None or span is None:
        return EMPTY
    low, high = (three_digits(value) for value in span)
    return Cell(low if low == high else f"{low}–{high}", span[0], warned=bool(side.flag))


def each_sitting(found: Findings) -> Section | None:
    """Return the ratios of each sitting, and by how much two of them differ, of a run that was continued later."""
    compared = [one for row, ranking in found.summary.ranked for one in sittings(row, ranking)]
    if not compared:
        return None
    numbers = sorted({number for one in compared for number in one.ratios})
    rows, spans = [], []
    for one in compared:
        apart = EMPTY
        if one.apart is not None:
            apart = Cell(percent(one.apart.value - 1), one.apart.value - 1, warned=one.differ)
        ratios = [one.ratios.get(number) for number in numbers]
        cells = [EMPTY if ratio is None else Cell(times(ratio), ratio.value) for ratio in ratios]
        rows.append([*texts(one.row.label, one.column.label, one.fastest.label), *cells, apart])
    runs = {one.row.run for one in compared}
    of_runs = [one for one in found.record.trials if one.measurement and found.record.origin(one.group).started in runs]
    for sitting in numbers:
        ended = sorted(trial.ended for trial in of_runs if trial.sitting == sitting)
        spans.append(f"Sitting {sitting}: its rounds ended from {ended[0]} to {ended[-1]}.")
    headers = ["scenario", "column", "against", *(f"sitting {number}" for number in numbers), "apart"]
    notes = [
        "The run went on after more than an hour, or after the machine had been started again. The time relative to "
        "the fastest, in each sitting.",
        *spans,
        "With three sittings or more the intervals of all tables are over sittings. With two they are over rounds, "
        "and wider by what sittings are taken to differ by.",
    ]
    return Section("Sittings", table=Table(headers, rows), notes=notes)


def sweep(found: Findings) -> Section | None:
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
    step = (
        "A step inside an epoch (steady_step_ms): feeding the batch, the step, its metrics. What an epoch costs once "
        "is not in it."
    )
    notes = list(training_notes(found.sized, step))
    if any(len(pair.ratios) > 1 for series in found.sweeps for pair in series.duels):
        notes += [
            f"Crossovers: who is slower by more than {as_given(found.effect)} is judged at each size, "
            f"{paired(found.sized.rows)}, all sizes and pairs together.",
            "A crossover lies between two sizes at which different columns are significantly faster. Its place: the "
            "ratio's logarithm, interpolated over log2 of the size.",
            "Its 95 % interval is by parametric bootstrap, and left out with too few rounds. It holds only for the "
            "sizes measured.",
        ]
    return Section("Sweep", table=_of_sizes(found.sized), lines=lines, notes=notes, chart=charts.curves(found))


def _of_sizes(sized: Summary) -> Table:
    columns = [column for column in sized.columns if any(column in row.cases for row in sized.rows)]
    axes = [axis for axis in AXES if any(not _at(row, axis).is_empty for row in sized.rows)]
    body = [
        [
            Cell(row.name),
            *(_at(row, axis) for axis in axes),
            *(timed(row, column, ranking) for column in columns),
        ]
        for row, ranking in sized.ranked
    ]
    return Table(["scenario", *axes, *(column.label for column in columns)], body)


def _at(row: Row, axis: Axis) -> Cell:
    size = row.size.along(axis) if row.size else None
    return EMPTY if size is None else Cell(size_along(axis, size), size)


def costs(found: Findings) -> Section | None:
    rows = []
    for series in found.sweeps:
        for column, model in series.costs.items():
            deviation = Cell(f"{percent(model.deviation)} at batch {model.worst:,}", model.deviation)
            parameters = [_parameter(model.overhead), _parameter(model.per_sample.times(1e3))]
            fits = Cell("yes" if model.fits else "no")
            rows.append([*texts(series.label, column.label), *parameters, deviation, fits])
    figures = ["overhead (ms)", "cost per sample (µs)", "largest deviation", "explains the series"]
    notes = [
        "Step = overhead + cost per sample · batch: a line by least squares, weighted by the sizes' intervals; in "
        "brackets 95 % intervals.",
        f"yes: every size is within {as_given(FIT_TOLERANCE)} of the line or within its own interval.",
    ]
    table = Table(["scenario", "column", *figures], rows)
    return Section("Overhead and cost per sample", table=table, notes=notes) if rows else None


def _parameter(found: Interval) -> Cell:
    value, low, high = (three_digits(one) for one in (found.value, found.low, found.high))
    above = sign(found.value, found.low, found.high)
    if above == 1:
        return Cell(f"{value} ({low} to {high})", found.value)
    return Cell(f"{BELOW_ZERO if above else NOT_ABOVE_ZERO} ({low} to {high})")


def by_size(found: Findings) -> Section | None:
    return metric_section(
        found.sized,
        "Throughput and memory by size",
        ("train_samples_per_s", "first_step_ms", "peak_rss_mib", "peak_device_mib"),
        ["Throughput follows from the step inside an epoch.", *first_step(found.sized)],
    )
