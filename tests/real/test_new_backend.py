"""A backend is one file: a copy of one, under a name that nothing else knows, is measured like any other."""

import shutil
from pathlib import Path

import pytest

import kerasbench
from kerasbench import backends
from kerasbench.results import store
from tests import made, whole_command
from tests.repository import printed

pytestmark = pytest.mark.real

PACKAGE = Path(kerasbench.__file__).parent
NAME, TITLE, PEAK_BYTES = "newcomer", "Newcomer", 5 << 20


def test_one_more_file_among_the_backends_is_one_more_column(
    faults: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "kerasbench"  # a copy in which there is one more
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "results" / "published", package / "published")  # as in a wheel
    counts = f"\n\ndef device_bytes(device, peak):\n    return {PEAK_BYTES}\n"  # as a card's counter would
    text = (PACKAGE / "backends" / "jax.py").read_text().replace('= "JAX",', f'= "{TITLE}",')
    (package / "backends" / f"{NAME}.py").write_text(text + counts)
    options = ["--scenario", str(faults / "fine.py"), "--backend", NAME, "--device", "cpu", "--quick"]
    command = whole_command.command(tmp_path, *options, "--results", str(tmp_path / "results"))
    assert f" on {TITLE}\n" in printed(*command, folder=tmp_path, PYTHONPATH=str(tmp_path))
    (data,) = (tmp_path / "results").glob("*.json")
    monkeypatch.setattr(backends, "names", lambda: [NAME])  # as in that copy
    (trial,) = store.load(data).trials
    assert trial.backend == NAME
    assert made.known(trial.measurement).resolved.versions["jax"]
    peaks = {phase.name: phase.peak_device_bytes for phase in trial.phases}
    assert (peaks["import"], peaks["build"], peaks["train"]) == (None, PEAK_BYTES, PEAK_BYTES)
