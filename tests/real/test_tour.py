"""docs/tour.ipynb runs as it stands, and shows what its text promises."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.results.store import load

pytestmark = [pytest.mark.real, pytest.mark.weekly]

ROOT = Path(__file__).parent.parent.parent


def test_the_tour_runs_compares_sweeps_and_plots(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.notebook", str(ROOT / "docs" / "tour.ipynb")]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    shown = json.loads(ended.stdout)
    assert "<li>iris_mlp: " in shown["run"] and "<details>" in shown["run"]
    assert shown["plot"].startswith("<svg ") and shown["sweep-plot"].startswith("<svg ")
    assert "1 case measured on both sides" in shown["compare"]
    assert "<li>mnist_dense: " in shown["sweep"]
    kept = [load(file) for file in sorted((tmp_path / "tour-results").glob("*.json"))]
    assert shown["load"] == str(len(kept)) == "3"
    assert all(trial.failure is None for record in kept for trial in record.trials)
