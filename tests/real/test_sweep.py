"""A sweep as a user types it: two batches of a tiny model, one round."""

import csv
import io
from pathlib import Path

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Options
from kerasbench.report.pages import as_csv
from kerasbench.results.store import load
from tests import made
from tests.real import trials
from tests.real.test_command import kerasbench

pytestmark = pytest.mark.real


def test_a_sweep_leaves_a_record_a_page_and_a_csv_of_every_size(faults: Path, tmp_path: Path) -> None:
    arguments = ("--batch-size", "1,4", "--backend", "jax", "--device", "cpu", "--quick")
    process = kerasbench(tmp_path, "sweep", str(faults / "fine.py"), *arguments)
    tables, progress = process.communicate(timeout=300)
    assert process.returncode == 0, progress
    (data,) = tmp_path.glob("*.json")
    record = load(data)
    assert {trial.options.batch for trial in record.trials} == {1, 4}
    for trial in record.trials:
        assert trial.measurement is not None
        assert trial.measurement.batch.x == f"float32[{trial.options.batch}, 4]"
        assert not trial.measurement.prediction and not made.trained(trial.measurement).epochs
        assert trial.measurement.parity is not None
    assert "| fine       | 4 " in tables
    assert "## Sweep" in data.with_suffix(".md").read_text()
    report = csv.DictReader(io.StringIO(as_csv([summarize(record)])))
    steps = {row["batch"]: float(row["value"]) for row in report if row["metric"] == "steady_step_ms"}
    assert steps.keys() == {"1", "4"} and min(steps.values()) > 0


def test_a_width_widens_the_hidden_layers() -> None:
    found = trials.measured(
        trials.builtin("mnist_dense", "default", "jax", Options(batch=8, width=0.5), trials.STEPS_ALONE)
    )
    assert found.parameters == 784 * 150 + 150 + 150 * 50 + 50 + 50 * 10 + 10
    assert found.batch.x == "float32[8, 28, 28]"


def test_a_full_batch_is_cut_into_minibatches() -> None:
    found = trials.measured(trials.builtin("iris_mlp", "default", "jax", Options(batch=16), trials.STEPS_ALONE))
    assert found.batch.x == "float32[16, 4]"
    assert made.trained(found).unit == "step"
