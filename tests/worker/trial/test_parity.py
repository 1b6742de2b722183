"""Which layers draw random numbers, by what Keras calls their amount; stand-ins, because no framework is here."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.worker.trial import parity


@dataclass
class Model:
    layers: list[Any] = field(default_factory=list)

    def _flatten_layers(self, include_self: bool) -> list[Any]:
        return self.layers


DENSE = SimpleNamespace(name="dense", units=3)


class SeedGenerator:
    """By its name alone, as keras is not here."""


SEED = SeedGenerator()


@pytest.mark.parametrize(
    ("layer", "random", "can"),
    [
        (DENSE, False, True),
        (SimpleNamespace(seed_generator=SEED, rate=0.5), True, True),
        (SimpleNamespace(seed_generator=SEED, rate=0), False, True),
        (SimpleNamespace(seed_generator=SEED, stddev=0.1), True, True),
        (SimpleNamespace(seed_generator=SEED, dropout=0.0, recurrent_dropout=0.2), True, True),
        (SimpleNamespace(generator=SEED, factor=(0.1, 0.2)), True, False),  # a random rotation: no amount to zero
        (SimpleNamespace(rate=0.5), False, True),  # no generator: a rate of something else
    ],
)
def test_random_layers(layer: Any, random: bool, can: bool) -> None:
    model = Model([DENSE, layer])
    assert bool(parity.random_layers(model)) is random
    assert parity.can_be_silenced(model) is can


class Embedding: ...


class Mine(Embedding): ...


class BatchNormalization: ...


def test_layers_by_which_backends_differ_more_are_known_by_their_class_or_one_that_it_is_derived_from() -> None:
    assert parity.sensitive(Model([DENSE])) == []
    assert parity.sensitive(Model([Mine(), DENSE])) == ["Embedding"]
    assert parity.sensitive(Model([Embedding(), BatchNormalization(), Mine()])) == ["BatchNormalization", "Embedding"]
