"""Real rows, by Keras' own loaders, from small files in the real format."""

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kerasbench.cli.main import main
from kerasbench.processes import questions
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.requests import DataKind
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

NO_NETWORK = "http://127.0.0.1:9"  # the discard port: nobody listens


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data sets of the test's own, and no way to the network."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, NO_NETWORK)
    (tmp_path / "keras" / "datasets").mkdir(parents=True)
    return tmp_path / "keras" / "datasets"


def serve(folder: Path) -> dict[str, str]:
    """Make a small file in MNIST's format; return the variables that tell small_mnist.py where to download it from."""
    rng = np.random.default_rng(0)
    file = folder / "small.npz"
    part = {}
    for name, rows in (("train", 150), ("test", 50)):
        part[f"x_{name}"] = rng.integers(0, 256, (rows, 28, 28), dtype=np.uint8)
        part[f"y_{name}"] = rng.integers(0, 10, rows, dtype=np.uint8)
    np.savez(file, **part)
    return {"SMALL_MNIST_URL": file.as_uri(), "SMALL_MNIST_SHA256": hashlib.sha256(file.read_bytes()).hexdigest()}


def test_real_rows_are_downloaded_once_and_fed(faults: Path, home: Path, tmp_path: Path) -> None:
    served = serve(tmp_path)
    file = str(faults / "small_mnist.py")
    assert questions.fetch(file, "default", "jax", sys.executable, served) == "MNIST"  # before anything is measured
    first = trials.measured(run(faults, "real", served))
    assert (home / "mnist.npz").is_file()
    gone = served | {"SMALL_MNIST_URL": "file:///gone"}
    second = trials.measured(run(faults, "real", gone))
    assert first.batch.x == "float32[16, 28, 28]"
    assert made.taught(first).first_loss == made.taught(second).first_loss
    synthetic = trials.measured(run(faults, "synthetic", {}))
    assert made.taught(synthetic).first_loss != made.taught(first).first_loss


def run(faults: Path, data: DataKind, served: dict[str, str]) -> Outcome:
    return trials.run(faults / "small_mnist.py", "jax", data=data, kept=served, protocol=trials.STEPS_ALONE)


def test_without_a_network_each_file_its_place_and_the_alternative_are_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "cifar10_mlp": "cifar-10-batches-py-target_archive",
        "boston_mlp": "boston_housing.npz",
    }
    arguments = ["--scenario", ",".join(files), "--backend", "jax", "--data", "real"]
    assert main([*arguments, "--results", str(tmp_path / "results")]) == 2
    out, said = capsys.readouterr()
    progress, _, complaint = said.partition("kerasbench: ")
    titles = [line.partition(":")[0] for line in progress.splitlines()[1:]]
    assert titles == ["Boston housing", "CIFAR-10"]
    lines = complaint.splitlines()
    assert {line.partition(":")[0] for line in lines} == set(files)
    for file in files.values():
        assert f"Put the file {file} into {home.resolve()}" in complaint
    assert all("--data synthetic" in line for line in lines)
    assert "Traceback" not in complaint
    assert not out


def pickled(file: Path, rows: int, label: str) -> None:
    """Write rows as CIFAR's authors did: a pickled dictionary with bytes for keys (Keras unpickles nothing else)."""
    content = {b"data": np.zeros((rows, 3072), np.uint8), label.encode(): [row % 10 for row in range(rows)]}
    file.write_bytes(pickle.dumps(content, protocol=3))


READ_CIFAR = """
import sys
import keras.src.datasets.{name} as origin
origin.get_file = lambda *given, **published: sys.argv[1]
from kerasbench import datasets
x, y = datasets.{name}().load()
assert x.shape == ({rows}, 32, 32, 3) and x.dtype == "uint8", (x.shape, x.dtype)
assert y.shape == ({rows},) and y.dtype == "int32", (y.shape, y.dtype)
assert [m for m in ("tensorflow", "torch") if m in sys.modules] == []
"""


@pytest.mark.parametrize(
    ("name", "files", "label", "rows_each", "rows"),
    [
        ("cifar10", [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"], "labels", 10_000, 60_000),
        ("cifar100", ["train", "test"], "fine_labels", 20, 40),
    ],
)
def test_cifar_files_are_read_by_keras(
    tmp_path: Path, name: str, files: list[str], label: str, rows_each: int, rows: int
) -> None:
    folder = tmp_path / {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}[name]
    folder.mkdir()
    pickled(folder / files[0], rows_each, label)
    for other in files[1:]:
        (folder / other).symlink_to(folder / files[0])
    command = [sys.executable, "-c", READ_CIFAR.format(name=name, rows=rows), str(tmp_path)]
    environment = {"KERAS_BACKEND": "jax", "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu", "KERAS_HOME": str(tmp_path)}
    subprocess.run(command, check=True, env=environment, timeout=120)
