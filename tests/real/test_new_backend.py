"""A backend is one file: a copy of one, under a name that nothing else knows, is measured like any other."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import kerasbench
from kerasbench.results import store
from tests import whole_command

pytestmark = pytest.mark.real

PACKAGE = Path(kerasbench.__file__).parent
NAME, PEAK_BYTES = "newcomer", 5 << 20


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package in which there is one more backend."""
    shutil.copytree(PACKAGE, tmp_path / "kerasbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "results" / "published", tmp_path / "kerasbench" / "published")  # as in a wheel
    known = tmp_path / "kerasbench" / "backends"
    counts = f"\n\ndef peak_device_bytes(device):\n    return {PEAK_BYTES}\n"  # as a card's counter would
    (known / f"{NAME}.py").write_text((known / "jax.py").read_text() + counts)
    return tmp_path


def test_one_more_file_among_the_backends_is_one_more_column(package: Path, faults: Path) -> None:
    options = ["--scenario", str(faults / "fine.py"), "--backend", NAME, "--device", "cpu", "--quick"]
    command = whole_command.command(package, *options, "--results", str(package / "results"))
    environment = os.environ | {"PYTHONPATH": str(package)}
    ended = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f" on {NAME}\n" in ended.stdout
    (data,) = (package / "results").glob("*.json")
    (trial,) = store.load(data).trials
    assert trial.backend == NAME
    assert trial.measurement is not None and trial.measurement.resolved.versions["jax"]
    peaks = {phase.name: phase.peak_device_bytes for phase in trial.phases}
    assert (peaks["import"], peaks["build"], peaks["train"]) == (None, PEAK_BYTES, PEAK_BYTES)
