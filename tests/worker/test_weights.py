import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.worker import model


class Initializer:
    """As Keras names its own."""


class RandomInitializer(Initializer):
    pass


class GlorotUniform(RandomInitializer):
    pass


class Ones(Initializer):
    pass


class Positions(Initializer):
    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("initializer", "found"),
    [
        (GlorotUniform(), "random"),
        (Ones(), "given"),
        (np.eye(3), "given"),
        ([[1.0]], "given"),
        (1.0, "given"),
        (Positions(), "unknown"),
        (lambda shape, dtype: None, "unknown"),
        (SimpleNamespace(shape=(3, 3)), "unknown"),  # a backend's tensor
    ],
)
def test_where_a_first_value_comes_from(initializer: object, found: str) -> None:
    assert model.origin(initializer) == found


@pytest.mark.parametrize(
    ("found", "dtype", "dimensions", "drawn"),
    [
        ("random", "float32", 2, True),
        ("random", "bfloat16", 1, True),
        ("random", "uint32", 1, False),
        ("given", "float32", 2, False),
        ("unknown", "float32", 2, True),
        ("unknown", "float32", 1, False),  # an LSTM's bias, whose forget gates begin with 1
    ],
)
def test_what_is_random_is_drawn(found: model.Origin, dtype: str, dimensions: int, drawn: bool) -> None:
    assert model.is_drawn(found, dtype, dimensions) is drawn


@pytest.mark.parametrize(
    ("shape", "fans"), [((), 2), ((5,), 10), ((784, 10), 794), ((3, 3, 16, 32), 9 * 48), ((2, 3, 3, 1, 1), 36)]
)
def test_a_limit_is_glorot_s(shape: tuple[int, ...], fans: int) -> None:
    assert model.glorot_limit(shape) == pytest.approx(math.sqrt(6 / fans))


class Model:
    """Two weights that Keras would have drawn and one that it would not, made on one backend or another."""

    def __init__(self, backend: int) -> None:
        own = np.random.default_rng(backend)
        self.values = [own.normal(size=(4, 3)), np.ones((2, 2)), own.normal(size=(3,))]
        origins = ("random", "given", "random")
        self.weights = [SimpleNamespace(dtype="float32", **{model.ORIGIN: one}) for one in origins]

    def get_weights(self) -> list[Any]:
        return list(self.values)

    def set_weights(self, values: list[Any]) -> None:
        self.values = values


def test_two_backends_begin_with_the_same_weights_by_their_seed() -> None:
    one, two, other = Model(1), Model(2), Model(1)
    model.share_weights(one, seed=7)
    model.share_weights(two, seed=7)
    model.share_weights(other, seed=8)
    assert all((a == b).all() for a, b in zip(one.values, two.values, strict=True))
    assert (one.values[1] == 1).all()
    assert not any((one.values[index] == other.values[index]).any() for index in (0, 2))
