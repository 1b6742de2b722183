"""What layers say of themselves, with stand-ins: no framework is here."""

from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.runners import layers

DENSE = SimpleNamespace(name="dense")
DRAWS: dict[str, Any] = {"_seed_generators": [object()]}


@pytest.mark.parametrize(
    ("layer", "random", "can"),
    [
        (DENSE, False, True),
        (SimpleNamespace(**DRAWS, rate=0.5), True, True),
        (SimpleNamespace(**DRAWS, rate=0), False, True),
        (SimpleNamespace(**DRAWS, stddev=0.1), True, True),
        (SimpleNamespace(**DRAWS, dropout=0.0, recurrent_dropout=0.2), True, True),
        (SimpleNamespace(**DRAWS, factor=(0.1, 0.2)), True, False),  # a random rotation: no amount to zero
        (SimpleNamespace(**DRAWS, fit=None, rate=0.0), True, False),  # a model's own: its rate may be anything
        (SimpleNamespace(rate=0.5), False, True),  # no generator: a rate of something else
    ],
)
def test_random_layers(layer: Any, random: bool, can: bool) -> None:
    assert bool(layers.random_layers([DENSE, layer])) is random
    assert layers.can_be_silenced([DENSE, layer]) is can


def test_what_draws_is_silenced() -> None:
    layer = SimpleNamespace(name="dropout", **DRAWS, rate=0.5, recurrent_dropout=0.0)
    assert layers.silence([DENSE, layer]) == ["dropout"]
    assert layer.rate == 0.0
    assert layers.random_layers([DENSE, layer]) == []


def test_layers_by_which_backends_differ_more_are_known_by_their_class_or_one_that_it_is_derived_from() -> None:
    embedding, normalization = (type(name, (), {}) for name in ("Embedding", "BatchNormalization"))
    derived = type("OwnEmbedding", (embedding,), {})()
    assert layers.sensitive_layers([DENSE]) == []
    assert layers.sensitive_layers([derived, DENSE]) == ["Embedding"]
    assert layers.sensitive_layers([embedding(), normalization(), derived]) == ["BatchNormalization", "Embedding"]
