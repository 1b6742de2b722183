"""The arrays that a trial feeds: as many rows as its phases need, drawn once, the same for every backend."""

import dataclasses
import itertools
import multiprocessing
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerasbench import backends
from kerasbench.datasets import Dataset
from kerasbench.protocol.columns import Size
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.requests import MIN_STEPS_FOR_SLICES
from kerasbench.runners.feeders import Feeder
from kerasbench.runners.inputs import LEAST_STEPS, POOL_BYTES, first, in_tuples, is_nested, leaves, mapped
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.storage import Store
from kerasbench.text import size as in_words

if TYPE_CHECKING:
    from kerasbench.runners.loop import Loop

POOL_MIN_STEPS = 64
EVALUATED_SAMPLES = 1000  # accuracy to within 3 points (95 %), in a fraction of a second
ALLOWED_DTYPES = ("float32", "int32", "uint8")
PIPELINE = (
    "It must make a keras.utils.PyDataset, which runs on every backend; kerasbench takes no DataLoader or tf.data"
)
EXAMPLE = (
    "give a subclass of keras.utils.PyDataset __len__ and __getitem__(index), which returns the batch of that number; "
    "kerasbench docs your-model has one"
)
WITHOUT_TEXT = (
    "Let build() begin behind the layer that reads text, and data() return token ids: "
    "rng.integers(0, 1_000, (samples, 128), dtype='int32')"
)
MAX_BYTES = 1 << 30  # of rows in a sweep; TensorFlow holds them twice


@dataclass(frozen=True)
class Rows:
    """Inputs and targets that belong together: structures of arrays, which all have as many rows."""

    x: Any
    y: Any = None  # None: the model is trained without targets, `fit(x)`
    weights: Any = None  # of the samples
    items: Any = None  # what each sample is read from disk by; None: it is in memory alone

    def __len__(self) -> int:
        return len(first(self.x))

    def __getitem__(self, chosen: slice) -> "Rows":
        return self._each(lambda array: array[chosen])

    @property
    def row_bytes(self) -> int:
        """What one row's inputs take, or its targets where these take more."""
        return max(sum(int(array[:1].nbytes) for _, array in leaves(part)) for part in (self.x, self.y))

    def repeated(self, samples: int) -> "Rows":
        """Return that many rows, over again from the first where there are too few."""
        if samples <= len(self):
            return self[:samples]
        return self._each(lambda array: np.resize(array, (samples, *array.shape[1:])))

    def _each(self, change: Callable[[Any], Any]) -> "Rows":
        return Rows(*(mapped(change, part) for part in (self.x, self.y, self.weights, self.items)))


Fed = Rows | Mapping[str, Any]  # or what ``Backend.ready`` returns


@dataclass(frozen=True)
class Feed:
    workload: Workload
    train: Rows
    validation: Rows  # as many as published, like the test rows
    test: Rows
    class_weight: Mapping[int, float] | None = None
    draws: bool = False  # the pipeline gives other batches of the same rows each time: no two backends get the same
    feeder: Feeder | None = None  # what makes the batches of a `fit` that shuffles; None: Keras, of the arrays
    workers: int = 0  # of it
    store: Store | None = None  # where the rows lie on disk, too: a feeder reads them there
    # Of a script's call of `fit`:
    shuffle: bool = True  # as it asks for it
    stream: Mapping[str, Any] | None = None  # the arguments of a `fit` that is given batches; ``train``: the first ones
    queue: int = 0  # batches that the stream puts by while no step takes one
    kind: str = "arrays"
    digest: str = ""  # of its first rows; empty: of a scenario, which draws the same for every backend
    loop: "Loop | None" = None  # of the script's own, in which each call is a step; None: there is a `fit`

    def __post_init__(self) -> None:
        if self.class_weight is not None and self.train.y is None:
            raise ScenarioError("class_weight is for classes, and data() returns no targets", "leave out class_weight")

    @property
    def is_of_script(self) -> bool:
        """Whether a script's ``fit`` has given it, with a model that is there once."""
        return bool(self.digest)

    @property
    def is_streamed(self) -> bool:
        """Whether a script's ``fit`` is given batches."""
        return self.stream is not None and self.loop is None

    @property
    def batch(self) -> int:
        return self.workload.batch_size

    @property
    def predict_batch(self) -> int:
        return self.workload.predict_batch_size

    @property
    def first_batch(self) -> Rows:
        return self.train[: self.batch]

    @property
    def evaluated(self) -> Rows:
        """Unseen rows to judge learning by; training rows where the publication had no others."""
        rows = self.test or self.train
        return rows[: min(evaluated_samples(self.workload), max(1, POOL_BYTES // max(1, rows.row_bytes)))]

    def one_batch(self, rows: Rows) -> tuple[Any, ...]:
        """Return (x,), (x, y), or (x, y, sample weights)."""
        if self.workload.feed is not None:
            return parts_of(self.workload.feed(rows.x, rows.y, len(rows))[0])
        parts = (rows.x, rows.y, rows.weights)
        return parts[: 1 if rows.y is None else 2 if rows.weights is None else 3]

    def step(self, rows: Rows) -> tuple[Any, ...]:
        x, *others = in_tuples(self.one_batch(rows))
        if self.class_weight is not None and len(others) == 1:
            others = [*others, weights_of(others[0], self.class_weight)]
        return (x, *others)

    def stepped(self, rows: Rows) -> Any:
        """Return what a training step is given: of inputs alone, in one array, that array, as `fit(x)` hands it on."""
        batch = self.step(rows)
        is_alone = len(batch) == 1 and self.workload.feed is None and not is_nested(batch[0])
        return batch[0] if is_alone else batch

    def inputs(self, rows: Rows) -> Any:
        return self.one_batch(rows)[0]


def parts_of(batch: Any) -> tuple[Any, ...]:
    """Return the parts of a pipeline's batch, which may be inputs alone."""
    return tuple(batch) if isinstance(batch, tuple | list) else (batch,)


def weights_of(targets: Any, class_weight: Mapping[int, float]) -> Any:
    """Return each sample's weight by its class, as `fit` makes it of ``class_weight``; 1 for a class without one."""
    if is_nested(targets):
        raise ScenarioError(
            "class_weight is for one array of classes, and there are several targets",
            "return sample_weight from data() in its place",
        )
    classes = targets.argmax(axis=-1) if targets.ndim > 1 and targets.shape[-1] > 1 else targets.reshape(len(targets))
    return np.array([class_weight.get(int(label), 1.0) for label in classes], np.float32)


def prepare(scenario: Scenario, workload: Workload, seed: int, kind: str = "synthetic", whole: bool = False) -> Feed:
    """Draw the rows: all that the publication had if ``whole``, else as many training rows as measuring needs."""
    dataset = scenario.dataset(workload)
    if whole:
        count = workload.train + workload.validation + workload.test
        rows, store = store_rows(dataset, draw(dataset, count, seed, kind))
        train, others = rows[: workload.train], rows[workload.train :]
        validation, test = others[: workload.validation], others[workload.validation :]
    else:
        count = pool_samples(workload, draw(dataset, 1, seed, "synthetic").row_bytes)
        test_samples = workload.test if workload.test_each_epoch else min(workload.test, evaluated_samples(workload))
        rows, store = store_rows(dataset, draw(dataset, count + min(test_samples, EVALUATED_SAMPLES), seed, kind))
        train, unseen = rows[:count], rows[count:]
        validation, test = train.repeated(workload.validation), unseen.repeated(test_samples)
    draws = check_pipeline(workload, rows)
    return Feed(workload, train, validation, test, scenario.class_weight, draws, store=store)


def evaluated_samples(workload: Workload) -> int:
    """Return by how many rows learning is judged: a pipeline of one's own may make nothing of less than a batch."""
    return EVALUATED_SAMPLES if workload.feed is None else max(EVALUATED_SAMPLES, workload.batch_size)


def pool_samples(workload: Workload, row_bytes: int) -> int:
    fit_in_pool = max(POOL_BYTES // row_bytes, POOL_MIN_STEPS * workload.batch_size)
    if workload.batch is None or workload.train <= fit_in_pool:
        return workload.train
    return fit_in_pool // workload.batch_size * workload.batch_size


def prepare_sized(scenario: Scenario, workload: Workload, size: Size, seed: int, kind: str) -> Feed:
    if size.width is not None and not scenario.scalable:
        raise ScenarioError(
            "its width is fixed", "use workload.scaled(units) in build, and say Scenario(scalable=True)"
        )
    dataset = scenario.dataset(workload)
    batch = size.batch or workload.batch_size
    samples = batch * steps_at(batch, draw(dataset, 1, seed, "synthetic").row_bytes)
    predicted = size.batch or workload.predict_batch_size
    at_size = dataclasses.replace(workload, batch=batch, predict_batch=predicted, train=samples)
    at_size = dataclasses.replace(at_size, width=size.width or workload.width)
    at_size = dataclasses.replace(at_size, validation=0, test=0, test_each_epoch=False)
    rows, store = store_rows(dataset, draw(dataset, min(samples, workload.train), seed, kind))
    rows = rows.repeated(samples)
    draws = check_pipeline(at_size, rows)
    return Feed(at_size, rows, rows[:0], rows[:0], scenario.class_weight, draws, store=store)


def steps_at(batch: int, row_bytes: int) -> int:
    batch_bytes = batch * row_bytes
    count = min(max(LEAST_STEPS, POOL_BYTES // batch_bytes), MAX_BYTES // batch_bytes)
    if count < MIN_STEPS_FOR_SLICES:
        needed, allowed = in_words(MIN_STEPS_FOR_SLICES * batch_bytes), in_words(MAX_BYTES)
        cause = f"the samples of {MIN_STEPS_FOR_SLICES} steps of batch {batch:,} take {needed}, more than {allowed}"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, "sweep smaller batches"))
    return count


def draw(dataset: Dataset, samples: int, seed: int, kind: str) -> Rows:
    """Draw rows with a fresh generator; raise ScenarioError unless they are that many, in arrays that can be fed."""
    drawn = dataset.rows(kind, samples, np.random.default_rng(seed))
    for name, structure in zip(("x", "y", "sample_weight"), drawn, strict=False):
        for place, array in leaves(structure, name):
            if _holds_text(array):
                raise ScenarioError(f"data() must return numbers; {place} holds text", WITHOUT_TEXT)
            if not isinstance(array, np.ndarray) or array.dtype.name not in ALLOWED_DTYPES:
                actual = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
                dtypes = ", ".join(ALLOWED_DTYPES)
                cause = f"data() must return NumPy arrays of {dtypes}; {place} is {actual}"
                raise ScenarioError(cause, f"convert {place}, such as with np.asarray(..., 'float32')")
            if len(array) != samples:
                cause = f"data() was asked for {samples:,} samples, {place} has {len(array):,}"
                raise ScenarioError(cause, "return as many as its argument says")
    rows = Rows(*drawn)
    if first(rows.x) is None or (rows.y is not None and first(rows.y) is None):
        raise ScenarioError("data() must return NumPy arrays; there is none in x or y", "return (x, y) or x of arrays")
    if rows.y is None and rows.weights is not None:
        raise ScenarioError(
            "data() returns sample_weight without y, which `fit` cannot use", "return x alone, or y too"
        )
    return rows


def store_rows(dataset: Dataset, rows: Rows) -> tuple[Rows, Store | None]:
    """Write rows to disk where their data set has a store; return them as they are read again, with their items."""
    if dataset.store is None:
        return rows, None
    store: Store = dataset.store(Path(tempfile.mkdtemp()), rows.x)
    x = np.stack([store.read(item) for item in store.items])
    return dataclasses.replace(rows, x=x, items=store.items), store


def _holds_text(array: Any) -> bool:
    if isinstance(array, str | bytes):
        return True
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "USOT":
        return False
    return array.dtype.kind != "O" or isinstance(next(iter(array.flat), None), str | bytes)


def check_pipeline(workload: Workload, rows: Rows) -> bool:
    """Return whether a pipeline's batches differ each time; raise ScenarioError if it is not as `fit` needs it."""
    if workload.feed is None:
        return False
    if rows.weights is not None:
        raise ScenarioError("feed() takes x and y alone", "let the batches that it makes be (x, y, sample_weight)")
    wanted = min(2, len(rows) // workload.batch_size)
    rows = rows[: wanted * workload.batch_size]
    try:
        batches = workload.feed(rows.x, rows.y, workload.batch_size)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {backends.get(name).PACKAGE for name in backends.names()}:
            raise
        cause = f"feed() imports {error.name}, which the processes of the other backends do not have"
        raise TrialFailure(Failure(Code.UNSUPPORTED, f"{cause}. {PIPELINE}", EXAMPLE)) from error
    start = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    if getattr(batches, "use_multiprocessing", False) and start != "fork":
        raise ScenarioError(
            "feed() has use_multiprocessing=True, but processes that start on this system cannot import its file",
            "leave it out, and let workers= start threads",
        )
    if not hasattr(batches, "__getitem__"):
        raise ScenarioError(f"feed() made a {type(batches).__name__}. {PIPELINE}", EXAMPLE)
    count = None
    with suppress(NotImplementedError):  # what Keras' own class says where nobody has said how many
        count = len(batches) if hasattr(batches, "__len__") else getattr(batches, "num_batches", None)
    if count != wanted:
        raise ScenarioError(f"feed() must make {wanted} batches of {len(rows):,} rows, not {count}", "use its batch")
    batch = batches[0]
    _check_batch(batch, workload.batch_size, targets=rows.y is not None)
    return not (_equal(batch, batches[0]) and _equal(batch, workload.feed(rows.x, rows.y, workload.batch_size)[0]))


def _equal(batch: Any, other: Any) -> bool:
    pairs = itertools.zip_longest(leaves(batch), leaves(other), fillvalue=("", None))
    return all(np.array_equal(array, twin) for (_, array), (_, twin) in pairs)


def _check_batch(batch: Any, samples: int, targets: bool) -> None:
    parts, least = parts_of(batch), 2 if targets else 1
    if not least <= len(parts) <= 3:
        wanted, kind = "(x, y) or (x, y, sample_weight)" if targets else "x or (x, y)", type(batch).__name__
        raise ScenarioError(f"the batches of feed() must be {wanted}, not {kind}", "have __getitem__ return that")
    for name, structure in zip(("x", "y", "sample_weight"), parts, strict=False):
        for place, array in leaves(structure, name):
            if (shape := np.shape(array))[:1] != (samples,):
                wanted = f"batches of {samples:,} rows, as its batch says"
                raise ScenarioError(f"feed() must make {wanted}, not {place} of shape {shape}", "use its batch")
            if getattr(array, "dtype", None) == np.float64:
                remedy = f"{place} is: .astype('float32')"
                raise ScenarioError("feed() must give float32 or integers, not float64", remedy)
