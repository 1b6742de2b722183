"""Columns in a sentence: ``JAX``, ``torch on the GPU``, ``TensorFlow with jit=on``."""

from collections.abc import Iterable, Sequence

from kerasbench.exchange.devices import CPU, GPU
from kerasbench.exchange.options import AT, environment_of, without_environment
from kerasbench.results.keys import Column

SPELLED = {"jax": "JAX", "tensorflow": "TensorFlow"}  # torch writes itself in small letters


def names(columns: Iterable[Column]) -> dict[Column, str]:
    """Return what each column is called beside the others: its device is named where there are several.

    The label of an interpreter follows the backend: ``torch @keras-3.14 with jit=on``.
    """
    known = list(columns)
    several = len({device for _, device, _ in known}) > 1
    return {column: _name(column, several) for column in known}


def _name(column: Column, several: bool) -> str:
    backend, device, options = column
    label, terms = environment_of(options), without_environment(options)
    named = SPELLED.get(backend, backend) + (f" {AT}{label}" if label else "")
    place = f" on {_place(device)}" if several else ""
    return f"{named}{place}{f' with {terms}' if terms else ''}"


def _place(device: str) -> str:
    kind, _, index = device.partition(":")
    known = kind.upper() if kind in (CPU, GPU) else kind
    return f"{known} {index}" if index else f"the {known}"


def listed(parts: Sequence[str]) -> str:
    """Return ``JAX``, ``JAX and torch``, ``JAX, TensorFlow and torch``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
