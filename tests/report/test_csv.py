import csv
import dataclasses
import io

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.pages.files import as_csv
from kerasbench.results.run import Trial
from tests import made


def rows(*trials: Trial, rounds: int = 1) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv([summarize(made.record(*trials, rounds=rounds))]))))


def test_the_columns_are_the_contract() -> None:
    assert as_csv([]) == (
        "machine,scenario,workload,backend,device,status,metric,value,low,high,unit,trials,options,"
        "device_name,batch,width,started,ratio,ratio_low,ratio_high,environment,host,keras,backend_version,commit\n"
    )


def test_runs_and_machines_of_one_chip_are_told_apart() -> None:
    runs = [
        made.changed(made.record(*trials), machine={"identifier": own})
        for own in ("aaa", "bbb", "node-7", "")
        for trials in ([made.trial()], [made.trial(failure=made.FAILURE)])
    ]
    runs[0] = dataclasses.replace(runs[0], started="2026-01-03T00:00:00Z")
    found = list(csv.DictReader(io.StringIO(as_csv([summarize(run) for run in runs]))))
    assert list(dict.fromkeys(row["host"] for row in found)) == ["aaa", "bbb", "node-7", ""]
    assert {row["machine"] for row in found} == {"Chip 9"}
    assert {row["started"] for row in found} == {run.started for run in runs}


def test_a_figure_stands_beside_that_of_the_fastest_of_its_row() -> None:
    found = rows(*made.in_rounds(1, 2, 3, backend="jax"), *made.in_rounds(2, 4, 6), rounds=3)
    ratios = {(row["backend"], row["metric"]): row for row in found}
    slow, fast = ratios["torch", "steady_step_ms"], ratios["jax", "steady_step_ms"]
    assert [round(float(slow[name]), 2) for name in ("ratio", "ratio_low", "ratio_high")] == [2.0, 1.92, 2.08]
    assert (fast["ratio"], fast["ratio_low"], fast["ratio_high"]) == ("1.0", "", "")
    assert float(ratios["torch", "predict_p50_ms"]["ratio"]) == 1.0
    assert [ratios["torch", name]["ratio"] for name in ("final_loss", "epoch_overhead_ms")] == ["", ""]
    assert {row["ratio"] for row in rows(made.trial())} == {""}


def test_a_failure_is_one_row_with_its_code_and_no_figure() -> None:
    (row,) = rows(made.trial(failure=made.FAILURE))
    assert (row["status"], row["metric"], row["value"], row["trials"]) == ("crash", "", "", "0")


def test_gpus_options_and_interpreters_are_told_apart() -> None:
    gpu = made.trial(options=Options(jit=True, environment="old"), device=Device("mps", 0, "Apple M1"))
    found = {(row["device_name"], row["options"], row["environment"]) for row in rows(gpu, made.trial())}
    assert found == {("Apple M1 (mps)", "jit=on", "old"), ("", "", "")}


def test_the_ratio_of_columns_that_did_not_fit_into_memory_together_is_that_of_the_page() -> None:
    steps = {1: {"jax": 2.0, "torch": 1.0}, 2: {"jax": 6.0, "tensorflow": 9.0}}  # the machine slows down in between
    trials = [
        made.in_block(
            2 * index + block, made.sliced([ms * (1 + index / 100)] * 6), round_index=1 + index, backend=backend
        )
        for index in range(3)
        for block, columns in steps.items()
        for backend, ms in columns.items()
    ]
    (ranking,) = summarize(made.record(*trials, rounds=3)).rankings
    found = made.known(ranking.over_fastest(Column("tensorflow", "cpu")))
    lines = {(row["backend"], row["metric"]): row for row in rows(*trials, rounds=3)}
    assert float(lines["tensorflow", "train_step_ms"]["ratio"]) == pytest.approx(found.ratio.value)
    assert float(lines["tensorflow", "steady_step_ms"]["ratio"]) > 2.9
