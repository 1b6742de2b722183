"""How recurrent layers are computed: by cuDNN, by other code of the backend, or by Keras' own loop over time.

Keras decides it by itself (``use_cudnn="auto"``), at each call, and says nothing. So its functions are watched while
the first step is traced or run. They are no public ones: where they are not found, nothing is said.
"""

import sys
from collections.abc import Callable
from typing import Any

KINDS = ("lstm", "gru")
BY_CUDNN, BY_BACKEND, BY_KERAS = "cudnn", "backend", "keras"
Function = Callable[..., Any]


class RecurrentSpy:
    """Note how the recurrent layers of a model are computed in the step that is made while the spy is there."""

    def __init__(self, model: Any) -> None:
        bases = {base.__name__.lower() for layer in _layers(model) for base in type(layer).__mro__}
        self._kinds = [kind for kind in KINDS if kind in bases]
        self._ways: dict[str, str] = {}
        self._replaced: list[tuple[Any, str, Function]] = []

    @property
    def found(self) -> list[str]:
        """Return ``lstm: cudnn`` and the like, for each kind of layer that the model has."""
        return [f"{kind}: {way}" for kind, way in self._ways.items()]

    def __enter__(self) -> "RecurrentSpy":
        functions = sys.modules.get("keras.src.backend")
        for kind in self._kinds:
            whole: Function | None = getattr(functions, kind, None)
            if whole is not None:
                self._ways[kind] = BY_KERAS
                # JAX's function is cuDNN's alone, and refuses what cuDNN cannot do.
                self._watch(functions, kind, kind, BY_CUDNN if whole.__module__.endswith("jax.rnn") else BY_BACKEND)
                self._watch(sys.modules.get(whole.__module__), f"_cudnn_{kind}", kind, BY_CUDNN)
        return self

    def __exit__(self, *raised: object) -> None:
        for place, name, function in reversed(self._replaced):
            setattr(place, name, function)

    def _watch(self, place: Any, name: str, kind: str, way: str) -> None:
        function: Function | None = getattr(place, name, None)
        if function is None:
            return

        def watched(*args: Any, **named: Any) -> Any:
            computed = function(*args, **named)  # it raises NotImplementedError where it cannot
            if self._ways[kind] != BY_CUDNN:
                self._ways[kind] = way
            return computed

        self._replaced.append((place, name, function))
        setattr(place, name, watched)


def _layers(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False))
