"""What a script gives to ``fit``: arrays, or a stream of batches, of which the first ones are looked at."""

import dataclasses
import hashlib
import itertools
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kerasbench.protocol.columns import Size
from kerasbench.runners.batches import put_by
from kerasbench.runners.feed import Feed, Rows, parts_of, steps_at
from kerasbench.runners.inputs import COMPARED, UNKNOWN_STEPS, is_nested, leaves, mapped
from kerasbench.runners.loop import Loop
from kerasbench.scenario import ScenarioError, Workload

BATCHES = 8  # of a stream, which are looked at: as many as steps come before slices, and some to predict
DEFAULT_BATCH = 32  # Keras' own

KINDS = {"tensorflow": "tf.data", "torch": "a DataLoader", "grain": "grain"}  # by the module of a stream's class


@dataclass(frozen=True)
class Stream:
    """Batches that ``fit`` takes one after another."""

    source: Any
    kind: str  # what it is, in words
    steps: int | None  # of an epoch; None: it does not say
    queue: int  # batches that it puts by while none is taken


def is_stream(x: Any) -> bool:
    """Tell whether it gives batches by itself: not an array, nor a structure of arrays."""
    leaf = next((part for _, part in leaves(x)), None)
    is_array = (
        hasattr(leaf, "shape") or hasattr(leaf, "__array__") or isinstance(leaf, int | float | str | bytes | bool)
    )
    return not is_array and (isinstance(x, types.GeneratorType) or hasattr(x, "__iter__") or hasattr(x, "__getitem__"))


def stream_of(source: Any, steps_per_epoch: int | None) -> Stream:
    module = type(source).__module__.partition(".")[0]
    bases = {base.__name__ for base in type(source).__mro__}
    kind = KINDS.get(module, "a generator" if isinstance(source, types.GeneratorType) else "")
    if "PyDataset" in bases:
        kind = "a PyDataset"
    elif "DataLoader" in bases:
        kind = KINDS["torch"]
    return Stream(source, kind or f"a {type(source).__name__}", steps_per_epoch or _length(source), _queue(source))


def _length(source: Any) -> int | None:
    """Return how many batches an epoch has, where the stream says so."""
    try:  # a PyDataset may be endless, and TensorFlow raises TypeError for an endless data set and an unknown length
        length = source.num_batches if hasattr(source, "max_queue_size") else len(source)
    except (TypeError, NotImplementedError):
        return None
    return int(length) if length else None


def _queue(source: Any) -> int:
    if hasattr(source, "max_queue_size"):  # a PyDataset
        workers = source.workers
        return source.max_queue_size + workers if workers > 1 or (workers and source.use_multiprocessing) else 0
    if hasattr(source, "prefetch_factor"):  # a DataLoader
        return int(source.num_workers * (source.prefetch_factor or 0))
    return put_by(source)


def first_batches(stream: Stream) -> list[tuple[Any, ...]]:
    """Return a stream's first batches as NumPy arrays. Of a generator these are gone."""
    source = stream.source
    batches = itertools.islice(epoch_of(source), BATCHES)
    arrays = [tuple(mapped(as_array, part) for part in _parts(batch)) for batch in batches]
    if not arrays:
        raise ScenarioError(f"{stream.kind} gave fit() no batch")
    return arrays


def epoch_of(source: Any) -> Iterator[Any]:
    """Return an epoch's batches, or endless ones, as a stream gives them without Keras."""
    if hasattr(source, "max_queue_size"):  # a PyDataset, which counts its batches where it is not endless
        return (source[index] for index in itertools.islice(itertools.count(), _length(source)))
    return iter(source)


def _refuse_end(generator: Iterator[Any]) -> Iterator[Any]:
    """Yield its batches; raise ScenarioError at its end, which a ``fit`` would meet with the batches that it has."""
    number = 0
    for batch in generator:
        number += 1
        yield batch
    if number:
        cause = f"the generator that feeds fit() ended after {number} batches, before enough was measured"
        raise ScenarioError(cause, "let it begin again at its end (while True), or give fit() a PyDataset")


def _parts(batch: Any) -> tuple[Any, ...]:
    parts = parts_of(batch)
    return parts if len(parts) <= 3 else (batch,)


def as_array(value: Any) -> Any:
    """Return a tensor of any framework, a list or a table as a NumPy array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    array = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
    first_value = next(iter(array.flat), None) if array.dtype.kind == "O" else None
    if isinstance(first_value, str):
        array = np.char.encode(array.astype(str), "utf-8")
    return array.astype("S") if isinstance(first_value, bytes) else array


def digest(batches: list[tuple[Any, ...]]) -> str:
    """Return a hash of batches: two processes that have the same one train on the same."""
    content = hashlib.sha256()
    for batch in batches[:COMPARED]:
        for place, array in leaves(batch):
            content.update(f"{place} {array.dtype} {array.shape}\0".encode())
            content.update(
                str(array.tolist()).encode() if array.dtype.kind == "O" else np.ascontiguousarray(array).tobytes()
            )
    return content.hexdigest()[:16]


def _together(batches: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the leading batches that have the shapes of the first one."""

    def shapes(batch: tuple[Any, ...]) -> list[Any]:
        return [(place, array.shape, array.dtype) for place, array in leaves(batch)]

    return list(itertools.takewhile(lambda batch: shapes(batch) == shapes(batches[0]), batches))


def _joined(batches: list[tuple[Any, ...]]) -> Rows:
    def join(*arrays: Any) -> Any:
        return np.concatenate(arrays)

    return Rows(*(_mapped_together(join, [batch[part] for batch in batches]) for part in range(len(batches[0]))))


def _mapped_together(change: Any, structures: list[Any]) -> Any:
    first = structures[0]
    if isinstance(first, dict):
        return {key: _mapped_together(change, [part[key] for part in structures]) for key in sorted(first, key=str)}
    if isinstance(first, list | tuple):
        return type(first)(_mapped_together(change, list(parts)) for parts in zip(*structures, strict=True))
    return None if first is None else change(*structures)


def feed_of(arguments: Mapping[str, Any], name: str) -> Feed:
    """Return what feeds a script's model, by the arguments of its ``fit``; raise ScenarioError for none."""
    if is_stream(arguments["x"]):
        return _streamed(arguments, name)
    rows = Rows(*given_to(arguments))
    validation = _validation(arguments, rows)
    if isinstance(arguments["validation_split"], float) and 0 < arguments["validation_split"] < 1:
        kept = int(len(rows) * (1 - arguments["validation_split"]))  # Keras holds back the last ones
        rows, validation = rows[:kept], rows[kept:]
    batch = min(arguments["batch_size"] or DEFAULT_BATCH, len(rows))
    if steps := arguments["steps_per_epoch"]:
        rows = rows[: steps * batch]
    workload = Workload(
        name=name, train=len(rows), batch=batch, epochs=max(1, arguments["epochs"]), validation=len(validation)
    )
    few = rows[: COMPARED * batch]
    return Feed(
        workload,
        rows,
        validation,
        rows[:0],
        arguments["class_weight"],
        shuffle=bool(arguments["shuffle"]),
        digest=digest([(few.x, few.y, few.weights)]),
    )


def given_to(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return x, y and sample weights of a call, in arrays; None for what it has not."""
    return tuple(mapped(as_array, _whole(arguments.get(part))) for part in ("x", "y", "sample_weight"))


def _whole(part: Any) -> Any:
    """Return it as a structure of arrays: a plain list of numbers is one array, as it is to Keras."""
    if isinstance(part, list) and part and not (is_nested(part[0]) or hasattr(part[0], "shape")):
        return np.asarray(part)
    return part


def _validation(arguments: Mapping[str, Any], rows: Rows) -> Rows:
    data = arguments["validation_data"]
    if isinstance(data, tuple | list) and data and not is_stream(data[0]):
        return Rows(*(mapped(as_array, _whole(part)) for part in data[:3]))
    return rows[:0]


def _streamed(arguments: Mapping[str, Any], name: str) -> Feed:
    source = arguments["x"]
    if isinstance(source, types.GeneratorType):
        source = _refuse_end(source)
    stream = stream_of(source, arguments["steps_per_epoch"])
    batches = first_batches(stream)
    alike = _together(batches)
    rows = _joined(alike)
    batch = len(rows) // len(alike)
    steps = stream.steps or (len(batches) if len(batches) < BATCHES else UNKNOWN_STEPS)
    if isinstance(stream.source, types.GeneratorType):
        steps = arguments["steps_per_epoch"] or UNKNOWN_STEPS
    workload = Workload(name=name, train=steps * batch, batch=batch, epochs=max(1, arguments["epochs"]))
    others = {key: arguments[key] for key in ("steps_per_epoch", "class_weight") if arguments[key] is not None}
    return Feed(
        workload,
        rows,
        rows[:0],
        rows[:0],
        arguments["class_weight"],
        shuffle=bool(arguments["shuffle"]),
        digest=digest(batches),
        stream={"x": stream.source, **others},
        queue=stream.queue,
        kind=stream.kind,
    )


def looped(loop: Loop, arguments: Mapping[str, Any], name: str) -> Feed:
    """Return what a loop's first call gives to its model; raise ScenarioError for a stream."""
    if is_stream(arguments["x"]):
        cause = f"the script's loop gives {loop.method}() a {type(arguments['x']).__name__}, of any number of batches"
        raise ScenarioError(cause, "give it the arrays of a batch; or save the model, and measure that file")
    rows = Rows(*given_to(arguments))
    batch = len(rows)
    workload = Workload(name=name, train=UNKNOWN_STEPS * batch, batch=batch)
    kind = f"its own loop of {loop.method}()"
    none = rows[:0]
    return Feed(workload, rows, none, none, stream={}, queue=loop.queue, kind=kind, digest=loop.digest, loop=loop)


def resized(feed: Feed, size: Size) -> Feed:
    """Return a feed of arrays with another batch; raise ScenarioError for a stream, which makes its batches itself."""
    if size == Size():
        return feed
    if feed.stream is not None or size.batch is None:
        cause = f"the script feeds its model by {feed.kind}, which decides the batch size"
        raise ScenarioError(cause, "take a script that gives arrays to fit()")
    rows = feed.train.repeated(size.batch * steps_at(size.batch, feed.train.row_bytes))
    workload = dataclasses.replace(
        feed.workload, train=len(rows), batch=size.batch, predict_batch=size.batch, validation=0
    )
    return dataclasses.replace(feed, workload=workload, train=rows, validation=rows[:0])
