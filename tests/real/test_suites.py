"""The layers that the suites bring, on every backend, and the scenario that a user begins with."""

from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.plan import templates
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

EVERY_KIND = '''"""A layer of each kind that a suite brings, and weights of every origin, some of them made late."""

import keras
import numpy as np
from kerasbench import Workload, Scenario, datasets


class Own(keras.layers.Layer):
    def build(self, shape):
        self.default = self.add_weight(name="default", shape=(8, 8))
        self.function = self.add_weight(
            name="function", shape=(8, 8), initializer=lambda shape, dtype: keras.random.normal(shape, dtype=dtype)
        )
        self.array = keras.Variable(np.arange(8.0, dtype="float32"), name="array")
        self.tensor = keras.Variable(keras.random.normal((8, 8)), name="tensor")

    def call(self, x):
        return keras.ops.matmul(x, self.default + self.function + self.tensor) + self.array


class Late(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.dense = inner, keras.layers.Dense(2)

    def call(self, x):  # not told whether it trains
        return self.dense(self.inner(x))


def build(workload):
    inputs = keras.Input((8,), dtype="int32")
    x = Own()(keras.layers.Rescaling(2.0)(keras.layers.Embedding(50, 8)(inputs)))
    x = x + keras.layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = keras.layers.BatchNormalization()(keras.layers.LSTM(8)(x))
    model = Late(keras.Model(inputs, x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


data = datasets.sequences(8, vocabulary=50, classes=2)
scenario = Scenario(build=build, data=data, workloads=(Workload(train=256, batch=16),))
'''


def test_layers_of_every_kind_agree_and_say_how_they_were_computed(tmp_path: Path) -> None:
    file = tmp_path / "every_kind.py"
    file.write_text(EVERY_KIND)
    measured = {name: trials.measured(trials.run(file, name, protocol=trials.STEPS_ALONE)) for name in backends.names()}
    assert trials.disagreements(measured) == {}
    for measurement in measured.values():
        assert made.known(measurement.parity).sensitive == ["BatchNormalization", "Embedding"]
    ways = {name: measurement.resolved.recurrent for name, measurement in measured.items()}
    assert ways == {"jax": ["lstm: keras"], "tensorflow": ["lstm: keras"], "torch": ["lstm: backend"]}


def test_the_scenario_to_begin_with_is_measured_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "my_model.py"
    templates.begin_file(file)
    outcome = trials.run(file, "jax", protocol=trials.STEPS_ALONE)
    assert trials.measured(outcome).parameters == 79_510
