"""Real models, exported by one child and measured by another without Keras, and what cannot be exported."""

import dataclasses
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kerasbench import runtimes
from kerasbench.plan import catalog
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Code
from kerasbench.protocol.stages import ALL, stage_of
from kerasbench.variants import BY_NAME
from kerasbench.variants.variant import ScriptFacts
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

SIZES = dataclasses.replace(made.SIZES, warmup_calls=2)
CALLS = dataclasses.replace(trials.CALLS.leaving_out(ALL), sizes=SIZES)
SCENARIO = """
import keras
from kerasbench import Scenario, Workload

class Own(keras.layers.Layer):
    def build(self, shape):
        self.generator = keras.random.SeedGenerator(0)

    def call(self, x):
        {call}

def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2), Own()])
    model.compile(loss="mse")
    return model

def data(samples, rng):
    return rng.random((samples, 4)).astype("float32"), rng.random((samples, 2)).astype("float32")

scenario = Scenario(build=build, data=data, workloads=(Workload(train=64, batch=8),))
"""
DRAWS = "return x + keras.random.normal(keras.ops.shape(x), seed=self.generator)"
CALLS_BACK = "import jax; return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)"


@pytest.mark.parametrize(
    ("runtime", "backend"),
    [
        ("jax_export", "jax"),
        pytest.param("pt2", "torch", marks=pytest.mark.weekly),
        pytest.param("saved_model", "tensorflow", marks=pytest.mark.weekly),
    ],
)
def test_an_exported_model_predicts_what_keras_does(runtime: str, backend: str, tmp_path: Path) -> None:
    file, options = catalog.builtin_folder() / "tiny" / "small_cnn.py", Options(runtime=runtime)
    left = trials.run(file, backend, options, plan=CALLS, caches=str(tmp_path), fills_caches=True)
    assert left.failure is None and left.measurement is None
    of_runtime = trials.measured(trials.run(file, backend, options, plan=CALLS, caches=str(tmp_path)))
    ways = ("predict_on_batch", "call", "predict_call")
    assert of_runtime.calls.keys() == {stage_of(way, batched) for way in ways for batched in (False, True)}
    exported = made.known(of_runtime.exported)
    assert exported.bytes > 4 * exported.parameters and made.known(exported.first_ns) > 0
    assert "keras" in exported.versions and "keras" not in of_runtime.resolved.versions
    assert (of_runtime.resolved.subnormals, of_runtime.resolved.compute_dtypes) == ("flushed", ["float32"])


@pytest.mark.parametrize(
    ("call", "cause"), [(DRAWS, "it predicts by random numbers"), (CALLS_BACK, "NotImplementedError: ")]
)
def test_what_cannot_be_exported_is_said_in_one_sentence(call: str, cause: str, tmp_path: Path) -> None:
    file, options = tmp_path / "own.py", Options(runtime="jax_export")
    file.write_text(SCENARIO.format(call=call))
    outcome = trials.run(file, "jax", options, plan=CALLS, caches=str(tmp_path), fills_caches=True)
    failure = made.known(outcome.failure)
    assert failure.code is Code.UNSUPPORTED and "\n" not in failure.cause
    assert failure.cause.startswith(f"the model cannot be exported to jax_export: {cause}")


LINES = """
import keras
import numpy as np
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(2)])
x = np.random.default_rng(0).random((8, 4), np.float32)
expected = model.predict_on_batch(x)
{lines}
assert np.allclose(np.asarray(outputs), expected, atol=1e-5)
"""


WEEKLY = [
    pytest.param(runtime, backend, marks=pytest.mark.weekly)
    for runtime, backend in (
        ("pt2", "torch"),
        ("saved_model", "tensorflow"),
        ("onnxruntime", "tensorflow"),
        ("onnxruntime", "torch"),
        ("openvino", "tensorflow"),
        ("openvino", "torch"),
    )
]


@pytest.mark.parametrize(("runtime", "backend"), [("jax_export", "jax"), *WEEKLY])
def test_the_lines_that_a_race_prints_export_and_load_a_model(runtime: str, backend: str, tmp_path: Path) -> None:
    needed = {runtimes.get(runtime).package, *runtimes.get(runtime).exporters[backend]}
    if missing := sorted(package for package in needed if find_spec(package) is None):
        pytest.skip(f"{', '.join(missing)} is not installed")
    _, lines = made.known(BY_NAME["runtime"].written(runtime, ScriptFacts(backend)))
    script = LINES.format(lines=lines)
    environment = os.environ | {"KERAS_BACKEND": backend}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True)
