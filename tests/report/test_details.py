"""The further tables of a page, as a reader finds them there."""

import dataclasses

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.report.page import document
from kerasbench.results.record import TrialRecord
from tests import made
from tests.report import table

GPU = Device("cuda", 0, "NVIDIA H200")


def found(step_ms: float, first_step_ms: int = 300) -> Measurement:
    usual = made.measurement(step_ms)
    return dataclasses.replace(
        usual, training=dataclasses.replace(made.trained(usual), first_step_ns=first_step_ms * made.MS)
    )


def rounds(step_ms: float, backend: str = "torch", device: Device = made.CPU, first_ms: int = 300) -> list[TrialRecord]:
    return [
        made.trial(index, backend=backend, device=device, found=found(step_ms * (1 + index / 1000), first_ms))
        for index in (1, 2, 3)
    ]


def page(*trials: TrialRecord) -> str:
    return document(findings(made.record(*trials, rounds=max((one.round for one in trials), default=0))))


def test_an_epoch_is_its_overhead_and_its_steps() -> None:
    section = table.section(page(made.trial(found=found(2.0))), "Epoch")
    assert "The overhead and the steps are not measured in turn" in section
    rows = table.rows(section)
    assert {figure: value for _, figure, value in rows[1:]} == {
        "Training step (ms)": "2.10",
        "Epoch of the published length (s)": "0.210",
        "Epoch overhead (ms)": "10.0",
        "Step inside an epoch (ms)": "2.00",
        "Training throughput (/s)": "15,200",
    }


def test_prediction_is_by_single_samples_by_batches_and_in_one_go() -> None:
    rows = table.rows(table.section(page(made.trial()), "Prediction"))
    figures = {figure: value for _, figure, value in rows[1:]}
    assert figures["One sample, median (ms)"].startswith("1.00")
    assert figures["One batch, 90th percentile (ms)"].startswith("2.00")
    assert figures["predict, throughput (/s)"].startswith("20,000")


def test_before_the_first_result_compiling_is_what_the_second_step_saves() -> None:
    rows = table.rows(table.section(page(made.trial()), "Before the first result"))
    figures = {figure: value for _, figure, value in rows[1:]}
    assert figures["First step (ms)"] == "300"
    assert figures["Of which tracing and compiling (ms)"] == "280"  # what follows without compiling takes 20 ms
    assert figures["Peak memory of the process (MiB)"] == "512"


@pytest.mark.parametrize(("first_ms", "said"), [(3_000, True), (300, False)])
def test_a_longer_first_step_is_repaid_where_later_ones_are_shorter(first_ms: int, said: bool) -> None:
    text = page(*rounds(1.0, "jax", first_ms=first_ms), *rounds(2.0))
    assert ("jax cpu starts 2.70 s slower than torch cpu, and has made up for it after 2,690 steps" in text) is said
    assert ("## When compiling has paid" in text) is said


def test_a_backend_on_both_devices_is_compared_with_itself() -> None:
    text = page(*rounds(1.0, "jax"), *rounds(0.1, "jax", GPU), *rounds(2.0))
    (row,) = table.rows(table.section(text, "CPU against GPU"))[1:]
    assert row == ["dense", "jax cpu", "jax gpu, NVIDIA H200", "5.50 ±0.1 %", "GPU faster"]
    assert "## CPU against GPU" not in page(*rounds(1.0, "jax"), *rounds(0.1, "torch", GPU))


def test_what_was_learned_stands_beside_what_the_others_learned() -> None:
    rows = table.rows(table.section(page(made.trial(), made.trial(backend="jax")), "Learning"))
    assert rows[0] == ["scenario", "figure", "jax cpu", "torch cpu"]
    assert [row[2:] for row in rows[1:]] == [["1.50", "1.50"], ["0.500", "0.500"]]


def test_the_time_of_a_trial_is_the_mean_of_its_phases() -> None:
    rows = table.rows(table.section(page(made.trial()), "Where the time of a trial goes"))
    assert rows == [["phase (s)", "torch cpu"], ["spawn", "0.001"], ["import", "0.003"]]


def test_a_signal_has_its_trials_and_an_example() -> None:
    trials = rounds(1.0)
    trials[1] = dataclasses.replace(trials[1], noise=[made.DISTURBED])
    (row,) = table.rows(table.section(page(*trials), "Noise"))[1:]
    assert row == ["others", "1", "1", "other processes used 40% of the CPU (dense torch cpu, round 2)"]
    assert "## Noise" not in page(*rounds(1.0))


def test_the_published_protocol_has_tables_of_its_own() -> None:
    assert "## All published epochs" not in page(made.trial())
    assert "## Real epochs and" not in page(made.trial())
