"""A sweep as a user types it, of two batches of a tiny model, and what a soak finds."""

import re
from pathlib import Path

import pytest

from kerasbench.api import soak
from kerasbench.protocol.columns import Options
from kerasbench.results.store import load
from tests import made, whole_command
from tests.real import trials
from tests.repository import printed

pytestmark = pytest.mark.real


def test_a_sweep_leaves_a_record_and_a_page_of_every_size(faults: Path, tmp_path: Path) -> None:
    options = ["--batch-size", "1,4", "--backend", "jax", "--device", "cpu", "--quick", "--results", str(tmp_path)]
    command = whole_command.command(tmp_path, "sweep", str(faults / "fine.py"), *options)
    shown = printed(*command)
    (data,) = tmp_path.glob("*.json")
    fed = {trial.options.get("batch"): made.known(trial.measurement).batch.x for trial in load(data).trials}
    assert fed == {1: "float32[1, 4]", 4: "float32[4, 4]"}
    assert re.search(r"^\| +4 \|", shown, re.MULTILINE)
    assert data.with_suffix(".md").read_text().startswith("# A training step of fine at several sizes\n")


@pytest.mark.weekly
def test_a_sweep_measures_an_exported_model_at_every_size(faults: Path, tmp_path: Path) -> None:
    options = ["--batch-size", "1,4", "--backend", "jax", "--device", "cpu", "--quick", "--results", str(tmp_path)]
    options += ["--runtime", "keras,jax_export"]
    printed(*whole_command.command(tmp_path, "sweep", str(faults / "fine.py"), *options))
    (data,) = tmp_path.glob("*.json")
    latencies = {
        (trial.options.get("runtime"), trial.options.get("batch")): [
            calls.batch for calls in made.known(trial.measurement).calls.values()
        ]
        for trial in load(data).trials
    }
    assert latencies == {(runtime, batch): [batch] for runtime in (None, "jax_export") for batch in (1, 4)}
    assert data.with_suffix(".md").read_text().startswith("# On fine (predict) ")


def test_a_width_widens_the_hidden_layers() -> None:
    outcome = trials.builtin("mnist_dense", "default", "jax", Options(batch=8, width=0.5), trials.STEPS_ALONE)
    measurement = trials.measured(outcome)
    assert measurement.parameters == 784 * 150 + 150 + 150 * 50 + 50 + 50 * 10 + 10
    assert measurement.batch.x == "float32[8, 28, 28]"


@pytest.mark.weekly  # minutes: validation/soaks.py does the same for longer
def test_a_planted_leak_is_found_and_a_clean_run_is_called_clean(faults: Path, tmp_path: Path) -> None:
    leak, clean = (
        soak(faults / f"{name}.py", backends="jax", devices="cpu", minutes=1, results=tmp_path / name).soaks[0]
        for name in ("leaks", "fine")
    )
    memory, of_clean = (made.known(found.memory_bytes_per_unit) for found in (leak, clean))
    assert leak.memory_grows and memory.low <= 1.02 * (64 << 10) and memory.high >= 0.98 * (64 << 10)
    assert not clean.memory_grows and not clean.becomes_slower and of_clean.high <= 16 << 10
