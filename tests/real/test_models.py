"""Saved models, such as a user has and such as nobody should have, and data of any structure."""

import sys
from pathlib import Path

import numpy as np
import pytest

from kerasbench.plan import live
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.protocol.stages import TRAIN
from tests import made
from tests.real import trials
from tests.repository import printed

pytestmark = pytest.mark.real

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
Models = tuple[Path, list[str]]
GIVEN = ModelConfig([Input("tokens", [6])], 16)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Models as torch saves them, and what is said of others."""
    folder = tmp_path_factory.mktemp("models")
    return folder, printed(sys.executable, "-m", "tests.real.saved_models", folder, KERAS_BACKEND="torch").splitlines()


def test_a_model_that_one_backend_saved_is_the_same_on_another(models: Models) -> None:
    measured = {
        backend: trials.measured(trials.run(models[0] / "two.keras", backend, model_config=GIVEN))
        for backend in ("torch", "jax")
    }
    assert trials.disagreements(measured) == {}
    for measurement in measured.values():
        assert measurement.batch.x == "['numbers'] float32[16, 5], ['tokens'] int32[16, 6]"
        assert measurement.batch.y == "['kind'] int32[16], ['price'] float32[16, 1]"
        parity = made.known(measurement.parity)
        assert [len(output) for output in parity.outputs] == [64, 16]
        assert (parity.silenced, len(parity.losses)) == (["dropout"], 6)
        assert 2 <= len(measurement.samples[TRAIN]) <= 4  # two again where others disturbed them
        assert measurement.parameters == 50 * 8 + 14 + 7 * 14


def test_a_model_that_was_not_compiled_predicts_for_the_rows_that_it_is_given(models: Models, tmp_path: Path) -> None:
    rows = tmp_path / "rows.npz"
    samples = live.write_rows(rows, (np.ones((40, 8)), np.ones((40, 4))))
    given = ModelConfig(rows=str(rows), samples=samples)
    plan = trials.fitted(trials.SHORTEST, predicts_only=True)
    measurement = trials.measured(trials.run(models[0] / "one.keras", "torch", model_config=given, plan=plan))
    assert (measurement.training, measurement.learning, measurement.batch.x) == (None, None, "float32[32, 8]")
    assert [calls.batch for calls in measurement.calls.values()] == [1, 32]
    assert len(set(made.known(measurement.parity).outputs[0])) == 4  # of equal rows


def test_each_hostile_file_is_one_sentence_and_rows_that_look_up_one_row_are_refused(models: Models) -> None:
    _, (from_lambda, claims, large, wide, *looked_up) = models
    assert from_lambda.startswith("ModelError: ")
    assert "it has a Lambda layer that would run code from the file" in from_lambda
    assert claims.startswith("ModelError: ") and "Keras refuses it: H5 dataset '0' declares 9.31 GB but only" in claims
    for said in (large, wide):  # a file that claims 3.4 GiB, and a layer that would have 12 GiB
        assert said.startswith("TrialFailure: ") and "loading it asks for more than 2 GiB" in said
    assert looked_up == [
        "direct: fine",
        "own layer: --input x=100:int32",
        "nested: --input x=100:int32",
        "slice: --input x=2:int32",
        "places of a picture: fine",
    ]


def test_lists_weights_and_a_step_of_its_own_are_measured_where_they_run(tmp_path: Path) -> None:
    file = tmp_path / "several.py"
    file.write_text(LIST)
    measurement = trials.measured(trials.run(file, "torch", plan=trials.STEPS_ALONE))
    assert measurement.batch.x == "[0] float32[16, 3], [1] float32[16, 4]"
    failure = made.known(trials.run(file, "jax").failure)
    assert failure.code is Code.UNSUPPORTED and "the model's own train_step does not run on jax" in failure.cause
