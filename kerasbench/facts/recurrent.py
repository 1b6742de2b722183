"""Which code computes recurrent layers: Keras decides at each call (``use_cudnn="auto"``), and says nothing."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kerasbench import private
from kerasbench.facts.fact import NOT_KNOWN, NOTHING, Evidence, Fact, Notes
from kerasbench.runners.layers import Layers, class_names

KINDS = ("lstm", "gru")
CUDNN, FUSED, LOOP, UNKNOWN = "cuDNN", "fused", "loop", ""  # fused: by the backend's own function of a whole layer


class Recurrent(Fact):
    name = "recurrent"
    title = "recurrent layers"
    says = "Recurrent layers were computed by"

    @contextmanager
    def watch(self, layers: Layers, backend: str) -> Iterator[Notes]:
        """Replace the functions that may compute a layer by ones that take notes.

        Functions that this Keras has somewhere else leave no note, and count as lost names.
        """
        from unittest.mock import patch  # slow to import, and the parent reads this file too

        code: dict[str, str] = {}

        def notes(function: Any, kind: str, by: str) -> Any:
            def noting(*args: Any, **named: Any) -> Any:
                result = function(*args, **named)  # it raises NotImplementedError where it cannot
                if code[kind] != CUDNN:
                    code[kind] = by
                return result

            return noting

        with ExitStack() as stack:
            for kind in _kinds(layers):
                try:
                    functions = private.RECURRENT[kind].owner()
                except private.LostNameError:
                    continue
                code[kind], inside = LOOP, sys.modules[getattr(functions, kind).__module__]
                # JAX's function is cuDNN's alone, and refuses what cuDNN cannot do, as those of both directions do.
                by = CUDNN if inside.__name__.endswith("jax.rnn") else FUSED
                is_of_keras = inside.__name__.startswith("keras.")  # a backend from outside has no cuDNN of its own
                if by == FUSED and is_of_keras and not hasattr(inside, f"_cudnn_{kind}"):
                    by = UNKNOWN
                computing = (functions, kind, by), (inside, f"_cudnn_{kind}", CUDNN)
                of_both = (functions, f"bidirectional_{kind}", CUDNN if is_of_keras else FUSED)
                for place, name, computes in (*computing, of_both):
                    if hasattr(place, name):
                        stack.enter_context(patch.object(place, name, notes(getattr(place, name), kind, computes)))
            yield code
            for kind in [kind for kind, by in code.items() if by == UNKNOWN]:
                private.lose(f"_cudnn_{kind}", private.RECURRENT[kind].loss)
                del code[kind]

    def read(self, evidence: Evidence) -> str:
        code, kinds = evidence.notes.get(self.name, {}), _kinds(evidence.runner.layers)
        return "; ".join(f"{kind.upper()}: {code.get(kind, NOT_KNOWN)}" for kind in kinds) or NOTHING

    def explains(self, value: str) -> bool:
        return value != NOTHING


def _kinds(layers: Layers) -> list[str]:
    names = {name.lower() for name in class_names(layers)}
    return [kind for kind in KINDS if kind in names]


def slow(value: str) -> list[str]:
    """Return the kinds of layers that cuDNN does not compute, with what does."""
    kinds = value.split("; ") if value != NOTHING else []
    return [kind for kind in kinds if not kind.lower().endswith((CUDNN.lower(), NOT_KNOWN))]
