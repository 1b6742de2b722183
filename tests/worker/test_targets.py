from typing import Any

import numpy as np
import pytest

from kerasbench.scenario import ModelError
from kerasbench.worker import source


class SparseCategoricalCrossentropy:
    pass


class LossFunctionWrapper:
    def __init__(self, fn: Any) -> None:
        self.fn = fn


def binary_crossentropy() -> None:
    pass


def drawn(loss: Any, *shape: int) -> Any:
    return source.draw_targets(loss, shape, 60, np.random.default_rng(0))


def test_classes_are_below_the_outputs_of_each() -> None:
    found = drawn("sparse_categorical_crossentropy", 7)
    assert (found.shape, found.dtype, sorted(set(found))) == ((60,), np.int32, list(range(7)))
    assert drawn(SparseCategoricalCrossentropy(), 12, 7).shape == (60, 12)


def test_a_loss_that_is_derived_from_another_takes_what_that_takes() -> None:
    class Masked(SparseCategoricalCrossentropy):
        pass

    class Own(LossFunctionWrapper):
        pass

    assert drawn(Masked(), 7).dtype == np.int32
    assert set(drawn(Own(binary_crossentropy), 2).ravel()) == {0.0, 1.0}
    assert source.loss_name(Own(None)) == "own"


def test_shares_are_of_one_class_each() -> None:
    found = drawn("CategoricalCrossentropy", 4, 3)
    assert found.shape == (60, 4, 3)
    assert (found.sum(axis=-1) == 1).all()


def test_bits_and_signs_have_two_values() -> None:
    assert set(drawn(LossFunctionWrapper(binary_crossentropy), 2).ravel()) == {0.0, 1.0}
    assert set(drawn("squared_hinge", 2).ravel()) == {-1.0, 1.0}


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
    assert list(source.losses(loss, outputs, ["first", "second"])) == found


def test_one_row_of_very_many_classes_takes_no_more_than_a_row() -> None:
    found = source.draw_targets("categorical_crossentropy", (500_000,), 2, np.random.default_rng(0))
    assert found.shape == (2, 500_000)
    assert found.sum(-1).tolist() == [1, 1]
