"""The further tables of a page: epochs, prediction, cold start, devices, learning, time, disturbances, versions."""

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import Summary
from kerasbench.report.cells import column_name, column_names, estimated, metric_section, whole_steps
from kerasbench.report.notes import first_step, paired
from kerasbench.report.number import significant
from kerasbench.report.sections import EMPTY, NOTHING, Cell, Section, Table, number, texts
from kerasbench.report.warned import advice
from kerasbench.results.record import TrialRecord
from kerasbench.text import label


def epochs(summary: Summary) -> Section | None:
    """Return what the headline is made of: a (each epoch), b (each step), and the epoch a + b * steps."""
    return metric_section(
        summary,
        "Epoch",
        ("train_step_ms", "epoch_s", "epoch_overhead_ms", "steady_step_ms", "train_samples_per_s"),
        [
            "An epoch of the published length is its overhead plus its steps. Overhead: starting the input pipeline, "
            "validation, a partial last batch.",
            "The overhead and the steps are not measured in turn: where the machine's speed changes in between, the "
            "overhead is off by that share of a short epoch. Ratios are not.",
            "Where an epoch is one step, the two cannot be told apart.",
        ],
    )


def full_epochs(summary: Summary) -> Section | None:
    """Return what the published protocol adds: all epochs, run in full."""
    return metric_section(
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
        ["Run in full, shuffled, as published. The first epoch, which compiles, is in the total and in the epoch."],
        needed="total_s",
    )


def predicted(summary: Summary) -> Section | None:
    """Return real epochs beside what a + b * steps says of them."""
    return metric_section(
        summary,
        "Real epochs and a + b · steps",
        ("later_epoch_s", "predicted_epoch_s", "prediction_ratio"),
        [
            "Measured: the mean of all epochs after the first, which compiles. Predicted: a + b · steps, where a is "
            "what an epoch costs once and b the time of a step. They are measured seconds apart."
        ],
        needed="total_s",
    )


def prediction(summary: Summary) -> Section | None:
    return metric_section(
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
        [
            "predict_on_batch, NumPy in and NumPy out, at batch 1 and at the training batch (32 if that is the "
            "whole data set, or if the publication used 32).",
            "Throughput: predict over the test samples.",
        ],
    )


MEMORY = (
    "Peak memory: with at most 64 MiB of training rows. More rows take more, on TensorFlow twice their size: it copies "
    "the arrays that fit is given, and JAX and torch do not."
)


def cold_start(summary: Summary) -> Section | None:
    return metric_section(
        summary,
        "Before the first result",
        ("startup_ms", "build_ms", "first_step_ms", "compile_ms", "peak_rss_mib", "peak_device_mib"),
        ["Start-up: from starting the process to a first operation on the device.", *first_step(summary), MEMORY],
    )


def repaid(found: Findings) -> Section | None:
    """Return after how many steps a longer first step has paid, where that is significant."""
    if not found.break_evens:
        return None
    lines = [
        f"{one.row.label}: {column_name(one.slow_start)} starts {significant(one.extra_ms / 1e3)} s slower than "
        f"{column_name(one.rival)}, and has made up for it after {whole_steps(one.steps)}."
        for one in found.break_evens
    ]
    explanation = (
        "Steps: the extra time of the first step, over the time that each later step saves. Only where both are "
        "significant, corrected for the number of pairs by Holm's method."
    )
    return Section("When compiling has paid", lines=lines, notes=[explanation], folded=True)


def devices(found: Findings) -> Section | None:
    """Return CPU against GPU, for each backend that was measured on both."""
    if not found.speed_ups:
        return None
    rows = [
        [
            *texts(one.row.label, column_name(one.cpu)),
            Cell(column_name(one.gpu) + _named(one.row.cells[one.gpu].device_title)),
            estimated(one.ratio),
            Cell(f"GPU {one.verdict}"),
        ]
        for one in found.speed_ups
    ]
    table = Table(["scenario", "CPU", "GPU", "CPU / GPU", "verdict"], rows)
    note = f"Time of a step on the CPU over that on the GPU, {paired(found.plain.rows)}: above 1 the GPU is faster."
    return Section("CPU against GPU", table=table, notes=[note], picture="speed_ups")


def _named(title: str) -> str:
    return f", {title}" if title else ""


def learning(summary: Summary) -> Section | None:
    return metric_section(
        summary,
        "Learning",
        ("final_loss", "final_accuracy"),
        [
            "After the same few steps from the same weights on the same batches: near-equal figures mean that the "
            "backends computed the same thing.",
            "They say nothing of the model at the end of its training.",
            "On samples that were not trained on, where the publication had any.",
        ],
    )


def phases(summary: Summary) -> Section | None:
    """Return where the time of a trial went, on average, by column."""
    if not summary.phases_s:
        return None
    rows = [
        [Cell(name), *(_seconds(by_column.get(column)) for column in summary.columns)]
        for name, by_column in summary.phases_s.items()
    ]
    table = Table(["phase (s)", *column_names(summary.columns)], rows)
    notes = ["Mean over all trials that succeeded; before the first slice, over those that started alone."]
    return Section("Where the time of a trial goes", table=table, notes=notes, picture="phases", folded=True)


def _seconds(duration_s: float | None) -> Cell:
    return EMPTY if duration_s is None else Cell(f"{duration_s:.3f}", duration_s)


def disturbances(summary: Summary) -> Section | None:
    """Return every trial that something disturbed, and what it was."""
    rows = [
        [
            Cell(" ".join(filter(None, (label(trial.scenario, trial.regime), _size(trial))))),
            Cell(column_name(trial.column)),
            number(trial.round),
            Cell("; ".join(signal.reason for signal in trial.noise)),
            Cell("badly" if trial.disturbed else NOTHING),
        ]
        for trial in summary.record.trials
        if trial.noise
    ]
    if not rows:
        return None
    table = Table(["scenario", "column", "round", "what disturbed it", ""], rows)
    selected = "No trial is repeated or left out for its noise: the others of its bout had it too."
    found = dict.fromkeys(signal.name for trial in summary.record.trials for signal in trial.noise)
    return Section("Noise", table=table, lines=[advice(name) for name in found], notes=[selected], folded=True)


def _size(trial: TrialRecord) -> str:
    return trial.options.size.label if trial.options.size else ""
