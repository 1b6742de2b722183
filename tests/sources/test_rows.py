"""Rows and targets for models that bring none, scenarios of saved models and of names, with a stand-in for keras."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from kerasbench import sources
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.runners.inputs import InputSpec
from kerasbench.scenario import ModelError, Workload
from kerasbench.sources import rows as source
from kerasbench.sources.rows import ModelWithoutRows as Source
from kerasbench.sources.rows import inputs_of
from tests.worker import stand_in_keras
from tests.worker.stand_in_keras import Embedding, Model, Tensor, saved_model


class LossFunctionWrapper:
    def __init__(self, fn: Any) -> None:
        self.fn = fn


Own = type("Own", (LossFunctionWrapper,), {})
SparseCategoricalCrossentropy = type("SparseCategoricalCrossentropy", (), {})
Masked = type("Masked", (SparseCategoricalCrossentropy,), {})
BINARY = SimpleNamespace(__name__="binary_crossentropy")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("loss", "shape", "drawn_shape", "values"),
    [
        ("sparse_categorical_crossentropy", (7,), (60,), range(7)),
        (SparseCategoricalCrossentropy(), (12, 7), (60, 12), range(7)),
        (Masked(), (7,), (60,), range(7)),  # takes what the one takes from which it is derived
        (LossFunctionWrapper(BINARY), (2,), (60, 2), [0.0, 1.0]),
        (Own(BINARY), (2,), (60, 2), [0.0, 1.0]),
        ("squared_hinge", (2,), (60, 2), [-1.0, 1.0]),
        ("mse", (4, 3), (60, 4, 3), None),
        (None, (4, 3), (60, 4, 3), None),
        (lambda y, outputs: 0, (4, 3), (60, 4, 3), None),
    ],
)
def test_targets_are_such_as_a_loss_takes(loss: Any, shape: Any, drawn_shape: Any, values: Any) -> None:
    targets = source.draw_targets(loss, shape, 60, rng())
    assert (targets.shape, targets.dtype) == (drawn_shape, np.int32 if values == range(7) else np.float32)
    assert values is None or set(targets.ravel()) == set(values)


def test_shares_of_many_classes_sum_to_one_and_what_cannot_be_made_is_said() -> None:
    shares = source.draw_targets("CategoricalCrossentropy", (4, 50_000), 60, rng())
    assert shares.shape == (60, 4, 50_000)
    assert (shares.sum(axis=-1) == 1).all()
    with pytest.raises(ModelError, match="its loss is ctc"):
        source.draw_targets("ctc", (4,), 60, rng())


def test_each_output_has_its_loss() -> None:
    for loss, outputs, losses in (
        ("mse", {"b": 1, "a": 2}, ["mse", "mse"]),
        ({"b": "mse", "a": "mae"}, {"b": 1, "a": 2}, ["mae", "mse"]),
        ({"second": "mse"}, [1, 2], [None, "mse"]),
        (["mse"], [1, 2], ["mse", None]),
        ({"dense": "mse"}, 1, [None]),
    ):
        assert source.losses(loss, outputs, ["first", "second"]) == losses


TOKENS, NUMBERS = Tensor((None, None), "int32", "tokens"), Tensor((None, 5), "float32", "numbers")
GIVEN = ModelConfig([Input("tokens", [12])])
WORKLOAD = Workload(train=64, batch=8)


def small(weights: object, input_shape: tuple[int, ...] = (64, 64, 3)) -> Model:
    assert weights is None
    if input_shape[0] < 32:
        raise ValueError("Input size must be at least 32x32")
    return Model(Tensor((None, 10)), [Tensor((None, *input_shape), "float32", "picture")])


@pytest.fixture(autouse=True)
def _keras(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_keras.install(monkeypatch, SmallNet=small, LargeNet=small, version="3")


def two() -> Model:
    outputs = {"price": Tensor((None, 1)), "kind": Tensor((None, 7))}
    loss = {"price": "mse", "kind": "sparse_categorical_crossentropy"}
    return Model(outputs, [NUMBERS, TOKENS], loss, [Embedding(50, (TOKENS,)), Embedding(9)])


def test_rows_fit_the_inputs_and_targets_the_outputs() -> None:
    (numbers, tokens), y = Source(two, GIVEN, trains=True).draw(300, rng())
    assert (numbers.shape, tokens.shape, tokens.dtype) == ((300, 5), (300, 12), np.int32)
    assert 40 < tokens.max() < 50  # below the embedding that they go into, not below the other
    assert (y["price"].shape, y["kind"].shape, y["kind"].max()) == ((300, 1), (300,), 6)
    _, y = Source(two, GIVEN, trains=False).draw(4, rng())  # has no loss to go by
    assert (y.shape, y.max()) == ((4, 1), 0)


def test_the_model_that_was_looked_at_is_the_first_that_is_built() -> None:
    models = [two(), two()]
    source = Source(iter(models).__next__, GIVEN, trains=True)
    source.look()
    source.draw(2, rng())
    assert source.build(WORKLOAD) is models[0]
    assert source.build(WORKLOAD) is models[1]


def test_an_output_that_nothing_looks_at_has_zeros() -> None:
    outputs, losses = [Tensor((None, 7)), Tensor((None, 900))], ["sparse_categorical_crossentropy", None]
    for metrics, shape in (None, (4, 1)), (["mae"], (4, 900)):
        model = Model(outputs, [NUMBERS], losses, _compile_metrics=metrics)
        _, (kind, unused) = Source(Mock(return_value=model), ModelConfig(), trains=True).draw(4, rng())
        assert (kind.shape, unused.shape) == ((4,), shape)


def test_integers_are_such_as_embeddings_know_and_do_not_mask() -> None:
    words, inputs = Tensor((None, 12), "float32", "words"), [Tensor((None, 3), "int32", "a")]
    of_words = inputs_of(Model(Tensor((None, 1)), [words], layers=[Embedding(50, (words,))]), ModelConfig())
    assert of_words == InputSpec("words", (12,), "int32", 50)
    assert inputs_of(Model(None, inputs, layers=[Embedding(50), Embedding(9)]), ModelConfig()).below == 9
    assert inputs_of(Model(None, inputs), ModelConfig()).below == 2
    masking = Embedding(50, (TOKENS,), mask_zero=True)
    specs = inputs_of(Model(None, [NUMBERS, TOKENS], layers=[masking]), GIVEN)
    assert [spec.least for spec in specs] == [0, 1]
    assert specs[1].draw(300, rng()).min() == 1
    for given, dtype in (("", "int32"), ("int32", "int32"), ("float32", "float32")):  # of a subclassed model
        asked, told = ModelConfig([Input("", [2], given)]), InputSpec("x", (2,), given or "float32")
        spec = inputs_of(Model(Tensor((None, 1)), None, "mse", [Embedding(50), Embedding(9)]), asked, [told])
        assert (spec.dtype, spec.below) == (dtype, 9)


def test_a_model_takes_what_it_was_built_with_unless_a_layer_s_state_fixes_the_batch() -> None:
    inputs = [Tensor((4, 3), "float32", "a")]  # as of a model that was first called with four rows
    assert inputs_of(Model(None, inputs), ModelConfig()) == InputSpec("a", (3,))
    with pytest.raises(ModelError, match="its input a has 4 samples, no more and no less"):
        inputs_of(Model(None, inputs, layers=[Embedding(9, stateful=True)]), ModelConfig())
    x, a, b = InputSpec("x", (4,), "int32"), InputSpec("a", (4,)), InputSpec("b", (2,))
    assert inputs_of(Model(None), ModelConfig(), [x]) == x
    assert inputs_of(Model(None), ModelConfig(), [a, b]) == {"a": a, "b": b}


def test_an_input_for_which_there_are_no_outputs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "compute_output_spec", Mock(side_effect=ValueError("Kernel shape must have")))
    with pytest.raises(ModelError, match="for these inputs are unknown: ValueError: Kernel shape"):
        Source(two, GIVEN, trains=True).look()


def test_an_epoch_has_the_user_s_rows_or_as_many_as_a_pool_holds() -> None:
    for config, train, test, batch in (
        (ModelConfig(batch=8), 64 * 8, 16 * 8, 8),  # batches of one MiB
        (ModelConfig(samples=100, rows="rows.npz"), 100, 0, 32),  # none is left that was not trained on
    ):
        (workload,) = Source(two, config, True, [InputSpec("x", (1 << 15,))]).resolved("").scenario.workloads
        assert (workload.train, workload.test, workload.batch_size) == (train, test, batch)


LAYER = {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [None, None], "dtype": "float32"}}


@pytest.mark.parametrize(("compiled", "text"), [(True, "."), (False, "; not compiled, so it is not trained.")])
def test_a_saved_model_is_trained_if_it_was_compiled(tmp_path: Path, compiled: bool, text: str) -> None:
    loss = {"loss": "mse"} if compiled else None
    config = {"class_name": "Sequential", "config": {"layers": [LAYER]}, "compile_config": loss}
    file = sources.of(saved_model(tmp_path / "mine.keras", config))
    mine = file.resolve(ModelConfig([Input("a", [7])], 4))
    assert (file.name, mine.text) == ("mine", f"A saved model (Sequential), saved by Keras 3.15.1{text}")
    assert (mine.scenario.keeps_weights, mine.scenario.trains, mine.scenario.learnable) == (True, compiled, False)
    assert mine.scenario.workloads[0].name == "a-7-batch-4"
    given = ModelConfig(rows="rows.npz", samples=90)  # which have their sizes
    (workload,) = file.resolve(given).scenario.workloads
    assert (workload.train, workload.batch_size) == (90, 32)


def built(name: str, given: ModelConfig) -> Any:
    scenario = sources.of(Path(f"keras.applications.{name}")).resolve(given).scenario
    return scenario.build(scenario.workloads[0])


def test_a_name_is_a_scenario_with_random_weights() -> None:
    named = sources.of(Path("keras.applications.SmallNet"))
    small = named.resolve(ModelConfig(batch=8))
    assert (named.name, small.scenario.keeps_weights, small.scenario.workloads[0].batch_size) == ("SmallNet", False, 8)
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
