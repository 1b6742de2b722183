"""What sentences and tables call a configuration."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kerasbench import backends, variants
from kerasbench.protocol.columns import AT, CPU, GPU, Column

Names = Mapping[Column, str]

DEVICES = {CPU: "CPU", GPU: "GPU"}


def spelled(backend: str) -> str:
    return backends.get(backend).SPELLED if backend in backends.names() else backend


def names(columns: Iterable[Column]) -> dict[Column, str]:
    """Return how sentences call each configuration: ``JAX``, ``PyTorch on the GPU`` if there are several devices."""
    unique, by_column = list(columns), {}
    for column in unique:
        name = spelled(column.backend)
        if column.options.environment:
            name += f" {AT}{column.options.environment}"
        if len({other.device for other in unique}) > 1:
            kind, _, index = column.device.partition(":")
            kind = DEVICES.get(kind, kind)
            name += f" on {kind} {index}" if index else f" on the {kind}"
        choices = [variant.describe(value, column.backend) for variant, value in variants.chosen(column.options)]
        choices += ["measured again"] if column.options.control else []
        by_column[column] = f"{name} ({', '.join(choices)})" if choices else name
    return by_column


def name_of(column: Column) -> str:
    """Return what a configuration is called by itself: a GPU is said, the CPU is not."""
    return names([column, replace(column, device=CPU)])[column]
