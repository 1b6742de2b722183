"""Arrays as Keras takes them, and the inputs of a model that brings no rows."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError

FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = (*FLOATS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DEFAULT_BELOW = 2  # what integers are drawn below where no layer says how many there are
# Of an epoch: enough for slices of eight steps, which do not have its first one; few enough for the memory.
LEAST_STEPS, MOST_STEPS = 16, 1024
POOL_BYTES = 64 << 20  # 170 steps of 32 CIFAR images; an epoch of them would be 614 MB and a second of drawing
COMPARED = 6  # batches of a script whose hash says whether two processes train on the same
UNKNOWN_STEPS = 100_000  # of a stream that does not say how many it has: more than a measurement takes
UNNAMED = "x"  # the only input of a model that has no name for it


def leaves(structure: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Name the place of each array, such as ``x['tokens']``; dictionaries are in the order of their keys."""
    if isinstance(structure, dict):
        for key in sorted(structure, key=str):
            yield from leaves(structure[key], f"{name}[{key!r}]")
    elif isinstance(structure, list | tuple):
        for number, part in enumerate(structure):
            yield from leaves(part, f"{name}[{number}]")
    elif structure is not None:
        yield name, structure


def mapped(change: Callable[[Any], Any], structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: mapped(change, structure[key]) for key in sorted(structure, key=str)}
    if isinstance(structure, list | tuple):
        return type(structure)(mapped(change, part) for part in structure)
    return None if structure is None else change(structure)


def first(structure: Any) -> Any:
    return next((array for _, array in leaves(structure)), None)


def dtype_name(array: Any) -> str:
    """Return ``float32``, the same for every backend's arrays."""
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def describe(structure: Any) -> str:
    """Return ``float32[32, 28, 28]`` for an array, ``['a'] int32[32, 128], ['b'] float32[32, ?]`` for several."""
    texts = []
    for name, array in leaves(structure):
        sizes = ", ".join("?" if size is None else str(size) for size in array.shape)
        texts.append(f"{name} {dtype_name(array)}[{sizes}]".strip())
    return ", ".join(texts)


def is_nested(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)


def in_tuples(structure: Any) -> Any:
    """Return the same structure with tuples for lists: a TensorFlow data set would make one tensor of a list."""
    if isinstance(structure, dict):
        return {key: in_tuples(part) for key, part in structure.items()}
    return tuple(in_tuples(part) for part in structure) if isinstance(structure, list | tuple) else structure


@dataclass(frozen=True)
class InputSpec:
    name: str
    shape: tuple[int | None, ...]  # without the samples; None where it is open
    dtype: str = "float32"
    below: int = DEFAULT_BELOW  # what its integers are below
    least: int = 0  # of them

    @property
    def sizes(self) -> str:
        return "x".join("?" if size is None else str(size) for size in self.shape)

    def draw(self, samples: int, rng: Any) -> Any:
        """Return rows: float32 in 0..1, int32 from ``least`` up to ``below``, uint8 for bytes and truth values."""
        import numpy as np

        shape = (samples, *self.shape)
        if self.dtype in FLOATS:
            return rng.random(shape, dtype=np.float32)
        if self.dtype in ("bool", "uint8"):
            bytes_below = 256 if self.below == DEFAULT_BELOW else min(self.below, 256)
            return rng.integers(0, 2 if self.dtype == "bool" else bytes_below, shape, dtype=np.uint8)
        return rng.integers(self.least, self.below, shape, dtype=np.int32)


def fitted(specs: Sequence[InputSpec], inputs: Sequence[Input]) -> list[InputSpec]:
    by_name = {entry.name: entry for entry in inputs}
    if "" in by_name and len(specs) == 1:
        by_name = {specs[0].name: by_name[""]}
    if unknown := by_name.keys() - {spec.name for spec in specs}:
        names = ", ".join(spec.name for spec in specs)
        raise ModelError(f"--input {'must name its input' if '' in unknown else unknown.pop()}: it has {names}")
    for spec in specs:
        if spec.dtype not in NUMBERS:
            cause = f"its input {spec.name} takes {spec.dtype}; kerasbench can generate numbers alone"
            raise ModelError(cause, "save the model behind that layer")
    sized = [_sized(spec, by_name[spec.name]) if spec.name in by_name else spec for spec in specs]
    if still_open := [spec for spec in sized if None in spec.shape]:
        named = ", ".join(f"{spec.name} ({spec.sizes})" for spec in still_open)
        example = " ".join(f"--input {spec.name}={'x'.join(['128'] * spec.shape.count(None))}" for spec in still_open)
        subject = "input is" if len(still_open) == 1 else "inputs are"
        raise ModelError(f"its {subject} open: {named}", f"say the open sizes, as in {example}")
    return sized


def _sized(spec: InputSpec, entry: Input) -> InputSpec:
    shape = entry.shape
    if len(shape) == spec.shape.count(None) < len(spec.shape):  # the open sizes alone
        left = iter(shape)
        shape = [next(left) if size is None else size for size in spec.shape]
    elif len(shape) == len(spec.shape) + 1 and shape[0] == 1:
        shape = shape[1:]
    pairs = zip(spec.shape, shape, strict=False)
    if len(shape) != len(spec.shape) or any(known not in (None, size) for known, size in pairs):
        sizes = "x".join(map(str, entry.shape))
        raise ModelError(f"--input {spec.name}={sizes}: the model's is {spec.sizes}", "say the open sizes, or all")
    return dataclasses.replace(spec, shape=tuple(shape), dtype=entry.dtype or spec.dtype)


def specs_of(config: ModelConfig) -> list[InputSpec]:
    specs = []
    for entry in config.inputs:
        shape = entry.shape[1:] if len(entry.shape) > 1 and entry.shape[0] == 1 else entry.shape
        specs.append(InputSpec(entry.name or UNNAMED, tuple(shape), entry.dtype or "float32"))
    return specs


def steps_of(specs: Sequence[InputSpec], batch: int) -> int:
    row_bytes = 0
    for spec in specs:  # as it is drawn; open dimensions count as one
        row_bytes += math.prod(size or 1 for size in spec.shape) * (1 if spec.dtype in ("uint8", "bool") else 4)
    return min(MOST_STEPS, max(LEAST_STEPS, POOL_BYTES // max(1, batch * row_bytes)))
