"""The further tables of a page: epochs, prediction, cold start, devices, learning, time, disturbances, versions."""

from kerasbench.analysis.drift import WORTH_NAMING
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import Summary
from kerasbench.quiet.signals import PARKED_WARN
from kerasbench.report.cells import column_name, column_names, metric_tables, whole_steps
from kerasbench.report.markdown import NOTHING, draw_table, escape
from kerasbench.report.notes import first_step, paired
from kerasbench.report.number import percent, significant, with_interval
from kerasbench.results.keys import Column
from kerasbench.results.record import TrialRecord
from kerasbench.text import label


def epochs(summary: Summary) -> str:
    """Return what the headline is made of: a (each epoch), b (each step), and the epoch a + b * steps."""
    return metric_tables(
        summary,
        "Epoch",
        ("train_step_ms", "epoch_s", "epoch_overhead_ms", "steady_step_ms", "train_samples_per_s"),
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


def repaid(found: Findings) -> str:
    """Return after how many steps a longer first step has paid, where that is significant."""
    if not found.break_evens:
        return ""
    lines = [
        f"- {escape(one.row.label)}: {column_name(one.slow_start)} repays its {significant(one.extra_ms / 1e3)} s over "
        f"{column_name(one.rival)} after {whole_steps(one.steps)}."
        for one in found.break_evens
    ]
    explanation = (
        "What the first step takes longer, over what each later one takes less. Only where both are significant, "
        "corrected for the number of pairs by Holm's method."
    )
    return "## When compiling has paid\n\n" + "\n".join(lines) + f"\n\n{explanation}"


def devices(found: Findings) -> str:
    """Return CPU against GPU, for each backend that was measured on both."""
    if not found.speed_ups:
        return ""
    rows = [
        [
            escape(one.row.label),
            column_name(one.cpu),
            column_name(one.gpu) + _named(one.row.cells[one.gpu].device_title),
            with_interval(one.ratio),
            f"GPU {one.verdict}",
        ]
        for one in found.speed_ups
    ]
    table = draw_table(["scenario", "CPU", "GPU", "CPU / GPU", "verdict"], rows)
    explanation = (
        f"Time of a step on the CPU over that on the GPU, {paired(found.plain.rows)}: above 1 the GPU is faster."
    )
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


def drifts(found: Findings) -> str:
    """Return what taking turns did not cancel: who was not still, who changed alone, who feels a predecessor."""
    lines = [
        f"- {escape(one.row.label)} {column_name(one.column)} used {percent(one.share)} of a core while others had "
        "their turns."
        for one in found.awake
    ]
    lines += [
        f"- {escape(one.row.label)} {column_name(one.column)}: slices took {with_interval(one.change)} times as long "
        f"{_when(one.after)}, beside those of the others."
        for one in found.drifts
    ]
    if not lines:
        return ""
    explanation = (
        f"Significant changes of more than {WORTH_NAMING:.0%}, all corrected together by Holm's method, and stopped "
        f"columns that used more than {percent(PARKED_WARN)} of a core."
    )
    return "## What turns did not cancel\n\n" + "\n".join(lines) + f"\n\n{explanation}"


def _when(after: Column | None) -> str:
    if after is None:
        return "in the second half of a bout as in the first"
    return f"right after {column_name(after)} as after others"


def disturbances(summary: Summary) -> str:
    """Return every trial that something disturbed, and what it was."""
    rows = [
        [
            escape(" ".join(filter(None, (label(trial.scenario, trial.regime), _size(trial))))),
            column_name(trial.column),
            str(trial.round),
            escape("; ".join(signal.reason for signal in trial.noise)),
            "badly" if trial.disturbed else NOTHING,
        ]
        for trial in summary.record.trials
        if trial.noise
    ]
    if not rows:
        return ""
    table = draw_table(["scenario", "column", "round", "what disturbed it", ""], rows)
    selected = (
        "No trial is repeated or left out for its noise: the others of its bout had it too."
        if any(trial.bout for trial in summary.record.trials)
        else "A badly disturbed trial is kept in the data and was measured again in its round, once."
    )
    return f"## Noise\n\n{table}\n\n{selected}"


def _size(trial: TrialRecord) -> str:
    return trial.options.size.label if trial.options.size else ""
