"""The suites' models as they are built, and the layers that they bring, on every backend."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.analysis import parity
from kerasbench.plan import beginning, catalog
from kerasbench.scenario import STEP_PER_FORWARD
from tests.real import trials
from tests.untraced import untraced

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
PUBLISHED_SIZES = {
    ("bert", "base"): 109_482_240 + 2 * (768 + 1),  # and a last layer for two classes
    ("gpt2", "base"): 124_439_808,
    ("vit", "base"): 86_567_656,
    ("resnet50", "base"): 25_636_712,
    ("mobilenet_v2", "base"): 3_538_984,
    ("efficientnet_v2_b0", "base"): 7_200_312,
    ("resnet8", "default"): 78_666,
    ("ds_cnn", "default"): 24_908,
    ("autoencoder", "default"): 269_992,
    ("small_cnn", "default"): 113_866,
}
EVERY_KIND = '''"""A model with one layer of each kind that a suite brings."""

import keras
from kerasbench import Regime, Scenario, datasets


def build(regime):
    inputs = keras.Input((8,), dtype="int32")
    x = keras.layers.Rescaling(2.0)(keras.layers.Embedding(50, 8)(inputs))
    x = x + keras.layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = keras.layers.BatchNormalization()(keras.layers.LSTM(8)(x))
    model = keras.Model(inputs, keras.layers.Dense(2)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


data = datasets.texts(8, words=50, classes=2)
scenario = Scenario(build=build, data=data, regimes=(Regime(train=256, batch=16),))
'''


def test_what_every_regime_says_of_its_model_is_what_its_model_is() -> None:
    files = [str(file) for file in catalog.builtin_files()]
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(Path(__file__).with_name("counted.py")), *files]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    counted = json.loads(ended.stdout)
    for entry in catalog.describe_all(catalog.builtin_files(), sys.executable):
        for regime in entry.description.regimes:
            parameters, forward = counted[entry.name][regime.name]
            assert regime.parameters == parameters, (entry.name, regime.name)
            assert regime.operations == STEP_PER_FORWARD * forward * regime.batch, (entry.name, regime.name)
    assert {key: counted[key[0]][key[1]][0] for key in PUBLISHED_SIZES} == PUBLISHED_SIZES


def test_layers_of_every_kind_agree_and_say_how_they_were_computed(tmp_path: Path) -> None:
    file = tmp_path / "every_kind.py"
    file.write_text(EVERY_KIND)
    with untraced():
        found = {
            name: trials.measured(trials.run(file, name, protocol=trials.STEPS_ALONE)) for name in backends.names()
        }
    assert parity.judge({(name, "cpu", ""): ("cpu", one) for name, one in found.items()}) == {}
    for one in found.values():
        assert one.parity is not None
        assert one.parity.sensitive == ["BatchNormalization", "Embedding"]
    ways = {name: one.resolved.recurrent for name, one in found.items()}
    assert ways == {"jax": ["lstm: keras"], "tensorflow": ["lstm: keras"], "torch": ["lstm: backend"]}


def test_the_scenario_to_begin_with_is_measured_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "my_model.py"
    beginning.begin(file)
    with untraced():
        found = trials.measured(trials.run(file, "torch", protocol=trials.STEPS_ALONE))
    assert found.parameters == 79_510
