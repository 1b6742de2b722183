"""What feeds `fit` in place of arrays: the same rows in batches of as many, shuffled and prefetched as users do it.

The parent reads names and lines alone: packages are imported where a child makes a feed.
"""

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners.inputs import first, in_tuples, is_nested, mapped
from kerasbench.storage import Store

PREFETCHED = 2  # batches for each worker of a DataLoader, torch's own default
BUFFER = 16  # batches that grain's threads put by, and tf.data where it chooses by itself
QUEUE = 10  # batches of a PyDataset, Keras' own default

Parts = tuple[Any, ...]  # (x,), (x, y) or (x, y, sample weights): structures of arrays
# Of parts, samples of a batch, workers, and what reads the first part's samples from disk; None: they are these.
Make = Callable[[Parts, int, int, Store | None], Any]


def _tf_data(parts: Parts, batch: int, workers: int, store: Store | None = None) -> Any:
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices(in_tuples(parts)).shuffle(len(first(parts)))
    return _read_rows(rows, store).batch(batch).prefetch(tf.data.AUTOTUNE)


def _tf_data_cached(parts: Parts, batch: int, workers: int, store: Store | None = None) -> Any:
    import tensorflow as tf

    batches = _read_rows(tf.data.Dataset.from_tensor_slices(in_tuples(parts)), store).batch(batch).cache()
    return batches.shuffle(len(batches)).prefetch(tf.data.AUTOTUNE)


def _read_rows(rows: Any, store: Store | None) -> Any:
    import tensorflow as tf

    if store is None:
        return rows
    return rows.map(lambda item, *others: (store.read_tensor(item), *others), num_parallel_calls=tf.data.AUTOTUNE)


def _dataloader(parts: Parts, batch: int, workers: int, store: Store | None = None) -> Any:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    rows: Any = Samples(parts, store)
    if store is None and not any(map(is_nested, parts)):
        rows = TensorDataset(*map(torch.from_numpy, parts))
    return DataLoader(rows, batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0)


def _pydataset(parts: Parts, batch: int, workers: int, store: Store | None = None) -> Any:
    import keras
    import numpy as np

    class Batches(keras.utils.PyDataset):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(workers=workers, max_queue_size=QUEUE)
            self.order = np.random.default_rng(0).permutation(len(first(parts)))

        def __len__(self) -> int:
            return math.ceil(len(self.order) / batch)

        def __getitem__(self, index: int) -> Parts:
            chosen = self.order[index * batch : (index + 1) * batch]
            x, *others = (mapped(lambda array: array[chosen], part) for part in parts)
            return (x if store is None else np.stack([*map(store.read, x)]), *others)

        def on_epoch_end(self) -> None:
            self.order = np.random.permutation(self.order)

    return Batches()


def _grain(parts: Parts, batch: int, workers: int, store: Store | None = None) -> Any:
    import grain
    from absl import flags

    flags.FLAGS.mark_as_parsed()  # without it, workers end with an error
    read = grain.ReadOptions(prefetch_buffer_size=BUFFER)
    rows = grain.MapDataset.source(Samples(parts, store)).shuffle(seed=0).batch(batch).to_iter_dataset(read)
    return rows.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else rows


class Samples:
    """Rows one by one, as a DataLoader and grain ask for them."""

    def __init__(self, parts: Parts, store: Store | None = None) -> None:
        self._read = None if store is None else store.read
        self._parts = [_Nested(part) if is_nested(part) else part for part in parts]
        self._length = len(first(parts))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Parts:
        x, *others = [part[index] for part in self._parts]
        return (x if self._read is None else self._read(x), *others)


@dataclass(frozen=True)
class _Nested:
    structure: Any

    def __getitem__(self, index: int) -> Any:
        return mapped(lambda array: array[index], self.structure)


@dataclass(frozen=True)
class Feeder:
    kind: str  # of stream that it makes, in words of runners.streams
    package: str  # that it needs, as it is imported
    make: Make = field(repr=False)
    rows: Sequence[str]  # lines to paste before `fit(batches)`, where x, y and batch_size are
    read_rows: Sequence[str]  # in their place, where files, y and a function read() are
    batches: Sequence[str]  # lines after these
    workers: Sequence[str] = ()  # in place of ``batches``, where it is to have {workers}; empty: it has none
    queue: Callable[[int], int] = lambda workers: 0  # batches that so many workers put by while no step takes one

    def versions(self) -> dict[str, str]:
        module = importlib.import_module(self.package)
        return {self.package: str(getattr(module, "__version__", "")) or metadata.version(self.package)}

    def load(self) -> None:
        """Import its package; raise TrialFailure where the environment does not have it."""
        try:
            importlib.import_module(self.package)
        except ImportError as error:
            missing = (error.name or "").partition(".")[0] == self.package
            what = f"{self.package} is not in this environment" if missing else f"{self.package}: {error}"
            remedy = f"pip install {self.package} there, or leave this feed out"
            raise TrialFailure(Failure(Code.UNSUPPORTED, what, remedy)) from error


TF = "import tensorflow as tf"
SLICES = "tf.data.Dataset.from_tensor_slices"
MAPPED = "rows = rows.map(lambda file, y: (read(file), y), num_parallel_calls=tf.data.AUTOTUNE)"
LOADER = "batches = DataLoader(rows, batch_size, shuffle=True"
BATCHES = """\
import math
class Batches(keras.utils.PyDataset):
    def __len__(self):
        return math.ceil(len(y) / batch_size)
    def __getitem__(self, index):
        chosen = order[index * batch_size : (index + 1) * batch_size]
        return {x}, y[chosen]
    def on_epoch_end(self):
        np.random.shuffle(order)
order = np.random.permutation(len(y))"""
READING = """\
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return len(files)
    def __getitem__(self, index):
        return read(files[index]), y[index]
rows = Rows()"""
GRAIN = ("import grain", "options = grain.ReadOptions(prefetch_buffer_size=16)")
SHUFFLED = "rows = grain.MapDataset.range(len(y)).shuffle(seed=0).map(lambda i: ({x}, y[i]))"
ITERATED = "batches = rows.batch(batch_size).to_iter_dataset(options)"
FROM_FILES = "# files: an array of what read() makes samples of, one by one, as {}"

FEEDERS: Mapping[str, Feeder] = {
    "tf.data": Feeder(
        "tf.data",
        "tensorflow",
        _tf_data,
        (TF, f"rows = {SLICES}((x, y)).shuffle(len(x))"),
        (FROM_FILES.format("tensors"), TF, f"rows = {SLICES}((files, y)).shuffle(len(files))", MAPPED),
        ("batches = rows.batch(batch_size).prefetch(tf.data.AUTOTUNE)",),
        queue=lambda workers: BUFFER,
    ),
    # A batch keeps its samples in all epochs.
    "tf.data-cached": Feeder(
        "tf.data",
        "tensorflow",
        _tf_data_cached,
        (TF, f"rows = {SLICES}((x, y))"),
        (FROM_FILES.format("tensors"), TF, f"rows = {SLICES}((files, y))", MAPPED),
        (
            "batches = rows.batch(batch_size).cache()",
            "batches = batches.shuffle(len(batches)).prefetch(tf.data.AUTOTUNE)",
        ),
        queue=lambda workers: BUFFER,
    ),
    "dataloader": Feeder(
        "a DataLoader",
        "torch",
        _dataloader,
        (
            "import torch",
            "from torch.utils.data import DataLoader, TensorDataset",
            "rows = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))",
        ),
        (FROM_FILES.format("arrays"), READING),
        (f"{LOADER})",),
        (f"{LOADER}, num_workers={{workers}}, persistent_workers=True)",),
        queue=lambda workers: PREFETCHED * workers,
    ),
    "pydataset": Feeder(
        "a PyDataset",
        "keras",
        _pydataset,
        (BATCHES.format(x="x[chosen]"),),
        (FROM_FILES.format("arrays"), BATCHES.format(x="np.stack([read(file) for file in files[chosen]])")),
        ("batches = Batches()",),
        ("batches = Batches(workers={workers})",),
        queue=lambda workers: QUEUE + workers if workers > 1 else 0,
    ),
    "grain": Feeder(
        "grain",
        "grain",
        _grain,
        (*GRAIN, SHUFFLED.format(x="x[i]")),
        (FROM_FILES.format("arrays"), *GRAIN, SHUFFLED.format(x="read(files[i])")),
        (ITERATED,),
        (
            "from absl import flags; flags.FLAGS.mark_as_parsed()",
            f"{ITERATED}.mp_prefetch(grain.MultiprocessingOptions(num_workers={{workers}}))",
        ),
        queue=lambda workers: BUFFER * max(1, workers),
    ),
}


def to_paste(name: str, workers: int = 0, on_disk: bool = False) -> list[str]:
    """Return the lines that make a feed's ``batches``, from x, y and batch_size; ``on_disk``: from files and read()."""
    feeder = FEEDERS[name]
    rows, batches = feeder.read_rows if on_disk else feeder.rows, feeder.workers if workers else feeder.batches
    return [line.replace("{workers}", str(workers)) for line in (*rows, *batches)]
