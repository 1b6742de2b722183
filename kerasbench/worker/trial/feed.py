"""The arrays that a trial feeds: as many rows as its phases need, drawn once, the same for every backend."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kerasbench.datasets import Dataset
from kerasbench.scenario import Regime, Scenario, ScenarioError

# Enough for 170 steps of 32 CIFAR images; a published epoch of them would be 614 MB and a second of drawing.
POOL_BYTES = 64 << 20
POOL_MIN_STEPS = 64
EVALUATED_SAMPLES = 1000  # accuracy to within 3 points (95 %), in a fraction of a second
KERAS_PREDICT_BATCH = 32  # Keras' default, where training takes the whole set at once
ALLOWED_DTYPES = ("float32", "int32", "uint8")


@dataclass(frozen=True)
class Rows:
    """Inputs and targets that belong together."""

    x: Any
    y: Any

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, chosen: slice) -> "Rows":
        return Rows(self.x[chosen], self.y[chosen])

    def repeated(self, samples: int) -> "Rows":
        """Return that many rows, over again from the first where there are too few: a pass costs the same."""
        if samples <= len(self):
            return self[:samples]
        return Rows(*(np.resize(array, (samples, *array.shape[1:])) for array in (self.x, self.y)))


@dataclass(frozen=True)
class Feed:
    """Training rows, and validation and test rows in their published numbers; and how `fit` takes them."""

    regime: Regime
    train: Rows
    validation: Rows
    test: Rows

    @property
    def batch(self) -> int:
        return self.regime.batch_size

    @property
    def predict_batch(self) -> int:
        regime = self.regime
        return regime.predict_batch or (KERAS_PREDICT_BATCH if regime.batch is None else self.batch)

    @property
    def evaluated(self) -> Rows:
        """Unseen rows to judge learning by; training rows where the publication had no others."""
        return (self.test or self.train)[:EVALUATED_SAMPLES]

    def arguments(self, rows: Rows) -> dict[str, Any]:
        """Return what `fit` and `evaluate` take for these rows: arrays and a batch size, or the regime's pipeline."""
        if self.regime.feed is None:
            return {"x": rows.x, "y": rows.y, "batch_size": self.batch}
        return {"x": self.regime.feed(rows.x, rows.y, self.batch)}

    def validation_arguments(self) -> dict[str, Any]:
        """Return what `fit` takes besides, to pass over the validation rows in each epoch."""
        if not len(self.validation):
            return {}
        if self.regime.feed is None:
            return {"validation_data": (self.validation.x, self.validation.y)}
        return {"validation_data": self.regime.feed(self.validation.x, self.validation.y, self.batch)}

    def inputs(self, rows: Rows) -> Any:
        """Return the x of these rows as the model takes it, through the regime's pipeline where it has one."""
        return rows.x if self.regime.feed is None else self.regime.feed(rows.x, rows.y, len(rows))[0][0]


def prepare(scenario: Scenario, regime: Regime, seed: int, kind: str = "synthetic", whole: bool = False) -> Feed:
    """Draw the rows; all that the publication had where ``whole``, else as many training rows as are needed to measure.

    Raises:
        ScenarioError: the data are not that many rows of float32, int32 or uint8 arrays.
        DataError: real rows cannot be had.
    """
    dataset = scenario.dataset(regime)
    if whole:
        rows = draw(dataset, regime.train + regime.validation + regime.test, seed, kind)
        _check_pipeline(regime, rows[: regime.batch_size])
        train, validation = rows[: regime.train], rows[regime.train : regime.train + regime.validation]
        return Feed(regime, train, validation, rows[regime.train + regime.validation :])
    count = pool_samples(regime, draw(dataset, 1, seed, "synthetic").x.nbytes)
    test = regime.test if regime.test_each_epoch else min(regime.test, EVALUATED_SAMPLES)
    fresh = min(test, EVALUATED_SAMPLES)
    rows = draw(dataset, count + fresh, seed, kind)
    _check_pipeline(regime, rows[: regime.batch_size])
    train = rows[:count]
    return Feed(regime, train, train.repeated(regime.validation), rows[count:].repeated(test) if test else rows[:0])


def _check_pipeline(regime: Regime, batch: Rows) -> None:
    """Refuse float64, NumPy's default, from a pipeline: the Apple GPU has none, elsewhere it is cast again."""
    if regime.feed is not None:
        for name, array in zip("xy", regime.feed(batch.x, batch.y, len(batch))[0], strict=False):
            if getattr(array, "dtype", None) == np.float64:
                raise ScenarioError(f"feed() must give float32 or integers, not float64; {name} is: .astype('float32')")


def pool_samples(regime: Regime, row_bytes: int) -> int:
    """Return how many training rows to hold: all of a full batch or a small set, else whole batches within a bound."""
    fit_in_pool = max(POOL_BYTES // row_bytes, POOL_MIN_STEPS * regime.batch_size)
    if regime.batch is None or regime.train <= fit_in_pool:
        return regime.train
    return fit_in_pool // regime.batch_size * regime.batch_size


def draw(dataset: Dataset, samples: int, seed: int, kind: str) -> Rows:
    """Draw rows with a fresh generator and check what comes."""
    drawn = dataset.rows(kind, samples, np.random.default_rng(seed))
    for name, array in zip("xy", drawn, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype.name not in ALLOWED_DTYPES:
            found = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ScenarioError(f"data() must return NumPy arrays of {', '.join(ALLOWED_DTYPES)}; {name} is {found}")
        if len(array) != samples:
            raise ScenarioError(f"data() was asked for {samples:,} samples, {name} has {len(array):,}")
    return Rows(*drawn)
