"""What sentences and tables call a configuration."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kerasbench import variants
from kerasbench.protocol.columns import AT, CPU, GPU, Column

Names = Mapping[Column, str]

SPELLED = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}
DEVICES = {CPU: "CPU", GPU: "GPU"}


def names(columns: Iterable[Column]) -> dict[Column, str]:
    """Return how sentences call each configuration: ``JAX``, ``PyTorch on the GPU`` if there are several devices."""
    unique, called = list(columns), {}
    for column in unique:
        name = SPELLED.get(column.backend, column.backend)
        if column.options.environment:
            name += f" {AT}{column.options.environment}"
        if len({other.device for other in unique}) > 1:
            kind, _, index = column.device.partition(":")
            kind = DEVICES.get(kind, kind)
            name += f" on {kind} {index}" if index else f" on the {kind}"
        said = [variant.said(value, column.backend) for variant, value in variants.chosen(column.options)]
        said += ["measured again"] if column.options.control else []
        called[column] = f"{name} ({', '.join(said)})" if said else name
    return called


def name_of(column: Column) -> str:
    """Return what a configuration is called by itself: a GPU is said, the CPU is not."""
    return names([column, replace(column, device=CPU)])[column]
