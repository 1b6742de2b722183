"""What a model and its layers say of themselves: their random numbers, their kinds."""

from collections.abc import Sequence
from typing import Any

# Attributes of Keras' random layers that say how much: Dropout and its kin, GaussianNoise, LSTM and its cells.
RANDOM_AMOUNTS = ("rate", "stddev", "dropout", "recurrent_dropout")
# Layers by which backends differ more than by others; analysis/cases.py says why, and how much.
SENSITIVE_LAYERS = ("BatchNormalization", "Embedding")

Layers = Sequence[Any]


def _is_model(layer: Any) -> bool:
    return hasattr(layer, "fit")  # the names of its class and of its attributes are a user's, and may mean anything


def class_names(layers: Layers) -> set[str]:
    return {base.__name__ for layer in layers if not _is_model(layer) for base in type(layer).__mro__}


def sensitive_layers(layers: Layers) -> list[str]:
    """Return which kinds of SENSITIVE_LAYERS there are, layers derived from them included."""
    names = class_names(layers)
    return [kind for kind in SENSITIVE_LAYERS if kind in names]


def random_layers(layers: Layers) -> list[Any]:
    """Return those that draw random numbers in training, cells of recurrent layers and the model included."""
    drawing = []
    for layer in layers:
        amounts = _amounts(layer).values()
        is_silent = bool(amounts) and not any(value > 0 for value in amounts)
        if getattr(layer, "_seed_generators", ()) and not is_silent:  # whatever they are called, also in a list
            drawing.append(layer)
    return drawing


def _amounts(layer: Any) -> dict[str, float]:
    if _is_model(layer):
        return {}
    amounts = {name: getattr(layer, name, None) for name in RANDOM_AMOUNTS}
    return {name: value for name, value in amounts.items() if isinstance(value, int | float)}


def can_be_silenced(layers: Layers) -> bool:
    return all(_amounts(layer) for layer in random_layers(layers))


def silence(layers: Layers) -> list[str]:
    """Return the names of those. Every backend draws its own numbers: with dropout, the first losses differ."""
    silenced = random_layers(layers)
    for layer in silenced:
        for name, value in _amounts(layer).items():
            if value > 0:
                setattr(layer, name, 0.0)
    return [layer.name for layer in silenced]
