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
NAME = "newcomer"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package in which there is one more backend."""
    shutil.copytree(PACKAGE, tmp_path / "kerasbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "results" / "published", tmp_path / "kerasbench" / "published")  # as in a wheel
    known = tmp_path / "kerasbench" / "backends"
    shutil.copy(known / "jax.py", known / f"{NAME}.py")
    return tmp_path


def test_one_more_file_among_the_backends_is_one_more_column(package: Path, faults: Path) -> None:
    options = ["--scenario", str(faults / "fine.py"), "--backend", NAME, "--device", "cpu", "--quick"]
    command = whole_command.command(package, *options, "--results", str(package / "results"))
    environment = os.environ | {"PYTHONPATH": str(package)}
    ended = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"| {NAME} cpu" in ended.stdout
    (data,) = (package / "results").glob("*.json")
    (trial,) = store.load(data).trials
    assert trial.backend == NAME
    assert trial.measurement is not None and trial.measurement.resolved.versions["jax"]
