"""Do all backends compute the same? The losses of the first steps, with everything random switched off."""

import itertools
import math
from typing import Any

from kerasbench.exchange.measurement import Parity
from kerasbench.exchange.messages import Code, Failure
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.nested import leaves
from kerasbench.worker.trial.feed import Feed

OUTPUT_NUMBERS = 64  # of each output: enough to see another computation, few enough to be kept

# What Keras' layers that draw random numbers call the amount: Dropout and its kin, GaussianNoise, LSTM and its cells.
AMOUNTS = ("rate", "stddev", "dropout", "recurrent_dropout")

# What Keras' layers are called by which backends differ more than others; analysis/parity.py says why, and how much.
SENSITIVE = ("BatchNormalization", "Embedding")


def sensitive(model: Any) -> list[str]:
    """Return which of these kinds a model has, layers derived from them included."""
    bases = {base.__name__ for layer in model._flatten_layers(include_self=False) for base in type(layer).__mro__}
    return [kind for kind in SENSITIVE if kind in bases]


def random_layers(model: Any) -> list[Any]:
    """Return the layers that draw random numbers in training, cells of recurrent layers included."""
    return [
        layer
        for layer in model._flatten_layers(include_self=False)
        if _has_generator(layer) and (_amounts(layer) or not _has_amount(layer))
    ]


def can_be_silenced(model: Any) -> bool:
    """Tell whether each of these layers has an amount that can be set to zero."""
    return all(_has_amount(layer) for layer in random_layers(model))


def check_silenced(model: Any, feed: Feed) -> Parity:
    """Train the first steps on a fresh model without its random numbers.

    Every backend draws its own: with dropout on, the very first losses differ.
    """
    from kerasbench.worker.trial.train import PARITY_STEPS, single_steps

    silenced = random_layers(model)
    for layer in silenced:
        for amount in _amounts(layer):
            setattr(layer, amount, 0.0)
    losses = single_steps(model, feed, 1 + PARITY_STEPS).losses
    return Parity(losses, [layer.name for layer in silenced], sensitive=sensitive(model))


def outputs(model: Any, feed: Feed) -> list[list[float]]:
    """Return some numbers of each output of the first batch, evenly spread, by a model that was not trained here.

    Raises:
        TrialFailure: one of them is not finite.
    """
    rows = feed.train[: feed.batch]
    found = model.predict(feed.inputs(rows), batch_size=feed.predict_batch, verbose=0)
    return [_some(name, array) for name, array in leaves(found, "output")]


def _some(name: str, array: Any) -> list[float]:
    flat = array.reshape(-1)
    # By a stride that has no factor in common with any dimension: it comes past every column.
    stride = next(one for one in itertools.count(len(flat) // OUTPUT_NUMBERS + 1) if math.gcd(one, len(flat)) == 1)
    numbers = [float(flat[index * stride % len(flat)]) for index in range(min(OUTPUT_NUMBERS, len(flat)))]
    if not all(map(math.isfinite, numbers)):
        cause = f"{name} has numbers that are not finite"
        raise TrialFailure(Failure(Code.NONFINITE, cause, "rows of your own, by kerasbench.run(model, data=...)"))
    return numbers


def _has_generator(layer: Any) -> bool:
    # Dropout and its kin call it seed_generator, the layers that distort pictures generator.
    return any(type(value).__name__ == "SeedGenerator" for value in vars(layer).values())


def _has_amount(layer: Any) -> bool:
    return any(isinstance(getattr(layer, amount, None), int | float) for amount in AMOUNTS)


def _amounts(layer: Any) -> list[str]:
    """Return the names of those amounts that are not zero."""
    found = {amount: getattr(layer, amount, None) for amount in AMOUNTS}
    return [amount for amount, value in found.items() if isinstance(value, int | float) and value > 0]
