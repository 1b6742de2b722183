"""A scenario around a model that brings no data: rows drawn by its inputs, targets by its loss and its outputs."""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kerasbench.datasets import Dataset
from kerasbench.protocol.requests import STRUCTURE, ModelConfig
from kerasbench.runners.failure import one_line
from kerasbench.runners.inputs import (
    DEFAULT_BELOW,
    FLOATS,
    UNNAMED,
    InputSpec,
    fitted,
    is_nested,
    leaves,
    mapped,
    steps_of,
)
from kerasbench.scenario import Kind, ModelError, Scenario, Workload
from kerasbench.sources.source import ResolvedScenario

# Names of Keras' losses in lower case, without underscores, by the targets they take; others take any numbers.
CLASSES = {"sparsecategoricalcrossentropy", "categoricalgeneralizedcrossentropy", "circle"}
SHARES = {"categoricalcrossentropy", "categoricalfocalcrossentropy", "categoricalhinge", "kldivergence", "kld"}
BITS = {"binarycrossentropy", "bce", "binaryfocalcrossentropy", "dice", "tversky"}
SIGNS = {"hinge", "squaredhinge"}
UNMADE = {"ctc"}
UNUSED = object()  # stands for the loss of what no loss and no metric looks at: its targets are zeros
KNOWN = CLASSES | SHARES | BITS | SIGNS | UNMADE
DEFAULT_BATCH = 32
LOOKED_UP = 8  # rows: so many different ids are hardly ever one
SIZE_MISSING = ("the shape of its input is missing", "give it, as in --input 28x28 or --input a=8 --input b=4")
TEST_BATCHES = 16  # that a pass of predict takes: of a deep network, one can take a second


def draw_targets(loss: Any, shape: Sequence[int], samples: int, rng: Any) -> Any:
    """Return targets for one output of that shape, without the samples: float32, or int32 for classes."""
    import numpy as np

    if loss is UNUSED:
        return np.zeros((samples, 1), np.float32)
    names = [name.replace("_", "").lower() for name in names_of_loss(loss)]
    name = next((name for name in names if name in KNOWN), "")  # of an object its first class, or its function's
    whole = (samples, *shape)
    if name in UNMADE:
        raise ModelError(f"its loss is {name}, for which kerasbench has no targets", "use a scenario file")
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


def names_of_loss(loss: Any) -> list[str]:
    if loss is None or isinstance(loss, str):
        return [loss] if loss else []
    if hasattr(loss, "__name__"):
        return [str(loss.__name__)]
    return [*(kind.__name__ for kind in type(loss).__mro__), *names_of_loss(getattr(loss, "fn", None))]


def losses(loss: Any, outputs: Any, names: Sequence[str]) -> list[Any]:
    """In the order of ``leaves``; ``loss`` is as `compile` had it: one, in a structure, or by ``names``."""
    count = len(list(leaves(outputs)))
    if not is_nested(loss):
        return [loss] * count
    keys = sorted(outputs, key=str) if isinstance(outputs, dict) else names
    by_output = [loss.get(key) for key in keys] if isinstance(loss, dict) else list(loss)
    return [*by_output, *[None] * count][:count]


class ModelWithoutRows:
    """Loads a model, hands it out and draws rows for it. ``specs``: its inputs, as far as they are known before."""

    def __init__(
        self, load: Callable[[], Any], config: ModelConfig, trains: bool, specs: Sequence[InputSpec] = ()
    ) -> None:
        self._load = load
        self._config = config
        self._trains = trains
        self._specs = specs
        self._model: Any = None
        self._inputs: Any = None
        self._outputs: Any = InputSpec("y", ())
        self._losses: list[Any] = [UNUSED]

    def resolved(self, text: str, kind: Kind = "other", keeps_weights: bool = False) -> ResolvedScenario:
        is_random, batch = not self._config.rows, self._config.batch or DEFAULT_BATCH
        samples = self._config.samples or batch * steps_of(self._specs, batch)  # the user's, or a pool of whole batches
        test = TEST_BATCHES * batch if is_random else 0
        scenario = Scenario(
            build=self.build,
            data=Dataset("random rows" if is_random else "its own rows", (), self.draw, random=is_random),
            workloads=(Workload(name=self._config.workload, train=samples, test=test, batch=batch),),
            learnable=False,
            kind=kind,
            keeps_weights=keeps_weights,
            trains=self._trains,
        )
        return ResolvedScenario(scenario, text, self.load, self.look)

    def build(self, workload: Workload) -> Any:
        model, self._model = self._model, None
        return self._load() if model is None else model

    def draw(self, samples: int, rng: Any) -> tuple[Any, ...]:
        """The same for every backend."""
        if self._config.rows:
            return read_rows(Path(self._config.rows), samples)
        if self._inputs is None:
            self.look()
        x = mapped(lambda spec: spec.draw(samples, rng), self._inputs)
        losses = iter(self._losses)
        return x, mapped(lambda output: draw_targets(next(losses), output.shape, samples, rng), self._outputs)

    def load(self) -> None:
        self._model = self._load()

    def look(self) -> None:
        if self._model is None:
            self.load()
        if self._config.rows:
            return
        self._inputs = inputs_of(self._model, self._config, self._specs)
        _require_different_rows(self._model, self._inputs)
        outputs = outputs_of(self._model, self._inputs)
        if not self._trains:
            return
        loss, self._outputs = self._model.loss, outputs
        self._losses = losses(loss, outputs, getattr(self._model, "output_names", None) or [])
        # Of one loss for all, None says that the model brings its own, which may look at any target.
        if is_nested(loss) and getattr(self._model, "_compile_metrics", None) is None:
            self._losses = [UNUSED if of_output is None else of_output for of_output in self._losses]


def inputs_of(model: Any, config: ModelConfig, specs: Sequence[InputSpec] = ()) -> Any:
    """Return a model's inputs as it takes them, one or a structure, each with the size that the user gives for it."""
    import keras

    structure = getattr(model, "_inputs_struct", None)
    if structure is None:
        listed = getattr(model, "inputs", None)
        structure = listed[0] if listed is not None and len(listed) == 1 else listed
    embeddings = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Embedding)]
    smallest = min((layer.input_dim for layer in embeddings), default=0) or DEFAULT_BELOW
    # Zeros in the middle of a text would mask it there, which cuDNN refuses.
    padding = int(any(getattr(layer, "mask_zero", False) for layer in embeddings) and smallest > DEFAULT_BELOW)
    if structure is None:
        # The model does not say what it takes. If it looks something up, that takes whole numbers below what the
        # smallest embedding has; a dtype that the user gives stays.
        typed = {entry.name or UNNAMED for entry in config.inputs if entry.dtype}
        if embeddings:
            specs = [dataclasses.replace(spec, below=smallest, least=padding) for spec in specs]
            specs = [spec if spec.name in typed else dataclasses.replace(spec, dtype="int32") for spec in specs]
        return specs[0] if len(specs) == 1 and specs[0].name == UNNAMED else {spec.name: spec for spec in specs}
    takers = [
        (tensor.name, layer.input_dim)
        for layer in embeddings
        for node in layer._inbound_nodes
        for tensor in keras.tree.flatten(node.input_tensors)
    ]
    # Keras keeps the batch that a model was first called with, and takes any other; only a layer's state has a size.
    is_stateful = any(getattr(layer, "stateful", False) for layer in model._flatten_layers())
    given = []
    for tensor in keras.tree.flatten(structure):
        if tensor.shape[0] is not None and is_stateful:
            cause = f"its input {tensor.name} has {tensor.shape[0]} samples, no more and no less"
            raise ModelError(cause, "build it with stateful=False")
        sizes = [size for name, size in takers if name == tensor.name]
        # What an embedding takes is one of integers, whatever it says.
        dtype, least = ("int32", padding) if sizes else (str(tensor.dtype), 0)
        given.append(InputSpec(tensor.name, tuple(tensor.shape[1:]), dtype, min(sizes, default=smallest), least))
    return keras.tree.pack_sequence_as(structure, fitted(given, config.inputs))


def _require_different_rows(model: Any, inputs: Any) -> None:
    """Call a model once, and refuse what would look up one row alone: numbers in 0..1 are all row 0 to an embedding."""
    import keras
    import numpy as np

    floats = [spec for _, spec in leaves(inputs) if spec.dtype in FLOATS]
    if not floats or not any(isinstance(layer, keras.layers.Embedding) for layer in model._flatten_layers()):
        return
    alike: list[bool] = []
    call = keras.layers.Embedding.call

    def noting(layer: Any, ids: Any) -> Any:
        numbers = np.asarray(keras.ops.convert_to_numpy(ids)).astype("int64")
        alike.append(numbers.size > 1 and numbers.min() == numbers.max() and layer.input_dim > 1)
        return call(layer, ids)

    rng = np.random.default_rng(0)
    with patch.object(keras.layers.Embedding, "call", noting), suppress(Exception):
        model(mapped(lambda spec: spec.draw(LOOKED_UP, rng), inputs), training=False)
    if any(alike):
        typed = " ".join(f"--input {spec.name}={spec.sizes or 1}:int32" for spec in floats)
        cause = "its lookup always reads the same entry, because its inputs lie in 0..1"
        raise ModelError(cause, f"{typed} gives it integers; or use a scenario file, which has its own data")


def outputs_of(model: Any, inputs: Any) -> Any:
    import keras

    tensors = mapped(lambda spec: keras.KerasTensor((None, *spec.shape), spec.dtype), inputs)
    try:
        outputs = model.compute_output_spec(tensors)
    except Exception as error:
        cause = f"{type(error).__name__}: {one_line(error)}"
        raise ModelError(f"its outputs for these inputs are unknown: {cause}") from error
    return keras.tree.map_structure(lambda tensor: InputSpec("", tuple(tensor.shape[1:]), str(tensor.dtype)), outputs)


def _first_rows(content: Any, name: str, samples: int) -> Any:
    """Return the first rows of an array in an open .npz file; the rest, which may be gigabytes, is not read."""
    import numpy as np

    with content.zip.open(f"{name}.npy") as member:
        np.lib.format.read_magic(member)
        (rows, *shape), by_columns, dtype = np.lib.format.read_array_header_1_0(member)  # of plain numbers it is 1.0
        if by_columns or dtype.hasobject:  # its rows do not lie one after another
            return np.ascontiguousarray(content[name][:samples])
        count = min(samples, rows)
        data = bytearray(member.read(count * math.prod(shape) * dtype.itemsize))
    return np.frombuffer(data, dtype).reshape(count, *shape)


def read_rows(file: Path, samples: int) -> tuple[Any, ...]:
    """Return so many of the rows that kerasbench.run wrote, over again from the first where there are too few."""
    import numpy as np

    with np.load(file, allow_pickle=False) as content:

        def rows(name: str) -> Any:
            array = _first_rows(content, name, samples)
            return array if len(array) == samples else np.resize(array, (samples, *array.shape[1:]))

        return tuple(mapped(rows, json.loads(str(content[STRUCTURE]))))
