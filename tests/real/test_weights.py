"""What a real model begins with."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.real

BUILD = """
import json
import keras
import numpy as np
from kerasbench.scenario import Workload
from kerasbench.worker import model as models
from kerasbench.worker.feed import Feed, Rows

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
models.make_weights(late, Feed(Workload(train=4), rows, rows[:0], rows[:0]))
models.share_weights(late, 5)
values["late"] = [keras.ops.convert_to_numpy(weight).tolist() for weight in late.weights]
print(json.dumps({path.removeprefix("sequential/"): value for path, value in values.items()}))
"""


def test_what_is_random_is_drawn_and_what_is_not_stays_as_it_was_built() -> None:
    """That every backend begins with the same weights, losses in test_suites.py show."""
    variables = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run([sys.executable, "-c", BUILD], env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    first = json.loads(ended.stdout.splitlines()[-1])
    random = ("own/default", "own/function", "own/tensor", "dense/kernel", "dense/bias")
    assert all(np.unique(first[path]).size == np.size(first[path]) for path in random)
    kernel, bias = first["late"]  # of a model of its own class
    assert (np.shape(kernel), np.unique(kernel).size, bias) == ((3, 2), 6, [0.0, 0.0])
    assert first["norm/gamma"] == np.ones((4, 4)).tolist()
    assert first["own/table"] == np.ones((2, 3)).tolist()
    assert first["own/array"] == np.arange(6.0).reshape(2, 3).tolist()
    assert first["gru/gru_cell/recurrent_kernel"] == np.eye(3, 9).tolist()
    assert first["lstm/lstm_cell/bias"] == [0.0] * 3 + [1.0] * 3 + [0.0] * 6
