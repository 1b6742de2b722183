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


@pytest.mark.weekly
def test_real_rows_are_downloaded_once_and_fed(faults: Path, home: Path, tmp_path: Path) -> None:
    rng, served, part = np.random.default_rng(0), tmp_path / "small.npz", {}
    for name, rows in (("train", 150), ("test", 50)):
        part[f"x_{name}"] = rng.integers(0, 256, (rows, 28, 28), dtype=np.uint8)
        part[f"y_{name}"] = rng.integers(0, 10, rows, dtype=np.uint8)
    np.savez(served, **part)
    kept = {"SMALL_MNIST_URL": served.as_uri(), "SMALL_MNIST_SHA256": hashlib.sha256(served.read_bytes()).hexdigest()}
    file = faults / "small_mnist.py"
    assert questions.fetch(str(file), "default", "jax", sys.executable, kept) == "MNIST"  # before anything is measured
    assert (home / "mnist.npz").is_file()
    served.unlink()
    real, synthetic = (
        trials.measured(trials.run(file, "jax", data=data, kept=kept, plan=trials.STEPS_ALONE))
        for data in ("real", "synthetic")
    )
    assert real.batch.x == "float32[16, 28, 28]"
    assert made.taught(real).batch_loss_before != made.taught(synthetic).batch_loss_before


def test_without_a_network_each_file_its_place_and_the_alternative_are_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"cifar10_mlp": "cifar-10-batches-py-target_archive", "boston_mlp": "boston_housing.npz"}
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
    assert "Traceback" not in complaint and not out


READ_CIFAR = """
import sys
import keras.src.datasets.cifar10, keras.src.datasets.cifar100
from kerasbench import datasets
for name, rows in (("cifar10", 60_000), ("cifar100", 40)):
    origin = sys.modules["keras.src.datasets." + name]
    origin.get_file = lambda *given, **published: sys.argv[1]
    x, y = getattr(datasets, name)().load()
    assert x.shape == (rows, 32, 32, 3) and x.dtype == "uint8", (x.shape, x.dtype)
    assert y.shape == (rows,) and y.dtype == "int32", (y.shape, y.dtype)
assert [m for m in ("tensorflow", "torch") if m in sys.modules] == []
"""


def test_cifar_files_are_read_by_keras(tmp_path: Path) -> None:
    """Rows as CIFAR's authors wrote them: a pickled dictionary with bytes for keys (Keras unpickles nothing else)."""
    batches = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    for folder, files, label, rows in (
        ("cifar-10-batches-py", batches, b"labels", 10_000),
        ("cifar-100-python", ["train", "test"], b"fine_labels", 20),
    ):
        first, *others = (tmp_path / folder / file for file in files)
        first.parent.mkdir()
        content = {b"data": np.zeros((rows, 3072), np.uint8), label: [row % 10 for row in range(rows)]}
        first.write_bytes(pickle.dumps(content, protocol=3))
        for file in others:
            file.symlink_to(first)
    environment = {"KERAS_BACKEND": "jax", "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu", "KERAS_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", READ_CIFAR, str(tmp_path)], check=True, env=environment, timeout=120)
