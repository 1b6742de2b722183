from typing import Any

import pytest

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.worker import resolve
from tests.worker import stand_in_keras
from tests.worker.stand_in_keras import Model, Tensor


@pytest.fixture(autouse=True)
def _keras(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(weights: object, input_shape: tuple[int, ...] = (64, 64, 3)) -> Model:
        assert weights is None
        if input_shape[0] < 32:
            raise ValueError("Input size must be at least 32x32")
        return Model(Tensor((None, 10)), [Tensor((None, *input_shape), "float32", "picture")])

    stand_in_keras.install(monkeypatch, SmallNet=small, LargeNet=small, version="3")


def built(given: ModelConfig) -> Any:
    found = resolve.application("SmallNet", given)
    return found.scenario.build(found.scenario.workloads[0])


def test_a_name_is_a_scenario_with_random_weights() -> None:
    found = resolve.application("SmallNet", ModelConfig(batch=8))
    assert (found.name, found.scenario.keeps_weights, found.scenario.workloads[0].batch_size) == ("SmallNet", False, 8)
    assert found.text.startswith("SmallNet of keras.applications, with random weights.")


def test_it_is_compiled_and_has_its_usual_size() -> None:
    model = built(ModelConfig())
    assert model.compiled_with == {"optimizer": "adam", "loss": "sparse_categorical_crossentropy"}
    assert model.inputs[0].shape == (None, 64, 64, 3)


@pytest.mark.parametrize("shape", [[96, 96, 3], [1, 96, 96, 3]])
def test_the_size_of_a_picture_can_be_given(shape: list[int]) -> None:
    assert built(ModelConfig([Input("", shape)])).inputs[0].shape == (None, 96, 96, 3)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("SmalNet", ModelConfig(), "no model keras.applications.SmalNet; did you mean SmallNet"),
        ("xyz", ModelConfig(), "no model keras.applications.xyz; it has LargeNet, SmallNet"),
        ("version", ModelConfig(), "no model keras.applications.version"),
        ("SmallNet", ModelConfig([Input("", [96])]), "the size of one picture, such as 96x96x3"),
        (
            "SmallNet",
            ModelConfig([Input("", [8, 8, 3])]),
            "cannot be built for this input: Input size must be at least",
        ),
    ],
)
def test_what_cannot_be_is_said(name: str, given: ModelConfig, said: str) -> None:
    def build() -> None:
        found = resolve.application(name, given)
        found.scenario.build(found.scenario.workloads[0])

    with pytest.raises(ModelError, match=said):
        build()
