"""What a model and its layers say of themselves: their random numbers, their kinds, how recurrent ones compute."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from kerasbench import private

RECURRENT_KINDS = ("lstm", "gru")
BY_CUDNN, BY_BACKEND, BY_KERAS = "cudnn", "backend", "keras"
UNKNOWN = ""
# Attributes of Keras' random layers that say how much: Dropout and its kin, GaussianNoise, LSTM and its cells.
RANDOM_AMOUNTS = ("rate", "stddev", "dropout", "recurrent_dropout")
# Layers by which backends differ more than by others; analysis/cases.py says why, and how much.
SENSITIVE_LAYERS = ("BatchNormalization", "Embedding")

Layers = Sequence[Any]


@contextmanager
def recurrent_code(layers: Layers) -> Iterator[dict[str, str]]:
    """Note, by kind, which code computes recurrent layers meanwhile: Keras decides at each call (``use_cudnn="auto"``).

    It says nothing, so its functions are replaced by ones that take notes. Of a kind whose functions are elsewhere in
    this Keras there is no note, and ``private.lost`` says so.
    """
    from unittest.mock import patch  # slow to import, and the parent reads this file too

    names = {name.lower() for name in _class_names(layers)}
    code: dict[str, str] = {}

    def notes(function: Any, kind: str, by: str) -> Any:
        def noting(*args: Any, **named: Any) -> Any:
            result = function(*args, **named)  # it raises NotImplementedError where it cannot
            if code[kind] != BY_CUDNN:
                code[kind] = by
            return result

        return noting

    with ExitStack() as stack:
        for kind in [kind for kind in RECURRENT_KINDS if kind in names]:
            try:
                functions = private.RECURRENT[kind].owner()
            except private.LostNameError:
                continue
            code[kind], inside = BY_KERAS, sys.modules[getattr(functions, kind).__module__]
            # JAX's function is cuDNN's alone, and refuses what cuDNN cannot do, as those of both directions do.
            by = BY_CUDNN if inside.__name__.endswith("jax.rnn") else BY_BACKEND
            if by == BY_BACKEND and not hasattr(inside, f"_cudnn_{kind}"):
                by = UNKNOWN
            computing = (functions, kind, by), (inside, f"_cudnn_{kind}", BY_CUDNN)
            for place, name, computes in (*computing, (functions, f"bidirectional_{kind}", BY_CUDNN)):
                if hasattr(place, name):
                    stack.enter_context(patch.object(place, name, notes(getattr(place, name), kind, computes)))
        yield code
        for kind in [kind for kind, by in code.items() if by == UNKNOWN]:
            private.lose(f"_cudnn_{kind}", private.RECURRENT[kind].loss)
            del code[kind]


def _is_model(layer: Any) -> bool:
    return hasattr(layer, "fit")  # the names of its class and of its attributes are a user's, and may mean anything


def _class_names(layers: Layers) -> set[str]:
    return {base.__name__ for layer in layers if not _is_model(layer) for base in type(layer).__mro__}


def sensitive_layers(layers: Layers) -> list[str]:
    """Return which kinds of SENSITIVE_LAYERS there are, layers derived from them included."""
    names = _class_names(layers)
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
