"""What real models begin with, on every backend."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from kerasbench import backends

pytestmark = pytest.mark.real

BUILD = """
import json
import keras
import numpy as np
from kerasbench import backends
from kerasbench.scenario import Workload
from kerasbench.worker import model as models
from kerasbench.worker.feed import Feed, Rows
from kerasbench.worker.model import make_weights

models.remember_origins()

class Own(keras.layers.Layer):
    def build(self, shape):
        self.default = self.add_weight(name="default", shape=(4, 4))
        self.table = self.add_weight(name="table", shape=(2, 3), initializer="ones")
        self.function = self.add_weight(
            name="function", shape=(3, 3), initializer=lambda shape, dtype: keras.random.normal(shape, dtype=dtype)
        )
        self.array = keras.Variable(np.arange(6.0, dtype="float32").reshape(2, 3), name="array")
        self.tensor = keras.Variable(keras.random.normal((2, 3)), name="tensor")

    def call(self, x):
        return x

model = keras.Sequential([
    keras.layers.Input((4, 4)),
    keras.layers.LayerNormalization(axis=(1, 2), name="norm"),
    Own(name="own"),
    keras.layers.LSTM(3, return_sequences=True, name="lstm"),
    keras.layers.GRU(3, recurrent_initializer="identity", name="gru"),
    keras.layers.Dense(2, bias_initializer="random_normal", name="dense"),
])
model.compile(optimizer="sgd", loss="mse")
models.share_weights(model, 5)
values = {weight.path: keras.ops.convert_to_numpy(weight).tolist() for weight in model.weights}

class OfItsOwn(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, x):  # not told whether it trains
        return self.dense(x)

late = OfItsOwn()
late.build((None, 3))
late.compile(optimizer="sgd", loss="mse")
rows = Rows(np.ones((4, 3), "float32"), np.ones((4, 2), "float32"))
make_weights(late, Feed(Workload(train=4), rows, rows[:0], rows[:0]))
models.share_weights(late, 5)
values["late"] = [keras.ops.convert_to_numpy(weight).tolist() for weight in late.weights]
output = backends.get(keras.backend.backend()).forward(late, rows.x)
values["output"] = np.round(keras.ops.convert_to_numpy(output), 5).tolist()
print(json.dumps({path.removeprefix("sequential/"): value for path, value in values.items()}))
"""


def begun() -> dict[str, dict[str, Any]]:
    """Return the first values of the same model by backend and by their paths."""
    values = {}
    for name in backends.names():
        environment = os.environ | {"KERAS_BACKEND": name, "CUDA_VISIBLE_DEVICES": "-1", "KERAS_TORCH_DEVICE": "cpu"}
        command = [sys.executable, "-c", BUILD]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr[-2000:]
        values[name] = json.loads(said.stdout.splitlines()[-1])
    return values


# One test, and so one process of the tests, for all that is said of the models: they are made once.
def test_every_backend_begins_with_the_same_weights() -> None:
    values = begun()
    first = values["jax"]
    assert values["torch"] == first and values["tensorflow"] == first
    # What is random is drawn.
    random = ("own/default", "own/function", "own/tensor", "dense/kernel", "dense/bias")
    assert all(np.unique(first[path]).size == np.size(first[path]) for path in random)
    kernel, bias = first["late"]  # of a model of its own class
    assert (np.shape(kernel), np.unique(kernel).size, bias) == ((3, 2), 6, [0.0, 0.0])
    assert np.allclose(first["output"], [np.sum(kernel, axis=0)] * 4, atol=1e-4)
    # What is not random stays as it was built.
    assert first["norm/gamma"] == np.ones((4, 4)).tolist()
    assert first["own/table"] == np.ones((2, 3)).tolist()
    assert first["own/array"] == np.arange(6.0).reshape(2, 3).tolist()
    assert first["gru/gru_cell/recurrent_kernel"] == np.eye(3, 9).tolist()
    assert first["lstm/lstm_cell/bias"] == [0.0] * 3 + [1.0] * 3 + [0.0] * 6
