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


class SparseCategoricalCrossentropy: ...


class Masked(SparseCategoricalCrossentropy): ...


class LossFunctionWrapper:
    def __init__(self, fn: Any) -> None:
        self.fn = fn


class Own(LossFunctionWrapper): ...


def binary_crossentropy() -> None: ...


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("loss", "shape", "drawn_shape", "values"),
    [
        ("sparse_categorical_crossentropy", (7,), (60,), range(7)),
        (SparseCategoricalCrossentropy(), (12, 7), (60, 12), range(7)),
        (Masked(), (7,), (60,), range(7)),  # takes what the one takes from which it is derived
        (LossFunctionWrapper(binary_crossentropy), (2,), (60, 2), [0.0, 1.0]),
        (Own(binary_crossentropy), (2,), (60, 2), [0.0, 1.0]),
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
    assert source.loss_name(Own(None)) == "own"
    with pytest.raises(ModelError, match="its loss is ctc"):
        source.draw_targets("ctc", (4,), 60, rng())


@pytest.mark.parametrize(
    ("loss", "outputs", "losses"),
    [
        ("mse", {"b": 1, "a": 2}, ["mse", "mse"]),
        ({"b": "mse", "a": "mae"}, {"b": 1, "a": 2}, ["mae", "mse"]),
        ({"second": "mse"}, [1, 2], [None, "mse"]),
        (["mse"], [1, 2], ["mse", None]),
        ({"dense": "mse"}, 1, [None]),
    ],
)
def test_each_output_has_its_loss(loss: Any, outputs: Any, losses: list[Any]) -> None:
    assert source.losses(loss, outputs, ["first", "second"]) == losses


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


@pytest.mark.parametrize(("metrics", "shape"), [(None, (4, 1)), (["mae"], (4, 900))])
def test_an_output_that_nothing_looks_at_has_zeros(metrics: list[str] | None, shape: tuple[int, ...]) -> None:
    def load() -> Model:
        outputs = [Tensor((None, 7)), Tensor((None, 900))]
        losses = ["sparse_categorical_crossentropy", None]
        return Model(outputs, [NUMBERS], losses, _compile_metrics=metrics)

    _, (kind, unused) = Source(load, ModelConfig(), trains=True).draw(4, rng())
    assert (kind.shape, unused.shape) == ((4,), shape)


def test_integers_are_such_as_embeddings_know_and_do_not_mask() -> None:
    words, inputs = Tensor((None, 12), "float32", "words"), [Tensor((None, 3), "int32", "a")]
    of_words = inputs_of(Model(Tensor((None, 1)), [words], layers=[Embedding(50, (words,))]), ModelConfig())
    assert of_words == Spec("words", (12,), "int32", 50)
    assert inputs_of(Model(None, inputs, layers=[Embedding(50), Embedding(9)]), ModelConfig()).below == 9
    assert inputs_of(Model(None, inputs), ModelConfig()).below == 2
    masking = Embedding(50, (TOKENS,), mask_zero=True)
    specs = inputs_of(Model(None, [NUMBERS, TOKENS], layers=[masking]), GIVEN)
    assert [spec.least for spec in specs] == [0, 1]
    assert specs[1].draw(300, rng()).min() == 1
    for given, dtype in (("", "int32"), ("int32", "int32"), ("float32", "float32")):  # of a subclassed model
        asked, told = ModelConfig([Input("", [2], given)]), Spec("x", (2,), given or "float32")
        spec = inputs_of(Model(Tensor((None, 1)), None, "mse", [Embedding(50), Embedding(9)]), asked, [told])
        assert (spec.dtype, spec.below) == (dtype, 9)


def test_a_model_takes_what_it_was_built_with_unless_a_layer_s_state_fixes_the_batch() -> None:
    inputs = [Tensor((4, 3), "float32", "a")]  # as of a model that was first called with four rows
    assert inputs_of(Model(None, inputs), ModelConfig()) == Spec("a", (3,))
    with pytest.raises(ModelError, match="its input a has 4 samples, no more and no less"):
        inputs_of(Model(None, inputs, layers=[Embedding(9, stateful=True)]), ModelConfig())
    x, a, b = Spec("x", (4,), "int32"), Spec("a", (4,)), Spec("b", (2,))
    assert inputs_of(Model(None), ModelConfig(), [x]) == x
    assert inputs_of(Model(None), ModelConfig(), [a, b]) == {"a": a, "b": b}


def test_an_input_for_which_there_are_no_outputs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Model, tensors: object) -> None:
        raise ValueError("Kernel shape must have")

    monkeypatch.setattr(Model, "compute_output_spec", fail)
    with pytest.raises(ModelError, match="for these inputs are unknown: ValueError: Kernel shape"):
        Source(two, GIVEN, trains=True).look()


def test_an_epoch_has_the_user_s_rows_or_as_many_as_a_pool_holds() -> None:
    workload = workload_of([Spec("x", (1 << 15,))], ModelConfig(batch=8))
    assert (workload.train, workload.test, workload.batch_size, workload.name) == (64 * 8, 16 * 8, 8, "batch-8")
    given = workload_of([], ModelConfig(samples=100, rows="rows.npz"))
    assert (given.train, given.test, given.batch_size) == (100, 0, 32)  # none is left that was not trained on
