"""Targets for a model that brings none: such as its loss takes, in the shape of its outputs.

A scenario around a model that brings no data: rows by its inputs, targets by its loss and its outputs.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kerasbench.datasets import Dataset
from kerasbench.protocol.requests import STRUCTURE, ModelConfig
from kerasbench.scenario import ModelError, Scenario, Workload
from kerasbench.worker.inputs import DEFAULT_BATCH, FLOATS, UNNAMED, Spec, fitted, is_nested, leaves, mapped, steps_of

# Names of Keras' losses in lower case, without underscores; what stands in none of them takes any numbers.
CLASSES = {"sparsecategoricalcrossentropy", "categoricalgeneralizedcrossentropy", "circle"}
SHARES = {"categoricalcrossentropy", "categoricalfocalcrossentropy", "categoricalhinge", "kldivergence", "kld"}
BITS = {"binarycrossentropy", "bce", "binaryfocalcrossentropy", "dice", "tversky"}
SIGNS = {"hinge", "squaredhinge"}
UNMADE = {"ctc"}
KNOWN = CLASSES | SHARES | BITS | SIGNS | UNMADE


def draw_targets(loss: Any, shape: Sequence[int], samples: int, rng: Any) -> Any:
    """Return targets for one output of that shape, without the samples: float32, or int32 for classes.

    Raises:
        ModelError: kerasbench cannot make what the loss takes.
    """
    import numpy as np

    name, whole = loss_name(loss), (samples, *shape)
    if name in UNMADE:
        raise ModelError(f"its loss is {name}, for which kerasbench has no targets: use a scenario file")
    if name in CLASSES:
        return rng.integers(0, max(1, shape[-1] if shape else 1), whole[:-1] if shape else whole, dtype=np.int32)
    if name in SHARES:
        shares: Any = np.zeros(whole, np.float32)
        np.put_along_axis(shares, rng.integers(0, shape[-1], (*whole[:-1], 1)), 1.0, -1)
        return shares
    if name in BITS:
        return rng.integers(0, 2, whole).astype(np.float32)
    if name in SIGNS:
        return (2 * rng.integers(0, 2, whole) - 1).astype(np.float32)
    return rng.random(whole, dtype=np.float32)


def loss_name(loss: Any) -> str:
    """Return a loss's name in lower case without underscores, of a name, a function or an object; empty for none.

    Of an object it is the first name that is known: its class's, one that this is derived from, or its function's.
    """
    names = [name.replace("_", "").lower() for name in _names(loss)]
    return next((name for name in names if name in KNOWN), next(iter(names), ""))


def _names(loss: Any) -> list[str]:
    if loss is None or isinstance(loss, str):
        return [loss] if loss else []
    if hasattr(loss, "__name__"):
        return [str(loss.__name__)]
    return [*(kind.__name__ for kind in type(loss).__mro__), *_names(getattr(loss, "fn", None))]


def losses(loss: Any, outputs: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield the loss of each output, in the order of ``nested.leaves``.

    ``loss`` is what `compile` had: one for all, or a structure like that of the outputs, or one by their ``names``.
    """
    count = len(list(leaves(outputs)))
    if not is_nested(loss):
        yield from [loss] * count
        return
    keys = sorted(outputs, key=str) if isinstance(outputs, dict) else names
    found = [loss.get(key) for key in keys] if isinstance(loss, dict) else list(loss)
    yield from [*found, *[None] * count][:count]


LOOKED_UP = 8  # rows: so many different ids are hardly ever one
TEST_BATCHES = 16  # that a pass of predict takes: of a deep network, one can take a second


@dataclass(frozen=True)
class Sourced:
    """A scenario, its name, and what is said of it, its title on the first line.

    ``look`` loads a model and looks at what it takes; None for a scenario file, which says so itself.
    """

    scenario: Scenario
    name: str
    text: str
    look: Callable[[], None] | None = None


def workload_of(specs: list[Spec], given: ModelConfig) -> Workload:
    """Return the size in which it is measured: whole batches, as many as a pool of rows holds, or the user's rows.

    Of the user's rows none is left for a test: all of them are trained on.
    """
    batch = given.batch or DEFAULT_BATCH
    samples = given.samples or batch * steps_of(specs, batch)
    return Workload(name=given.workload, train=samples, test=0 if given.rows else TEST_BATCHES * batch, batch=batch)


class Source:
    """Loads a model, hands it out to be measured, and draws rows for it.

    ``told`` are the inputs of a model that does not say itself what it takes.
    The model that was loaded in order to look at its inputs is the one that ``build`` returns first.
    """

    def __init__(self, load: Callable[[], Any], given: ModelConfig, trains: bool, told: Sequence[Spec] = ()) -> None:
        self._load = load
        self._given = given
        self._trains = trains
        self._told = told
        self._held: Any = None
        self._inputs: Any = None
        self._outputs: Any = None
        self._losses: list[Any] = []

    def build(self, workload: Workload) -> Any:
        """Return the model; the first time the one that was looked at."""
        model, self._held = self._held, None
        return self._load() if model is None else model

    def draw(self, samples: int, rng: Any) -> tuple[Any, Any]:
        """Return so many rows, the same for every backend; for a model that is not trained y is one of its outputs."""
        if self._given.rows:
            return _first(_read(Path(self._given.rows)), samples)
        if self._inputs is None:
            self.look()
        x = mapped(lambda spec: spec.draw(samples, rng), self._inputs)
        drawn = iter(
            [
                draw_targets(loss, output.shape, samples, rng)
                for loss, (_, output) in zip(self._losses, leaves(self._outputs), strict=True)
            ]
        )
        return x, mapped(lambda output: next(drawn), self._outputs)

    @property
    def data(self) -> Dataset:
        """Its rows under a name for the tables."""
        if self._given.rows:
            return Dataset("its own rows", (), self.draw)
        return Dataset("random rows", (), self.draw, random=True)

    def look(self) -> None:
        """Load a model and look at it: what it takes, and what it returns for that."""
        self._held = self._load()
        if self._given.rows:
            return
        self._inputs = inputs_of(self._held, self._given, self._told)
        _require_different_rows(self._held, self._inputs)
        self._outputs = outputs_of(self._held, self._inputs)
        loss = self._held.loss if self._trains else None
        names = getattr(self._held, "output_names", None) or []
        self._losses = list(losses(loss, self._outputs, names))


def inputs_of(model: Any, given: ModelConfig, told: Sequence[Spec] = ()) -> Any:
    """Return a model's inputs as it takes them, one or a structure, each with the size that is given for it."""
    import keras

    own = getattr(model, "_inputs_struct", None)
    if own is None:
        own = getattr(model, "inputs", None)
        own = own[0] if own is not None and len(own) == 1 else own
    if own is None:
        specs = [_looked_up(spec, given, _embeddings(model, keras)) for spec in told]
        return specs[0] if len(specs) == 1 and specs[0].name == UNNAMED else {spec.name: spec for spec in specs}
    flat = [_spec(tensor) for tensor in keras.tree.flatten(own)]
    limits = _limits(model, keras)
    sized = [_within(spec, limits) for spec in flat]
    return keras.tree.pack_sequence_as(own, fitted(sized, given.inputs))


def _spec(tensor: Any) -> Spec:
    if tensor.shape[0] is not None:
        raise ModelError(
            f"its input {tensor.name} has {tensor.shape[0]} samples, no more and no less: save it with an open batch"
        )
    return Spec(tensor.name, tuple(tensor.shape[1:]), str(tensor.dtype))


def _looked_up(spec: Spec, given: ModelConfig, embeddings: list[Any]) -> Spec:
    """Return an input of a model that does not say what it takes: whole numbers, where it looks something up.

    They are below what the smallest embedding has. A dtype that the user gives stays.
    """
    if not embeddings:
        return spec
    said = any(one.dtype and (one.name or UNNAMED) == spec.name for one in given.inputs)
    below = min(layer.input_dim for layer in embeddings)
    return dataclasses.replace(spec, dtype=spec.dtype if said else "int32", below=below)


def _within(spec: Spec, limits: dict[str, int]) -> Spec:
    """Return an input whose integers have their limit; what an embedding takes is one of integers, whatever it says."""
    dtype = "int32" if spec.name in limits else spec.dtype
    return dataclasses.replace(spec, dtype=dtype, below=limits.get(spec.name, limits[""]))


def _limits(model: Any, keras: Any) -> dict[str, int]:
    """Return what the integers of each input are below, by the embedding that it goes into; by no name, of others."""
    found: dict[str, int] = {}
    embeddings = _embeddings(model, keras)
    for layer in embeddings:
        for node in layer._inbound_nodes:
            for tensor in keras.tree.flatten(node.input_tensors):
                found[tensor.name] = min(layer.input_dim, found.get(tensor.name, layer.input_dim))
    smallest = min((layer.input_dim for layer in embeddings), default=0)
    return found | {"": smallest or 2}


def _require_different_rows(model: Any, inputs: Any) -> None:
    """Call a model once, and refuse what would look up one row alone: numbers in 0..1 are all row 0 to an embedding.

    Raises:
        ModelError: that is so. What a call itself raises is left to the trial.
    """
    import keras
    import numpy as np

    floats = [spec for _, spec in leaves(inputs) if spec.dtype in FLOATS]
    if not floats or not _embeddings(model, keras):
        return
    alike: list[bool] = []
    call = keras.layers.Embedding.call

    def noting(layer: Any, ids: Any) -> Any:
        asked = np.asarray(keras.ops.convert_to_numpy(ids)).astype("int64")
        alike.append(asked.size > 1 and asked.min() == asked.max() and layer.input_dim > 1)
        return call(layer, ids)

    rng = np.random.default_rng(0)
    with patch.object(keras.layers.Embedding, "call", noting), suppress(Exception):
        model(mapped(lambda spec: spec.draw(LOOKED_UP, rng), inputs), training=False)
    if any(alike):
        typed = " ".join(f"--input {spec.name}={'x'.join(map(str, spec.shape)) or 1}:int32" for spec in floats)
        raise ModelError(
            "it looks up one row alone, because its numbers lie in 0..1",
            f"{typed} draws whole numbers for what is looked up; or a scenario file, which brings rows of its own",
        )


def _embeddings(model: Any, keras: Any) -> list[Any]:
    return [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Embedding)]


def outputs_of(model: Any, inputs: Any) -> Any:
    """Return the specs of what a model returns for such inputs, as one or a structure."""
    import keras

    tensors = mapped(lambda spec: keras.KerasTensor((None, *spec.shape), spec.dtype), inputs)
    try:
        found = model.compute_output_spec(tensors)
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise ModelError(f"its outputs cannot be told for these inputs: {type(error).__name__}: {said}") from error
    return keras.tree.map_structure(lambda tensor: Spec("", tuple(tensor.shape[1:]), str(tensor.dtype)), found)


def _read(file: Path) -> tuple[Any, ...]:
    """Return the rows that kerasbench.run wrote: arrays alone, nothing that could be code."""
    import numpy as np

    with np.load(file, allow_pickle=False) as content:
        return tuple(_rebuilt(one, content) for one in json.loads(str(content[STRUCTURE])))


def _rebuilt(structure: Any, content: Any) -> Any:
    if isinstance(structure, dict):
        return {key: _rebuilt(one, content) for key, one in structure.items()}
    return [_rebuilt(one, content) for one in structure] if isinstance(structure, list) else content[structure]


def _first(rows: tuple[Any, ...], samples: int) -> tuple[Any, ...]:
    """Return so many rows, over again from the first where there are too few."""
    import numpy as np

    return tuple(
        mapped(lambda array: np.resize(array, (samples, *array.shape[1:])), one) if one is not None else None
        for one in rows
    )
