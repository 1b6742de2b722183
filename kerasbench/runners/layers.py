"""What Keras layers say of themselves: which draw random numbers, which kinds there are, how recurrent ones compute.

All of it for layers, as ``Runner.layers`` has them: the model itself may be among them.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

RECURRENT_KINDS = ("lstm", "gru")
BY_CUDNN, BY_BACKEND, BY_KERAS = "cudnn", "backend", "keras"
# Attributes of Keras' random layers that say how much: Dropout and its kin, GaussianNoise, LSTM and its cells.
RANDOM_AMOUNTS = ("rate", "stddev", "dropout", "recurrent_dropout")
# Layers by which backends differ more than by others; analysis/cases.py says why, and how much.
SENSITIVE_LAYERS = ("BatchNormalization", "Embedding")

Function = Callable[..., Any]
Layers = Sequence[Any]


class RecurrentSpy:
    """Note how recurrent layers are computed in the step that runs while the spy is there.

    By cuDNN, by other code of the backend, or by Keras' own loop over time: Keras decides at each call
    (``use_cudnn="auto"``) and says nothing. So its functions are replaced by ones that take notes. They are not public:
    where they are not found, nothing is noted.
    """

    def __init__(self, layers: Layers) -> None:
        bases = {base.lower() for base in _class_names(layers)}
        self._kinds = [kind for kind in RECURRENT_KINDS if kind in bases]
        self._computed_by: dict[str, str] = {}
        self._originals: list[tuple[Any, str, Function]] = []

    @property
    def notes(self) -> list[str]:
        return [f"{kind}: {code}" for kind, code in self._computed_by.items()]

    def __enter__(self) -> "RecurrentSpy":
        functions = sys.modules.get("keras.src.backend")
        for kind in self._kinds:
            whole: Function | None = getattr(functions, kind, None)
            if whole is not None:
                self._computed_by[kind] = BY_KERAS
                # JAX's function is cuDNN's alone, and refuses what cuDNN cannot do.
                self._replace(functions, kind, kind, BY_CUDNN if whole.__module__.endswith("jax.rnn") else BY_BACKEND)
                self._replace(sys.modules.get(whole.__module__), f"_cudnn_{kind}", kind, BY_CUDNN)
        return self

    def __exit__(self, *raised: object) -> None:
        for module, name, function in reversed(self._originals):
            setattr(module, name, function)

    def _replace(self, module: Any, name: str, kind: str, code: str) -> None:
        function: Function | None = getattr(module, name, None)
        if function is None:
            return

        def noting(*args: Any, **named: Any) -> Any:
            result = function(*args, **named)  # it raises NotImplementedError where it cannot
            if self._computed_by[kind] != BY_CUDNN:
                self._computed_by[kind] = code
            return result

        self._originals.append((module, name, function))
        setattr(module, name, noting)


def _is_model(layer: Any) -> bool:
    """Tell whether the names of its class and of its attributes are a user's, and may mean anything."""
    return hasattr(layer, "fit")


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
    """Return the layer's amounts of randomness that are numbers, by name."""
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
