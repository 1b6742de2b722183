"""Data in the exact shape and type of the published data sets, drawn where it is needed.

Each recipe is called with a number of samples and a NumPy generator and returns ``(x, y)``. NumPy is imported
inside the functions, so that a scenario file can be described without it.
"""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

IRIS_FILE = Path(__file__).parent / "data" / "iris.csv"
IRIS_SAMPLES = 150
PIXEL_NOISE = 176  # of 256: the pattern below it is learned in hundreds of steps, not in ten
PATCH = 4  # pixels: patterns are coarse, as pictures are, so that convolution and pooling can see them


def images(shape: tuple[int, ...], classes: int, seed: int = 0) -> Callable[[int, Any], tuple[Any, Any]]:
    """Return a recipe for 8-bit images scaled to 0..1, each the coarse pattern of its class under uniform noise.

    ``shape`` is (height, width) or (height, width, channels). x is float32 of (samples, *shape), y is int32 of
    (samples,) in 0..classes-1. ``seed`` draws the patterns, which are the same in every trial; the generator given
    to the recipe draws labels and noise.
    """

    def recipe(samples: int, rng: Any) -> tuple[Any, Any]:
        import numpy as np

        patterns = _patterns(shape, classes, np.random.default_rng(seed))
        y = rng.integers(0, classes, samples, dtype=np.int32)
        x = rng.integers(0, PIXEL_NOISE, (samples, *shape), dtype=np.uint8)
        x += patterns[y]
        return x.astype(np.float32) / np.float32(255), y

    return recipe


def _patterns(shape: tuple[int, ...], classes: int, rng: Any) -> Any:
    """Draw one coarse pattern for each class: uint8 of (classes, *shape), patches of equal brightness."""
    import numpy as np

    height, width, *channels = shape
    patches = (classes, -(-height // PATCH), -(-width // PATCH), *channels)
    coarse = rng.integers(0, 256 - PIXEL_NOISE, patches, dtype=np.uint8)
    return coarse.repeat(PATCH, axis=1).repeat(PATCH, axis=2)[:, :height, :width]


def iris(samples: int, rng: Any) -> tuple[Any, Any]:
    """Return rows of Fisher's Iris measurements in random order.

    x is float32 of (samples, 4): sepal length and width, petal length and width, in cm. y is int32 of (samples,):
    0 setosa, 1 versicolor, 2 virginica. R. A. Fisher, "The use of multiple measurements in taxonomic problems",
    Annals of Eugenics 7 (1936); docs/scenarios.md says where the file comes from.

    Raises:
        ValueError: more than 150 samples were asked for.
    """
    import numpy as np

    if samples > IRIS_SAMPLES:
        raise ValueError(f"Iris has {IRIS_SAMPLES} samples, {samples:,} were asked for")
    with IRIS_FILE.open(newline="", encoding="ascii") as file:
        rows = np.array(list(csv.reader(file))[1:], dtype=np.float32)
    chosen = rng.permutation(IRIS_SAMPLES)[:samples]
    return rows[chosen, :4], rows[chosen, 4].astype(np.int32)
