"""The layers that the suites bring, on every backend, and the scenario that a user begins with."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from kerasbench import backends
from kerasbench.analysis.estimates import learned
from kerasbench.plan import catalog, templates
from tests import made
from tests.real import trials
from tests.repository import printed

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
        self.table = self.add_weight(name="table", shape=(8,), initializer="ones")
        self.array = keras.Variable(np.arange(8.0, dtype="float32"), name="array")
        self.tensor = keras.Variable(keras.random.normal((8, 8)), name="tensor")

    def call(self, x):
        return keras.ops.matmul(x, self.default + self.function + self.tensor) * self.table + self.array


class Late(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.dense = inner, keras.layers.Dense(2, bias_initializer="random_normal")

    def call(self, x):  # not told whether it trains
        return self.dense(self.inner(x))


def build(workload):
    inputs = keras.Input((8,), dtype="int32")
    x = Own(name="own")(keras.layers.Rescaling(2.0)(keras.layers.Embedding(50, 8)(inputs)))
    x = keras.layers.LayerNormalization(axis=(1, 2), name="norm")(x)
    x = x + keras.layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = keras.layers.BatchNormalization()(keras.layers.LSTM(8, recurrent_initializer="identity")(x))
    model = Late(keras.Model(inputs, x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


data = datasets.sequences(8, vocabulary=50, classes=2)
scenario = Scenario(build=build, data=data, workloads=(Workload(train=256, batch=16),))
'''

LAYERS = [
    *("dense", "convolution", "depthwise", "transposed", "pooling", "batch_normalization", "layer_normalization"),
    *("attention", "attention_dropout", "lstm", "gru", "bidirectional", "embedding", "augmentation"),
]

BEGUN = """
import json, sys
from contextlib import nullcontext
from pathlib import Path
from kerasbench import backends
from kerasbench.protocol.columns import Device
from kerasbench.protocol.requests import TrialPlan, TrialRequest
from kerasbench.runners.feed import prepare
from kerasbench.runners.keras import KerasRunner
from kerasbench.scenario import load
from kerasbench.worker.build import prepare_model
request = TrialRequest("", "", "", "default", "jax", Device("cpu"), 5, "synthetic", TrialPlan())
runner = KerasRunner(backends.get("jax"), request)
runner.load(lambda phase: nullcontext())
scenario, _ = load(Path(sys.argv[1]))
model = prepare_model(scenario, prepare(scenario, scenario.workloads[0], 0), request).model
weights = zip(model.weights, model.get_weights())
print(json.dumps({"/".join(weight.path.split("/")[-2:]): value.tolist() for weight, value in weights}))
"""


@pytest.fixture
def every_kind(tmp_path: Path) -> Path:
    file = tmp_path / "every_kind.py"
    file.write_text(EVERY_KIND)
    return file


@pytest.mark.weekly
def test_layers_of_every_kind_agree_and_say_how_they_were_computed(every_kind: Path) -> None:
    measured = {
        name: trials.measured(trials.run(every_kind, name, plan=trials.STEPS_ALONE)) for name in backends.built_in()
    }
    assert trials.disagreements(measured) == {}  # so they begin with the same weights
    for measurement in measured.values():
        assert made.known(measurement.parity).sensitive == ["BatchNormalization", "Embedding"]
    ways = {name: measurement.facts["recurrent"] for name, measurement in measured.items()}
    assert ways == {"jax": "LSTM: loop", "tensorflow": "LSTM: loop", "torch": "LSTM: fused"}


def test_every_workload_of_the_suite_of_layers_is_checked_here() -> None:
    (layers,) = catalog.describe(catalog.suite_files("layers"), sys.executable)
    assert [workload.name for workload in layers.description.workloads] == LAYERS


@pytest.mark.weekly
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_trained_on_every_backend_and_they_agree(layer: str) -> None:
    outcomes = {
        name: trials.builtin("layers/layers", layer, name, plan=trials.STEPS_ALONE) for name in backends.built_in()
    }
    measured = {name: trials.measured(outcome) for name, outcome in outcomes.items()}
    assert trials.disagreements(measured) == {}
    for measurement in measured.values():
        learning = made.taught(measurement)
        assert learned(learning.batch_loss_before, learning.batch_loss_after)
        # Each backend draws its own augmentation, which no option of a layer takes away.
        assert (measurement.parity is None) is (layer == "augmentation")


@pytest.mark.weekly
def test_what_is_random_is_drawn_and_what_is_not_stays_as_it_was_built(every_kind: Path) -> None:
    told = printed(sys.executable, "-c", BEGUN, every_kind, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    first = {path: np.array(values) for path, values in json.loads(told.splitlines()[-1]).items()}
    for path in ("own/default", "own/function", "own/tensor", "dense/kernel", "dense/bias"):
        assert np.unique(first[path]).size == first[path].size > 1
    assert (first["norm/gamma"] == 1).all() and (first["own/table"] == 1).all()
    assert first["own/array"].tolist() == [*range(8)]
    assert (first["lstm_cell/recurrent_kernel"] == np.eye(8, 32)).all()
    assert first["lstm_cell/bias"].tolist() == [0.0] * 8 + [1.0] * 8 + [0.0] * 16


def test_the_scenario_to_begin_with_is_measured_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "my_model.py"
    templates.begin_file(file)
    outcome = trials.run(file, "jax", plan=trials.STEPS_ALONE)
    assert trials.measured(outcome).parameters == 79_510
