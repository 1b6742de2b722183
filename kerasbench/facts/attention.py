"""Which kernel computes attention. Keras chooses by its arguments, then the framework by device, dtype and mask."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kerasbench import private
from kerasbench.facts.fact import NOT_KNOWN, NOTHING, Evidence, Fact, Notes
from kerasbench.runners.layers import Layers, class_names

LAYERS = {"MultiHeadAttention", "GroupedQueryAttention", "Attention"}
# Layers that multiply by themselves, as Keras does with dropout.
BY_KERAS = "products of Keras"
MATH = "math"  # the framework's own function, which multiplies, too
# What torch's operations begin with, behind "_scaled_dot_product_".
KERNELS = {"flash": "flash", "efficient": "efficient", "cudnn": "cuDNN", "attention_math": MATH}
PREFIX, FUNCTION = "aten::_scaled_dot_product_", "aten::scaled_dot_product_attention"
OF_JAX = {"cudnn": "cuDNN", "xla": MATH}


class Attention(Fact):
    name = "attention"
    title = "attention"
    says = "Attention was computed by"

    @contextmanager
    def watch(self, layers: Layers, backend: str) -> Iterator[Notes]:
        """Note which function is asked while a step is traced; torch, which traces none, tells by its operations."""
        from unittest.mock import patch

        code: dict[str, str] = {}
        if backend not in ("jax", "tensorflow") or not LAYERS & class_names(layers):
            yield code
            return
        try:
            place, name = _function(backend)
        except private.LostNameError:
            yield code
            return
        function = getattr(place, name)

        def noting(*args: Any, implementation: str | None = None, **named: Any) -> Any:
            more = {} if implementation is None else {"implementation": implementation}
            result = function(*args, **named, **more)
            code[OF_JAX.get(str(implementation), MATH)] = ""
            return result

        code[""] = ""  # it was watched
        with patch.object(place, name, noting):
            yield code

    def read(self, evidence: Evidence) -> str:
        has_layers = bool(LAYERS & class_names(evidence.runner.layers))
        if evidence.operations is not None:
            names = {operation.name for operation in evidence.operations}
            used = [kernel for begin, kernel in KERNELS.items() if any(n.startswith(PREFIX + begin) for n in names)]
            return " and ".join(used) or (NOT_KNOWN if FUNCTION in names else BY_KERAS if has_layers else NOTHING)
        if not has_layers:
            return NOTHING
        code = evidence.notes.get(self.name, {})
        return " and ".join(sorted(filter(None, code))) or (BY_KERAS if code else NOT_KNOWN)

    def explains(self, value: str) -> bool:
        return value != NOTHING


def _function(backend: str) -> tuple[Any, str]:
    if backend == "jax":
        import jax

        return jax.nn, "dot_product_attention"  # the one that may take cuDNN's, which Keras names
    return private.DOT_PRODUCT_ATTENTION.owner(), private.DOT_PRODUCT_ATTENTION.name
