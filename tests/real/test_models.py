"""Saved models, such as a user has and such as nobody should have, and data of any structure."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import h5py
import numpy as np
import pytest

from kerasbench.plan import live
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import Input, ModelConfig
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

MAKE = """
import sys
import keras
from keras import layers

folder = sys.argv[1]
tokens, numbers = keras.Input((None,), dtype="int32", name="tokens"), keras.Input((5,), name="numbers")
both = layers.Concatenate()([layers.GlobalAveragePooling1D()(layers.Embedding(50, 8)(tokens)), numbers])
both = layers.Dropout(0.5)(both)
outputs = {"price": layers.Dense(1)(both), "kind": layers.Dense(7, activation="softmax")(both)}
model = keras.Model({"tokens": tokens, "numbers": numbers}, outputs)
model.compile("sgd", {"price": "mse", "kind": "sparse_categorical_crossentropy"}, jit_compile=False)
model.save(f"{folder}/two.keras")
one = keras.Sequential([keras.Input((8,)), layers.Dense(4, name="dense")])
one.save(f"{folder}/one.keras")
keras.Sequential([keras.Input((8,)), layers.Lambda(lambda x: 2 * x)]).save(f"{folder}/lambda.keras")
"""
LIST = '''"""Lists of arrays, weights of samples, a step of the model's own."""

import keras
import numpy as np

from kerasbench import Workload, Scenario


class Own(keras.Model):
    def train_step(self, data):
        x, y, weights = data
        self.zero_grad()
        loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True), sample_weight=weights)
        loss.backward()
        self.optimizer.apply([weight.value.grad for weight in self.trainable_weights], self.trainable_weights)
        return {"loss": loss}


def build(workload):
    inputs = [keras.Input((3,)), keras.Input((4,))]
    model = Own(inputs, keras.layers.Dense(2)(keras.layers.Concatenate()(inputs)))
    model.compile("sgd", "mse")
    return model


def data(samples, rng):
    x = [rng.random((samples, 3), dtype="float32"), rng.random((samples, 4), dtype="float32")]
    return x, rng.random((samples, 2), dtype="float32"), np.ones(samples, "float32")


scenario = Scenario(build=build, data=data, workloads=(Workload(train=512, batch=16),))
'''
LOAD = """
import sys
from pathlib import Path

from kerasbench.protocol.requests import ModelConfig
from kerasbench.worker import saved

for file in map(Path, sys.argv[1:]):
    try:
        saved.load(file, ModelConfig(), saved.outline(file, trusted=True, custom=True))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""
# As in a trial's child: Keras would import the others too.
ALONE = """
from kerasbench.worker.failure import refuse_other_frameworks

refuse_other_frameworks("torch")
"""
GIVEN = ModelConfig([Input("tokens", [6])], 16)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models as torch saves them."""
    folder = tmp_path_factory.mktemp("models")
    child(MAKE, str(folder))
    return folder


def child(code: str, *arguments: str) -> str:
    """Run code on torch, and return what it prints."""
    variables = os.environ | {"KERAS_BACKEND": "torch"}
    command = [sys.executable, "-c", ALONE + code, *arguments]
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout


def test_a_model_that_one_backend_saved_is_the_same_on_another(models: Path) -> None:
    measured = {
        backend: trials.measured(trials.run(models / "two.keras", backend, model_config=GIVEN))
        for backend in ("torch", "jax")
    }
    assert trials.disagreements(measured) == {}
    for measurement in measured.values():
        assert measurement.batch.x == "['numbers'] float32[16, 5], ['tokens'] int32[16, 6]"
        assert measurement.batch.y == "['kind'] int32[16], ['price'] float32[16, 1]"
        assert measurement.parity is not None
        assert [len(output) for output in measurement.parity.outputs] == [64, 16]
        assert measurement.parity.silenced == ["dropout"]
        assert len(measurement.parity.losses) == 6
        assert 2 <= len(made.trained(measurement).slices) <= 4  # two again where others disturbed them
        assert measurement.parameters == 50 * 8 + 14 + 7 * 14


def test_a_model_that_was_not_compiled_predicts_for_the_rows_that_it_is_given(models: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.npz"
    samples = live.write_rows(rows, (np.ones((40, 8)), np.ones((40, 4))))
    given = ModelConfig(rows=str(rows), samples=samples)
    measurement = trials.measured(trials.run(models / "one.keras", "torch", model_config=given))
    assert (measurement.training, measurement.learning, measurement.batch.x) == (None, None, "float32[32, 8]")
    assert [latency.batch for latency in measurement.prediction] == [1, 32]
    assert measurement.parity is not None
    assert len(set(measurement.parity.outputs[0])) == 4  # of equal rows


def rewritten(file: Path, into: Path, change: Callable[[str, bytes], bytes]) -> Path:
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(into, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return into


def claiming(side: int) -> Callable[[str, bytes], bytes]:
    """Claim a matrix of that side where a layer's weights are, with nothing of it stored."""

    def change(name: str, content: bytes) -> bytes:
        if not name.endswith(".h5"):
            return content
        weights = BytesIO(content)
        with h5py.File(weights, "a") as file:
            place = "layers/dense/vars/0"
            del file[place]
            file.create_dataset(place, (side, side), "float32", chunks=(1000, 1000), compression="gzip")
        return weights.getvalue()

    return change


def wide(name: str, content: bytes) -> bytes:
    return content.replace(b'"units": 4', b'"units": 400000000')


def test_each_hostile_file_is_one_sentence(models: Path, tmp_path: Path) -> None:
    files = [
        models / "lambda.keras",
        rewritten(models / "one.keras", tmp_path / "claims.keras", claiming(50_000)),
        rewritten(models / "one.keras", tmp_path / "large.keras", claiming(30_000)),
        rewritten(models / "one.keras", tmp_path / "wide.keras", wide),
    ]
    said = child(LOAD, *map(str, files)).splitlines()
    assert [line.partition(": ")[0] for line in said] == ["ModelError", "ModelError", "TrialFailure", "TrialFailure"]
    assert "it has a Lambda layer that would run code from the file" in said[0]
    assert "Keras refuses it: H5 dataset '0' declares 9.31 GB but only" in said[1]
    assert "loading it asks for more than 2 GiB" in said[2]  # it claims 3.4 GiB
    assert "loading it asks for more than 2 GiB" in said[3]  # its layer would have 12 GiB


def test_lists_weights_and_a_step_of_its_own_are_measured_where_they_run(tmp_path: Path) -> None:
    file = tmp_path / "several.py"
    file.write_text(LIST)
    measurement = trials.measured(trials.run(file, "torch", protocol=trials.STEPS_ALONE))
    assert measurement.batch.x == "[0] float32[16, 3], [1] float32[16, 4]"
    failure = trials.run(file, "jax").failure
    assert failure is not None
    assert (failure.code, "the model's own train_step does not run on jax" in failure.cause) == (Code.UNSUPPORTED, True)


def test_a_model_that_would_look_up_one_row_alone_is_refused_with_what_to_type() -> None:
    command = [sys.executable, str(Path(__file__).with_name("looked_up.py"))]
    done = subprocess.run(
        command, env=os.environ | {"KERAS_BACKEND": "jax"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "direct: fine",
        "own layer: --input x=100:int32",
        "nested: --input x=100:int32",
        "slice: --input x=2:int32",
        "places of a picture: fine",
    ]
