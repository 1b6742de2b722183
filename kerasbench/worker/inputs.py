"""The rows of a model that brings none: by the shapes and dtypes of its inputs, and what a user says of open ones.

And arrays as Keras takes them: one, or several in lists, tuples and dictionaries, however nested. Keras has such
functions of its own (``keras.tree``), which cost the import of keras.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError

FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = (*FLOATS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
BELOW = 2  # what integers are drawn below where no layer says how many there are
# Of an epoch: enough for a slice of steps, few enough for the memory; a pool of rows holds those in between.
LEAST_STEPS, MOST_STEPS = 16, 1024
POOL_BYTES = 64 << 20
DEFAULT_BATCH = 32
UNNAMED = "x"  # the only input of a model that has no name for it


@dataclass(frozen=True)
class Spec:
    """One input of a model: its shape without the samples, None where it is open, and what its integers are below."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str = "float32"
    below: int = BELOW

    @property
    def row_bytes(self) -> int:
        """What a row takes in the dtype that it is drawn in; open dimensions count as one."""
        return math.prod(size or 1 for size in self.shape) * (1 if self.dtype in ("uint8", "bool") else 4)

    def draw(self, samples: int, rng: Any) -> Any:
        """Return rows: float32 in 0..1, int32 from 0 up to ``below``, uint8 for bytes and truth values."""
        import numpy as np

        shape = (samples, *self.shape)
        if self.dtype in FLOATS:
            return rng.random(shape, dtype=np.float32)
        if self.dtype == "bool":
            return rng.integers(0, 2, shape, dtype=np.uint8)
        if self.dtype == "uint8":
            return rng.integers(0, 256 if self.below == BELOW else min(self.below, 256), shape, dtype=np.uint8)
        return rng.integers(0, self.below, shape, dtype=np.int32)


def fitted(specs: Sequence[Spec], given: Sequence[Input]) -> list[Spec]:
    """Return the inputs with what is given for them, by their names.

    Raises:
        ModelError: one is still open, is named wrongly, or has another size than the one given.
    """
    said = {one.name: one for one in given}
    if "" in said and len(specs) == 1:
        said = {specs[0].name: said[""]}
    strangers = said.keys() - {spec.name for spec in specs}
    if strangers:
        names = ", ".join(spec.name for spec in specs)
        raise ModelError(f"--input {'must name its input' if '' in strangers else strangers.pop()}: it has {names}")
    found = [_fit(spec, said.get(spec.name)) for spec in specs]
    if still_open := [spec for spec in found if None in spec.shape]:
        named = ", ".join(f"{spec.name} ({_words(spec)})" for spec in still_open)
        example = " ".join(f"--input {spec.name}={'x'.join(['128'] * spec.shape.count(None))}" for spec in still_open)
        what = "input is" if len(still_open) == 1 else "inputs are"
        raise ModelError(f"its {what} open: {named}: say the open sizes, as in {example}")
    return found


def _words(spec: Spec) -> str:
    return "x".join("?" if size is None else str(size) for size in spec.shape)


def _fit(spec: Spec, given: Input | None) -> Spec:
    if spec.dtype not in NUMBERS:
        raise ModelError(
            f"its input {spec.name} takes {spec.dtype}, and kerasbench makes numbers: save the model behind that layer"
        )
    if given is not None:
        spec = dataclasses.replace(spec, shape=_sized(spec, given), dtype=given.dtype or spec.dtype)
    return spec


def _sized(spec: Spec, given: Input) -> tuple[int | None, ...]:
    """Return the shape that is given for an input: all of its sizes, or the open ones alone.

    One number more than it has is that of the samples.
    """
    shape = tuple(given.shape)
    if len(shape) == spec.shape.count(None) < len(spec.shape):
        left = iter(shape)
        return tuple(next(left) if size is None else size for size in spec.shape)
    if len(shape) == len(spec.shape) + 1 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) != len(spec.shape) or any(
        own not in (None, size) for own, size in zip(spec.shape, shape, strict=True)
    ):
        asked = "x".join(map(str, given.shape))
        raise ModelError(f"--input {spec.name}={asked}: the model's is {_words(spec)}: say the open sizes, or all")
    return shape


def of_given(given: ModelConfig) -> list[Spec]:
    """Return the inputs as a user gives them, of a model that does not say what it takes."""
    return [Spec(one.name or UNNAMED, _without_samples(one.shape), one.dtype or "float32") for one in given.inputs]


def _without_samples(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[1:] if len(shape) > 1 and shape[0] == 1 else shape)


def steps_of(specs: Sequence[Spec], batch: int) -> int:
    """Return how many steps an epoch has: as many as a pool of rows holds, within bounds."""
    batch_bytes = batch * sum(spec.row_bytes for spec in specs)
    return min(MOST_STEPS, max(LEAST_STEPS, POOL_BYTES // max(1, batch_bytes)))


def leaves(given: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each array with the name of its place, such as ``x['tokens']``; dictionaries in the order of their keys."""
    if isinstance(given, dict):
        for key in sorted(given, key=str):
            yield from leaves(given[key], f"{name}[{key!r}]")
    elif isinstance(given, list | tuple):
        for number, one in enumerate(given):
            yield from leaves(one, f"{name}[{number}]")
    elif given is not None:
        yield name, given


def mapped(change: Callable[[Any], Any], given: Any) -> Any:
    """Return the same structure with each array changed; None, which stands for no array, stays."""
    if isinstance(given, dict):
        return {key: mapped(change, given[key]) for key in sorted(given, key=str)}
    if isinstance(given, list | tuple):
        return type(given)(mapped(change, one) for one in given)
    return None if given is None else change(given)


def first(given: Any) -> Any:
    """Return the first array, None where there is none."""
    return next((array for _, array in leaves(given)), None)


def is_nested(given: Any) -> bool:
    """Tell whether it is a structure of arrays, not one array."""
    return isinstance(given, dict | list | tuple)


def in_tuples(given: Any) -> Any:
    """Return the same structure with tuples for lists: a TensorFlow data set would make one tensor of a list."""
    if isinstance(given, dict):
        return {key: in_tuples(one) for key, one in given.items()}
    return tuple(in_tuples(one) for one in given) if isinstance(given, list | tuple) else given
