"""The scenario of a file, of a saved model, and of a name."""

from pathlib import Path
from typing import Any

import pytest

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.worker.resolve import application, resolve
from tests.worker import stand_in_keras
from tests.worker.stand_in_keras import Model, Tensor, saved_model


def model(file: Path, compiled: bool) -> Path:
    inputs = {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [None, None], "dtype": "float32"}}
    loss = {"loss": "mse"} if compiled else None
    return saved_model(file, {"class_name": "Sequential", "config": {"layers": [inputs]}, "compile_config": loss})


def test_a_scenario_file_says_itself_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "'Mine.\\n\\nMore of it.\\n'\nfrom kerasbench import Workload, Scenario, datasets\n"
        "scenario = Scenario(build=len, data=datasets.iris(), workloads=(Workload(train=10),))\n"
    )
    mine = resolve(file, ModelConfig())
    assert (mine.name, mine.text, mine.load) == ("mine", "Mine.\n\nMore of it.", None)


@pytest.mark.parametrize(("compiled", "text"), [(True, "."), (False, "; not compiled, so it is not trained.")])
def test_a_saved_model_is_trained_if_it_was_compiled(tmp_path: Path, compiled: bool, text: str) -> None:
    mine = resolve(model(tmp_path / "mine.keras", compiled), ModelConfig([Input("a", [7])], 4))
    assert (mine.name, mine.text) == ("mine", f"A saved model (Sequential), saved by Keras 3.15.1{text}")
    assert (mine.scenario.keeps_weights, mine.scenario.trains, mine.scenario.learnable) == (True, compiled, False)
    assert mine.scenario.workloads[0].name == "a-7-batch-4"
    given = ModelConfig(rows="rows.npz", samples=90)  # which have their sizes
    (workload,) = resolve(tmp_path / "mine.keras", given).scenario.workloads
    assert (workload.train, workload.batch_size) == (90, 32)


@pytest.fixture(autouse=True)
def _keras(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(weights: object, input_shape: tuple[int, ...] = (64, 64, 3)) -> Model:
        assert weights is None
        if input_shape[0] < 32:
            raise ValueError("Input size must be at least 32x32")
        return Model(Tensor((None, 10)), [Tensor((None, *input_shape), "float32", "picture")])

    stand_in_keras.install(monkeypatch, SmallNet=small, LargeNet=small, version="3")


def built(name: str, given: ModelConfig) -> Any:
    scenario = application(name, given).scenario
    return scenario.build(scenario.workloads[0])


def test_a_name_is_a_scenario_with_random_weights() -> None:
    small = resolve(Path("keras.applications.SmallNet"), ModelConfig(batch=8))
    assert (small.name, small.scenario.keeps_weights, small.scenario.workloads[0].batch_size) == ("SmallNet", False, 8)
    assert small.text.startswith("SmallNet of keras.applications, with random weights.")


def test_it_is_compiled_and_has_its_usual_size_or_the_one_that_is_given() -> None:
    for shape, size in ([], 64), ([96, 96, 3], 96), ([1, 96, 96, 3], 96):
        model = built("SmallNet", ModelConfig([Input("", shape)] if shape else []))
        assert model.compiled_with == {"optimizer": "adam", "loss": "sparse_categorical_crossentropy"}
        assert model.inputs[0].shape == (None, size, size, 3)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("SmalNet", ModelConfig(), "no model keras.applications.SmalNet; did you mean SmallNet"),
        ("xyz", ModelConfig(), "no model keras.applications.xyz; it has LargeNet, SmallNet"),
        ("version", ModelConfig(), "no model keras.applications.version"),
        ("SmallNet", ModelConfig([Input("", [96])]), "the size of one image, such as 96x96x3"),
        ("SmallNet", ModelConfig([Input("", [8, 8, 3])]), "cannot be built for this input: Input size must be"),
    ],
)
def test_what_cannot_be_is_said(name: str, given: ModelConfig, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        built(name, given)
