"""Training scripts as people write them, measured as they are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.processes import questions
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import ModelConfig, ScriptConfig
from kerasbench.results.run import Run
from kerasbench.results.store import load
from tests.real.trials import SHORTEST, fitted, run
from tests.repository import ROOT

pytestmark = pytest.mark.real

BEGINNING = """
import os
os.environ["KERAS_BACKEND"] = "torch"  # of no effect: the process has Keras already
import sys
import keras, numpy as np
rng = np.random.default_rng(0)
x, y = rng.random((640, 8), dtype="float32"), rng.integers(0, 3, 640)
def compiled(*layers):
    model = keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
"""
ARRAYS = """
model = compiled(keras.layers.Dense(16), keras.layers.Dropout(0.5))
print("as a script prints")
try:
    model.fit(x, y, batch_size=32, epochs=5, validation_split=0.1, callbacks=[keras.callbacks.CSVLogger("log.csv")])
finally:
    model.save("after.keras")
"""
STREAM = """
import tensorflow as tf
class Half(keras.layers.Layer):
    def call(self, x):
        return x * (0.5 if keras.backend.backend() == sys.argv[1] else 1.0)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).batch(32).prefetch(2)
compiled(Half()).fit(data, epochs=2)
"""
OWN_STEP = """
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3)
    def call(self, x):
        return self.dense(x)
    def train_step(self, data):
        raise NotImplementedError("only in TensorFlow") if keras.backend.backend() != "torch" else ValueError("no")
own = Own()
own.compile("adam")
own.fit(x, y)
"""
LOOP = """
model = compiled()
while True:
    chosen = rng.integers(0, 640, 32)
    model.train_on_batch(x[chosen], y[chosen])
    model.predict(x[:1], verbose=0)
    model.save("after.keras")
"""
REFUSED = {
    "loop": (
        "m = compiled()\nm.predict(x)\nlambda loss: loss.backward()",
        "trains by backward, which is one framework's own, and of Keras it calls predict() once",
    ),
    "nothing": ("m = compiled()", "never calls fit()"),
    "asks": ("n = input('epochs? ')\ncompiled().fit(x, y, epochs=int(n))", "line 12, asks for input"),
    "leaves": ("raise SystemExit('usage: leaves.py DATA')", "leaves before it calls fit(): usage: leaves.py DATA"),
    "missing": ("import no_such_package", "needs no_such_package, which is not installed in"),
    "breaks": ("1 / 0", "line 12, raises ZeroDivisionError"),
}


def measure(folder: Path, name: str, text: str, *words: str) -> tuple[subprocess.CompletedProcess[str], list[Run]]:
    (folder / name).write_text(BEGINNING + text, "utf-8")
    command = [sys.executable, "-m", "kerasbench", name, "--quick", "--wait", "--device", "cpu", *words]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return ended, [load(file) for file in (folder / "results").glob("*.json")]


@pytest.mark.parametrize("chosen", ["torch", pytest.param("jax,torch", marks=pytest.mark.weekly)])
def test_a_script_is_measured_inside_its_fit_and_writes_nothing(chosen: str, tmp_path: Path) -> None:
    ended, (record,) = measure(tmp_path, "train.py", ARRAYS, "--backend", chosen)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["results", "train.py"]
    assert "as a script prints" not in ended.stdout
    assert "Left out: CSVLogger" in record.scenarios[0].description.text
    (workload,) = record.scenarios[0].description.workloads
    assert (workload.train, workload.batch, workload.validation) == (576, 32, 64)
    first = {trial.backend: trial.measurement for trial in reversed(record.trials)}
    parities = [measurement.parity for measurement in first.values() if measurement and measurement.parity]
    # The dropout was silenced, on a model that is there once.
    assert [parity.silenced for parity in parities] == [["dropout"]] * len(chosen.split(","))
    assert parities[0].losses == pytest.approx(parities[-1].losses, rel=1e-3)


@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.weekly)])
def test_a_loop_of_a_script_s_own_is_measured_step_by_step(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(BEGINNING + LOOP, "utf-8")
    plan = fitted(SHORTEST, loops=True, streams=True)
    outcome = run(tmp_path / "loop.py", backend, model_config=ModelConfig(script=ScriptConfig()), plan=plan)
    assert outcome.failure is None and outcome.measurement is not None
    measured = outcome.measurement
    assert list(measured.samples) == ["train"] and measured.training is not None and measured.training.streamed
    assert measured.batch.x == "float32[32, 8]" and measured.batch.digest
    assert measured.parity is not None and len(measured.parity.losses) > 1
    assert [file.name for file in tmp_path.iterdir()] == ["loop.py"]


@pytest.mark.weekly  # half a minute
def test_a_backend_that_computes_something_else_is_found_on_a_stream(tmp_path: Path) -> None:
    ended, (record,) = measure(tmp_path, "stream.py", STREAM, "--backend", "jax,tensorflow", "--", "jax")
    assert ended.returncode == 1 and "parity" in ended.stdout
    (workload,) = record.scenarios[0].description.workloads
    assert (workload.name, workload.streams, workload.steps) == ("jax", True, 20)
    assert "stream.py --backend jax,tensorflow --device cpu --quick -- jax" in ended.stdout
    digests = {trial.measurement.batch.digest for trial in record.trials if trial.measurement}
    assert len(digests) == 1 and "" not in digests
    assert all(trial.measurement.learning for trial in record.trials if trial.measurement)  # of batches from memory


@pytest.mark.weekly
def test_a_backend_that_a_script_does_not_run_on_has_the_line_of_the_script(tmp_path: Path) -> None:
    ended, _ = measure(tmp_path, "own.py", OWN_STEP, "--backend", "jax")
    assert ended.returncode == 1
    assert "own train_step does not run on jax" in " ".join(ended.stdout.split())


@pytest.mark.parametrize("name", REFUSED)
def test_a_script_without_a_fit_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    text, said = REFUSED[name]
    (file := tmp_path / f"{name}.py").write_text(BEGINNING + text, "utf-8")
    config = ModelConfig(script=ScriptConfig(), source="script")
    failure = questions.describe([str(file)], sys.executable, "jax", {}, config)
    assert isinstance(failure, Failure) and said in failure.cause, failure
    assert failure.remedy


@pytest.mark.weekly
def test_a_notebook_is_measured(tmp_path: Path) -> None:
    lines = [*BEGINNING.splitlines(True), "%matplotlib inline\n"]
    cells = [{"cell_type": "code", "source": lines}, {"cell_type": "code", "source": "%%time\ncompiled().fit(x, y)"}]
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": cells}))
    command = [sys.executable, "-m", "kerasbench", "train.ipynb", "--quick", "--wait", "--backend", "jax"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "A training step of train takes" in ended.stdout, ended.stdout + ended.stderr
