"""Data in the exact shape, type and range of the published data sets: generated, or real samples by keras.datasets.

NumPy and keras are imported inside the functions, so that a scenario file can be described without them.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Draw = Callable[[int, Any], Any]  # (samples, NumPy generator) -> x, (x, y), or (x, y, sample weights)
Load = Callable[[], tuple[Any, Any]]  # -> all samples that there are
Prepare = Callable[[Any], Any]  # x -> x

IRIS_FILE = Path(__file__).parent / "data" / "iris.csv"
PIXEL_NOISE = 176  # of 256: the pattern below it is learned in hundreds of steps, not in ten
FOLLOWS = 0.75  # of a sequence's tokens follow from the one before: more than chance, less than all
PATCH = 4  # pixels: patterns are coarse, as photographs are, so that convolution and pooling can see them
# The real columns' smallest and largest values (Harrison & Rubinfeld, J. Environ. Economics and Management 5, 1978).
BOSTON_LOW = (0.006, 0.0, 0.46, 0.0, 0.385, 3.56, 2.9, 1.13, 1.0, 187.0, 12.6, 0.32, 1.73)
BOSTON_HIGH = (89.0, 100.0, 27.7, 1.0, 0.871, 8.78, 100.0, 12.1, 24.0, 711.0, 22.0, 397.0, 38.0)
BOSTON_ROOMS, BOSTON_POOR = 5, 12  # the columns that the price follows most


class DataError(Exception):
    """Samples that cannot be had. The message says which, and what to do."""


@dataclass(frozen=True)
class Dataset:
    title: str
    shape: tuple[int, ...]  # of a raw sample
    draw: Draw
    load: Load | None = None  # None: all samples are generated
    prepare: Prepare = lambda x: x  # applied to x, generated or real
    encode: Prepare = lambda y: y  # the same for y
    # Writes x to a folder, and returns what reads a sample of it, a ``storage.Store``. None: samples stay in memory.
    store: Callable[[Path, Any], Any] | None = None
    random: bool = False  # for a model that brings no samples: it learns no further than parity needs

    def rows(self, kind: str, samples: int, rng: Any) -> tuple[Any, ...]:
        """Return that many samples, ``synthetic`` or ``real``: real ones from the first, training before test."""
        if kind != "real" or self.load is None:
            drawn = self.draw(samples, rng)
            rows = drawn if isinstance(drawn, tuple) else (drawn,)  # x alone, as `fit` takes it
            if not 1 <= len(rows) <= 3 or rows[0] is None:
                takes = "x, (x, y) or (x, y, sample_weight)"
                raise DataError(f"data(samples, rng) must return {takes}, made of NumPy arrays")
            return self.prepare(rows[0]), *map(self.encode, rows[1:2]), *rows[2:]
        x, y = self.load()
        if x.shape[1:] != self.shape or len(x) != len(y):
            raise DataError(
                f"{self.title}: samples of shape {self.shape} and as many targets are needed, the file has {len(x):,} "
                f"of shape {x.shape[1:]} and {len(y):,}: delete the damaged file, and it is downloaded again"
            )
        if len(x) < samples:
            has = f"{self.title} has {len(x):,} samples"
            raise DataError(f"{has}, {samples:,} are needed: use fewer, or synthetic data")
        return self.prepare(x[:samples]), self.encode(y[:samples])


def unit(x: Any) -> Any:
    """Return 8-bit pixels as float32 in 0..1."""
    return x.astype("float32") / 255


def mnist(prepare: Prepare = lambda x: x) -> Dataset:
    """Return MNIST: x uint8 of (28, 28) before ``prepare``, y int32 in 0..9; 70,000 real samples."""
    return Dataset("MNIST", (28, 28), _images((28, 28), 10), _keras_rows("mnist", "mnist.npz"), prepare)


def cifar10(prepare: Prepare = lambda x: x, one_hot: bool = False) -> Dataset:
    """Return CIFAR-10: x uint8 of (32, 32, 3) before ``prepare``, y int32 in 0..9 or one-hot; 60,000 real samples."""
    return _cifar(10, "cifar-10-batches-py-target_archive", prepare, one_hot)


def cifar100(prepare: Prepare = lambda x: x, one_hot: bool = False) -> Dataset:
    """Return CIFAR-100: x uint8 of (32, 32, 3) before ``prepare``, y int32 in 0..99 or one-hot; 60,000 real samples."""
    return _cifar(100, "cifar-100-python-target_archive", prepare, one_hot)


def _cifar(classes: int, file: str, prepare: Prepare, one_hot: bool) -> Dataset:
    encode, load = (lambda y: _one_hot(y, classes) if one_hot else y), _keras_rows(f"cifar{classes}", file)
    return Dataset(f"CIFAR-{classes}", (32, 32, 3), _images((32, 32, 3), classes), load, prepare, encode)


def boston() -> Dataset:
    """Return Boston housing, raw: x float32 of (13,), y float32 of (1,), the price in 1,000 $; 506 real samples."""

    def draw(samples: int, rng: Any) -> tuple[Any, Any]:
        x = rng.uniform(BOSTON_LOW, BOSTON_HIGH, (samples, len(BOSTON_LOW)))
        price = 4 + 5 * (x[:, BOSTON_ROOMS] - 3.5) - 0.3 * (x[:, BOSTON_POOR] - 20) + rng.normal(0, 2, samples)
        return x.astype("float32"), price.clip(5, 50).astype("float32")

    load = _keras_rows("boston_housing", "boston_housing.npz", "float32")
    return Dataset("Boston housing", (13,), draw, load, encode=lambda y: y.reshape(-1, 1))


def iris() -> Dataset:
    """Return Fisher's 150 Iris flowers (1936), real in every case: x float32 of (4,), in cm; y int32.

    Sepal length and width, petal length and width; 0 setosa, 1 versicolor, 2 virginica.
    """

    def draw(samples: int, rng: Any) -> tuple[Any, Any]:
        import numpy as np

        rows = np.loadtxt(IRIS_FILE, dtype=np.float32, delimiter=",", skiprows=1)
        if samples > len(rows):
            raise DataError(f"Iris has {len(rows)} samples, {samples:,} are needed: use a smaller workload")
        chosen = rng.permutation(len(rows))[:samples]
        return rows[chosen, :4], rows[chosen, 4].astype(np.int32)

    return Dataset("Iris", (4,), draw)


def random_samples(shape: tuple[int, ...], classes: int) -> Dataset:
    """Return uniform random samples in 0..1 with random one-hot labels: nothing can be learned from them."""

    def draw(samples: int, rng: Any) -> tuple[Any, Any]:
        return rng.random((samples, *shape), dtype="float32"), rng.integers(0, classes, samples, dtype="int32")

    return Dataset("random", shape, draw, encode=lambda y: _one_hot(y, classes))


def images(shape: tuple[int, ...], classes: int, prepare: Prepare = unit) -> Dataset:
    """Return learnable images (height, width[, channels]): x uint8 before ``prepare``, y int32 in 0..classes-1."""
    return Dataset("synthetic pictures", shape, _images(shape, classes), prepare=prepare)


def sequences(length: int, vocabulary: int, classes: int) -> Dataset:
    """Return learnable token ids: x int32 of (length,), in 0..vocabulary-1, y int32 in 0..classes-1."""

    def draw(samples: int, rng: Any) -> tuple[Any, Any]:
        y = rng.integers(0, classes, samples, dtype="int32")
        x = rng.integers(0, vocabulary, (samples, length), dtype="int32")
        of_class = rng.integers(0, vocabulary // classes, (samples, -(-length // 2)), dtype="int32")
        x[:, ::2] = of_class * classes + y[:, None]
        return x, y

    return Dataset("synthetic texts", (length,), draw)


def next_tokens(length: int, vocabulary: int) -> Dataset:
    """Return learnable token ids, and for each the next one: x and y int32 of (length,), in 0..vocabulary-1."""

    def draw(samples: int, rng: Any) -> tuple[Any, Any]:
        import numpy as np

        following = np.random.default_rng(0).permutation(vocabulary).astype(np.int32)
        tokens = rng.integers(0, vocabulary, (samples, length + 1), dtype=np.int32)
        follows = rng.random((samples, length)) < FOLLOWS
        for place in range(length):
            tokens[:, place + 1] = np.where(follows[:, place], following[tokens[:, place]], tokens[:, place + 1])
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()

    return Dataset("synthetic texts", (length,), draw)


def _images(shape: tuple[int, ...], classes: int) -> Draw:
    def draw(samples: int, rng: Any) -> tuple[Any, Any]:
        import numpy as np

        y = rng.integers(0, classes, samples, dtype=np.int32)
        x = rng.integers(0, PIXEL_NOISE, (samples, *shape), dtype=np.uint8)
        height, width, *channels = shape
        patches = (classes, -(-height // PATCH), -(-width // PATCH), *channels)
        coarse = np.random.default_rng(0).integers(0, 256 - PIXEL_NOISE, patches, dtype=np.uint8)
        patterns: Any = coarse.repeat(PATCH, axis=1).repeat(PATCH, axis=2)[:, :height, :width]
        x += patterns[y]
        return x, y

    return draw


def _one_hot(y: Any, classes: int) -> Any:
    import numpy as np

    return np.eye(classes, dtype=np.float32)[y]


def _keras_rows(name: str, file: str, y_type: str = "int32") -> Load:
    def load() -> tuple[Any, Any]:
        import keras
        import numpy as np

        try:
            (x, y), (x_test, y_test) = getattr(keras.datasets, name).load_data()
        except Exception as error:
            folder = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser().joinpath("datasets").resolve()
            cause = " ".join(str(error).split()).rstrip(".")
            raise DataError(
                f"the real {name} samples cannot be had: {cause}. Put the file {file} into {folder}, or run with "
                "--data synthetic, which needs no file"
            ) from error
        x, y = np.concatenate([x, x_test]), np.concatenate([y, y_test])
        return x if x.dtype == np.uint8 else x.astype(np.float32), y.reshape(len(y)).astype(y_type)

    return load
