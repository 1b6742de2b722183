"""Rows and targets for models that bring none, with a stand-in for keras."""

from typing import Any

import numpy as np
import pytest

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError, Workload
from kerasbench.worker import source
from kerasbench.worker.inputs import Spec
from kerasbench.worker.source import Source, inputs_of, workload_of
from tests.worker import stand_in_keras
from tests.worker.stand_in_keras import Embedding, Model, Tensor


class SparseCategoricalCrossentropy:
    pass


class LossFunctionWrapper:
    def __init__(self, fn: Any) -> None:
        self.fn = fn


def binary_crossentropy() -> None:
    pass


def drawn(loss: Any, *shape: int) -> Any:
    return source.draw_targets(loss, shape, 60, np.random.default_rng(0))


def test_targets_are_such_as_a_loss_takes() -> None:
    classes = drawn("sparse_categorical_crossentropy", 7)
    assert (classes.shape, classes.dtype, sorted(set(classes))) == ((60,), np.int32, list(range(7)))
    assert drawn(SparseCategoricalCrossentropy(), 12, 7).shape == (60, 12)
    shares = drawn("CategoricalCrossentropy", 4, 50_000)
    assert shares.shape == (60, 4, 50_000)
    assert (shares.sum(axis=-1) == 1).all()
    assert set(drawn(LossFunctionWrapper(binary_crossentropy), 2).ravel()) == {0.0, 1.0}
    assert set(drawn("squared_hinge", 2).ravel()) == {-1.0, 1.0}


def test_a_loss_that_is_derived_from_another_takes_what_that_takes() -> None:
    class Masked(SparseCategoricalCrossentropy):
        pass

    class Own(LossFunctionWrapper):
        pass

    assert drawn(Masked(), 7).dtype == np.int32
    assert set(drawn(Own(binary_crossentropy), 2).ravel()) == {0.0, 1.0}
    assert source.loss_name(Own(None)) == "own"


@pytest.mark.parametrize("loss", ["mse", None, lambda y, found: 0])
def test_any_other_loss_takes_numbers_in_the_shape_of_the_output(loss: Any) -> None:
    found = drawn(loss, 4, 3)
    assert (found.shape, found.dtype) == ((60, 4, 3), np.float32)


def test_what_cannot_be_made_is_said() -> None:
    with pytest.raises(ModelError, match="its loss is ctc"):
        drawn("ctc", 4)


@pytest.mark.parametrize(
    ("loss", "outputs", "found"),
    [
        ("mse", {"b": 1, "a": 2}, ["mse", "mse"]),
        ({"b": "mse", "a": "mae"}, {"b": 1, "a": 2}, ["mae", "mse"]),
        ({"second": "mse"}, [1, 2], [None, "mse"]),
        (["mse"], [1, 2], ["mse", None]),
        ({"dense": "mse"}, 1, [None]),
    ],
)
def test_each_output_has_its_loss(loss: Any, outputs: Any, found: list[Any]) -> None:
    assert source.losses(loss, outputs, ["first", "second"]) == found


# Sources.


TOKENS, NUMBERS = Tensor((None, None), "int32", "tokens"), Tensor((None, 5), "float32", "numbers")
GIVEN = ModelConfig([Input("tokens", [12])])
WORKLOAD = Workload(train=64, batch=8)


@pytest.fixture(autouse=True)
def _keras(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_keras.install(monkeypatch)


def two() -> Model:
    outputs = {"price": Tensor((None, 1)), "kind": Tensor((None, 7))}
    loss = {"price": "mse", "kind": "sparse_categorical_crossentropy"}
    return Model(outputs, [NUMBERS, TOKENS], loss, [Embedding(50, (TOKENS,)), Embedding(9)])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_rows_fit_the_inputs_and_targets_the_outputs() -> None:
    source = Source(two, GIVEN, trains=True)
    (numbers, tokens), y = source.draw(300, rng())
    assert (numbers.shape, tokens.shape, tokens.dtype) == ((300, 5), (300, 12), np.int32)
    assert 40 < tokens.max() < 50  # below the embedding that they go into, not below the other
    assert (y["price"].shape, y["kind"].shape, y["kind"].max()) == ((300, 1), (300,), 6)


def test_the_model_that_was_looked_at_is_the_first_that_is_built() -> None:
    loaded: list[Model] = []

    def load() -> Model:
        loaded.append(two())
        return loaded[-1]

    source = Source(load, GIVEN, trains=True)
    source.look()
    source.draw(2, rng())
    assert source.build(WORKLOAD) is loaded[0]
    assert source.build(WORKLOAD) is loaded[1]
    assert len(loaded) == 2


def test_a_model_that_is_not_trained_has_no_loss_to_go_by() -> None:
    _, y = Source(two, GIVEN, trains=False).draw(4, rng())
    assert (y.shape, y.max()) == ((4, 1), 0)


@pytest.mark.parametrize(("metrics", "shape"), [(None, (4, 1)), (["mae"], (4, 900))])
def test_an_output_that_nothing_looks_at_has_zeros(metrics: list[str] | None, shape: tuple[int, ...]) -> None:
    def load() -> Model:
        outputs = [Tensor((None, 7)), Tensor((None, 900))]
        losses = ["sparse_categorical_crossentropy", None]
        return Model(outputs, [NUMBERS], losses, _compile_metrics=metrics)

    _, (kind, unused) = Source(load, ModelConfig(), trains=True).draw(4, rng())
    assert (kind.shape, unused.shape) == ((4,), shape)


def test_integers_are_such_as_embeddings_know_and_do_not_mask() -> None:
    words = Tensor((None, 12), "float32", "words")
    found = inputs_of(Model(Tensor((None, 1)), [words], layers=[Embedding(50, (words,))]), ModelConfig())
    assert found == Spec("words", (12,), "int32", 50)
    inputs = [Tensor((None, 3), "int32", "a")]
    assert inputs_of(Model(None, inputs, layers=[Embedding(50), Embedding(9)]), ModelConfig()).below == 9
    assert inputs_of(Model(None, inputs), ModelConfig()).below == 2
    masking = Embedding(50, (TOKENS,), mask_zero=True)
    found = inputs_of(Model(None, [NUMBERS, TOKENS], layers=[masking]), GIVEN)
    assert [spec.least for spec in found] == [0, 1]
    assert found[1].draw(300, rng()).min() == 1


def test_a_model_takes_what_it_was_built_with_unless_a_layer_s_state_fixes_the_batch() -> None:
    inputs = [Tensor((4, 3), "float32", "a")]  # as of a model that was first called with four rows
    assert inputs_of(Model(None, inputs), ModelConfig()) == Spec("a", (3,))
    with pytest.raises(ModelError, match="its input a has 4 samples, no more and no less"):
        inputs_of(Model(None, inputs, layers=[Embedding(9, stateful=True)]), ModelConfig())
    one, several = [Spec("x", (4,), "int32")], [Spec("a", (4,)), Spec("b", (2,))]
    assert inputs_of(Model(None), ModelConfig(), one) == one[0]
    assert inputs_of(Model(None), ModelConfig(), several) == {"a": several[0], "b": several[1]}


def test_an_input_for_which_there_are_no_outputs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Model, tensors: object) -> None:
        raise ValueError("Kernel shape must have")

    monkeypatch.setattr(Model, "compute_output_spec", fail)
    with pytest.raises(ModelError, match="for these inputs are unknown: ValueError: Kernel shape"):
        Source(two, GIVEN, trains=True).look()


def test_an_epoch_has_the_user_s_rows_or_as_many_as_a_pool_holds() -> None:
    workload = workload_of([Spec("x", (1 << 15,))], ModelConfig(batch=8))
    assert (workload.train, workload.test, workload.batch_size, workload.name) == (64 * 8, 16 * 8, 8, "batch-8")
    own = workload_of([], ModelConfig(samples=100, rows="rows.npz"))
    assert (own.train, own.test, own.batch_size) == (100, 0, 32)  # none is left that was not trained on


@pytest.mark.parametrize(("given", "dtype"), [("", "int32"), ("int32", "int32"), ("float32", "float32")])
def test_what_a_subclassed_model_looks_up_is_whole_numbers_below_its_smallest_embedding(given: str, dtype: str) -> None:
    asked, told = ModelConfig([Input("", [2], given)]), Spec("x", (2,), given or "float32")
    found = inputs_of(Model(Tensor((None, 1)), None, "mse", [Embedding(50), Embedding(9)]), asked, [told])
    assert (found.dtype, found.below) == (dtype, 9)
