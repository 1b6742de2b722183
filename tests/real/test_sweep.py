"""A sweep as a user types it: two batches of a tiny model, one round."""

import csv
import io
from pathlib import Path

import pytest

from kerasbench.protocol.columns import Options
from kerasbench.protocol.requests import Protocol
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
        assert trial.measurement.prediction == [] and made.trained(trial.measurement).epochs == []
        assert trial.measurement.parity is not None
    assert "| fine       | 4 " in tables
    page = data.with_suffix(".md").read_text()
    assert "## Sweep" in page
    report = kerasbench_report(data)
    steps = {row["batch"]: float(row["value"]) for row in report if row["metric"] == "steady_step_ms"}
    assert steps.keys() == {"1", "4"} and min(steps.values()) > 0


def kerasbench_report(data: Path) -> list[dict[str, str]]:
    from kerasbench.analysis.summary import summarize
    from kerasbench.report.csv import document

    return list(csv.DictReader(io.StringIO(document([summarize(load(data))]))))


def test_a_width_widens_the_hidden_layers() -> None:
    file = Path(__file__).parents[2] / "scenarios" / "mnist_dense.py"
    protocol = Protocol(**(vars(trials.SHORTEST) | {"kind": "sweep"}))
    found = trials.measured(trials.run(file, "jax", protocol=protocol, options=Options(batch=8, width=0.5)))
    assert found.parameters == 784 * 150 + 150 + 150 * 50 + 50 + 50 * 10 + 10
    assert found.batch.x == "float32[8, 28, 28]"


def test_a_full_batch_is_cut_into_minibatches(faults: Path) -> None:
    protocol = Protocol(**(vars(trials.SHORTEST) | {"kind": "sweep"}))
    file = Path(__file__).parents[2] / "scenarios" / "iris_mlp.py"
    found = trials.measured(trials.run(file, "jax", protocol=protocol, options=Options(batch=16)))
    assert found.batch.x == "float32[16, 4]"
    assert made.trained(found).unit == "step"
