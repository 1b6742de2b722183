"""Where a weight's first value comes from, and what is drawn."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.runners import weights


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        (type("GlorotUniform", (type("RandomInitializer", (), {}),), {})(), "random"),
        (type("Ones", (), {})(), "given"),
        (np.eye(3), "given"),
        ([[1.0]], "given"),
        (type("OfAUser", (), {})(), "unknown"),
        (lambda shape, dtype: None, "unknown"),
        (SimpleNamespace(shape=(3, 3)), "unknown"),  # a backend's tensor
    ],
)
def test_where_a_first_value_comes_from(value: object, origin: str) -> None:
    assert weights.origin(value) == origin


def test_what_is_random_is_drawn_within_glorot_s_limit() -> None:
    for drawn in ("random", "float32", 2), ("random", "bfloat16", 1), ("unknown", "float32", 2):
        assert weights.is_drawn(*drawn)
    for left in ("random", "uint32", 1), ("given", "float32", 2), ("unknown", "float32", 1):  # an LSTM's bias
        assert not weights.is_drawn(*left)
    for shape, fans in ((), 2), ((5,), 10), ((784, 10), 794), ((3, 3, 16, 32), 9 * 48), ((2, 3, 3, 1, 1), 36):
        assert weights.glorot_limit(shape) == pytest.approx(math.sqrt(6 / fans))


class Model:
    """Two weights that Keras would have drawn and one that it would not, made on one backend or another."""

    def __init__(self, backend: int) -> None:
        drawn = np.random.default_rng(backend)
        self.values = [drawn.normal(size=(4, 3)), np.ones((2, 2)), drawn.normal(size=(3,))]
        origins = ("random", "given", "random")
        self.weights = [SimpleNamespace(dtype="float32", **{weights.ORIGIN: origin}) for origin in origins]

    def get_weights(self) -> list[Any]:
        return list(self.values)

    def set_weights(self, values: list[Any]) -> None:
        self.values = values


def test_two_backends_begin_with_the_same_weights_by_their_seed() -> None:
    first, second, other = Model(1), Model(2), Model(1)
    for model, seed in ((first, 7), (second, 7), (other, 8)):
        weights.share_weights(model, seed)
    assert all((a == b).all() for a, b in zip(first.values, second.values, strict=True))
    assert (first.values[1] == 1).all()
    assert not any((first.values[index] == other.values[index]).any() for index in (0, 2))
