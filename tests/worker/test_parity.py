"""Which layers draw random numbers, by what Keras calls their amount; stand-ins, because no framework is here."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.protocol.messages import Code
from kerasbench.scenario import Workload
from kerasbench.worker import checks
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.feed import Feed, Rows


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
    assert bool(checks.random_layers(model)) is random
    assert checks.can_be_silenced(model) is can


def test_outputs_are_some_numbers_of_each() -> None:
    def predict(x: Any, batch_size: int, verbose: int) -> Any:
        return {"b": np.arange(640.0).reshape(64, 10), "a": np.array([[3.0]])}

    workload = Workload(train=64, batch=64)
    rows = Rows(np.zeros((64, 2), np.float32), np.zeros(64, np.int32))
    found = checks.sample_outputs(SimpleNamespace(predict=predict), Feed(workload, rows, rows[:0], rows[:0]))
    assert found[0] == [3.0]
    assert (len(found[1]), found[1][:3]) == (64, [0.0, 11.0, 22.0])
    assert len(set(found[1])) == 64
    assert {number % 10 for number in found[1]} == set(range(10))  # every column


def test_an_output_that_is_no_number_is_a_failure_of_its_own() -> None:
    rows = Rows(np.zeros((1, 2), np.float32), np.zeros(1, np.int32))
    model = SimpleNamespace(predict=lambda x, batch_size, verbose: [np.array([1.0]), np.array([np.nan])])
    with pytest.raises(TrialFailure, match=r"output\[1\] has numbers that are not finite") as raised:
        checks.sample_outputs(model, Feed(Workload(train=1), rows, rows, rows))
    assert raised.value.failure.code is Code.NONFINITE


class Embedding: ...


class Mine(Embedding): ...


class BatchNormalization: ...


def test_layers_by_which_backends_differ_more_are_known_by_their_class_or_one_that_it_is_derived_from() -> None:
    assert checks.sensitive_layers(Model([DENSE])) == []
    assert checks.sensitive_layers(Model([Mine(), DENSE])) == ["Embedding"]
    assert checks.sensitive_layers(Model([Embedding(), BatchNormalization(), Mine()])) == [
        "BatchNormalization",
        "Embedding",
    ]
