"""docs/tour.ipynb runs as it stands, and shows what its text promises."""

import json
import sys
from pathlib import Path

import pytest

from kerasbench.results.store import load
from tests.repository import ROOT, printed

pytestmark = [pytest.mark.real, pytest.mark.weekly]


def test_the_tour_runs_compares_sweeps_and_plots(tmp_path: Path) -> None:
    tour = ROOT / "docs" / "tour.ipynb"
    shown = json.loads(printed(sys.executable, "-m", "tests.notebook", tour, folder=tmp_path))
    assert "<h3>iris_mlp: " in shown["run"] and "<details>" in shown["run"]
    assert shown["plot"].startswith("<svg ") and shown["sweep-plot"].startswith("<svg ")
    assert "<h3>Nothing between the two is decided (1 case)" in shown["compare"]
    assert "mnist_dense" in shown["sweep"].partition("</h3>")[0]
    kept = [load(file) for file in sorted((tmp_path / "tour-results").glob("*.json"))]
    assert shown["load"] == str(len(kept)) == "3"
    assert all(trial.failure is None for record in kept for trial in record.trials)
