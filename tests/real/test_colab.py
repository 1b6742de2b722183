"""docs/colab.ipynb runs beside frameworks that are there, in versions of their own, and changes none of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kerasbench.results.store import load
from tests.repository import ROOT

pytestmark = [pytest.mark.real, pytest.mark.weekly, pytest.mark.timeout(1800)]

# Of another time than those in constraints.txt, as on a hosted machine.
THERE = ["keras==3.14.*", "jax!=0.10.2,<0.12", "torch", "tensorflow-cpu", "numpy", "ipykernel", "pip"]


def called(*command: object) -> str:
    """Run a program without what leads it to this checkout; return what it prints."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    words = list(map(str, command))
    return subprocess.run(words, env=variables, check=True, stdout=subprocess.PIPE, text=True).stdout


def pip(python: Path, *words: str) -> str:
    return called(sys.executable, "-m", "pip", "--python", python, *words)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment for all three frameworks, whose kernel Jupyter finds beside it."""
    place = tmp_path_factory.mktemp("hosted")
    python = place / "bin" / "python"
    newer = shutil.which("python3.12") or ""
    starts = newer and subprocess.run([newer, "-V"], check=False).returncode == 0  # pyenv's shim may lead nowhere
    called(newer if starts else sys.executable, "-m", "venv", "--without-pip", place)
    pip(python, "install", "-q", *THERE)
    called(python, "-m", "ipykernel", "install", "--prefix", place, "--name", "hosted")
    return python


def executed(python: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **sources: str) -> dict[str, list[Any]]:
    """Run the notebook with other code in these cells; return the outputs of each, by its identifier."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.delenv("PYTHONPATH", raising=False)  # this checkout, for which the installed kerasbench is tested
    monkeypatch.setenv("JUPYTER_PATH", str(python.parents[1] / "share" / "jupyter"))
    notebook = nbformat.read(ROOT / "docs" / "colab.ipynb", as_version=4)
    cells = {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}
    cells["choices"].source = cells["choices"].source.replace("git+https://github.com/OWNER/kerasbench", ROOT.as_uri())
    for name, source in sources.items():
        cells[name].source = source
    NotebookClient(notebook, kernel_name="hosted", resources={"metadata": {"path": str(folder)}}).execute()
    return {name: cell.outputs for name, cell in cells.items()}


def test_the_notebook_measures_beside_other_versions_and_changes_none(
    hosted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pip(hosted, "freeze")
    shown = executed(hosted, tmp_path, monkeypatch)
    assert pip(hosted, "freeze") == before

    (data,) = (tmp_path / "results").glob("*.json")
    trials = load(data).trials
    assert {trial.scenario for trial in trials} == {"autoencoder", "small_cnn", "lstm", "tiny_transformer"}
    assert {trial.backend for trial in trials} == {"jax", "tensorflow", "torch"}
    measured = [trial.measurement for trial in trials if trial.measurement]
    assert len(measured) == len(trials) == 12
    (keras,) = {measurement.resolved.versions["keras"] for measurement in measured}
    assert f"keras=={keras}" in before.split() and f"keras=={keras}\n" not in (ROOT / "constraints.txt").read_text(
        "utf-8"
    )

    text = {name: "".join(output.get("text", "") for output in outputs) for name, outputs in shown.items()}
    assert re.findall(rf"^(\w+) +{hosted} ", text["doctor"], re.MULTILINE) == ["jax", "tensorflow", "torch"]
    assert "[12/12]" in text["run"] and "\x1b[2K" not in text["run"]  # progress in lines, none of which is erased
    assert "<svg" in shown["chart"][0].data["image/svg+xml"] and "&lt;table" in shown["page"][0].data["text/html"]
    assert f"kerasbench contribute {data.name}" in text["send"]


def test_the_notebook_stops_where_a_package_changed(
    hosted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbclient.exceptions import CellExecutionError

    newer = '!{sys.executable} -m pip install -q --no-deps "keras==3.13.*"'
    with pytest.raises(CellExecutionError, match=r"Stop: installing kerasbench changed keras\."):
        executed(hosted, tmp_path, monkeypatch, install=newer)
