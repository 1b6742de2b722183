"""The arrays that a trial feeds: as many rows as its phases need, drawn once, the same for every backend."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kerasbench.scenario import Regime, Scenario, ScenarioError

# Enough for 170 steps of 32 CIFAR images; a published epoch of them would be 614 MB and a second of drawing.
POOL_BYTES = 64 << 20
POOL_MIN_STEPS = 64
EVALUATED_SAMPLES = 1000  # accuracy to within 3 points (95 %), in a fraction of a second
ALLOWED_DTYPES = ("float32", "int32", "uint8")


@dataclass(frozen=True)
class Feed:
    """``x`` and ``y`` hold whole training batches; ``validation`` has the published number of samples, or is None."""

    regime: Regime
    x: Any
    y: Any
    x_test: Any
    y_test: Any
    validation: tuple[Any, Any] | None

    @property
    def batch(self) -> int:
        return self.regime.batch_size


def prepare(scenario: Scenario, regime: Regime, seed: int) -> Feed:
    """Draw the rows.

    Raises:
        ScenarioError: the recipe returns something else than that many rows of float32, int32 or uint8 arrays.
    """
    one_x, _ = draw(scenario, 1, seed)
    train = pool_samples(regime, one_x.nbytes)
    test = min(regime.test, EVALUATED_SAMPLES)
    x, y = draw(scenario, train + test, seed)
    tested = slice(train, train + test) if test else slice(0, min(train, EVALUATED_SAMPLES))
    return Feed(
        regime=regime,
        x=x[:train],
        y=y[:train],
        x_test=x[tested],
        y_test=y[tested],
        validation=(_repeat(x[:train], regime.validation), _repeat(y[:train], regime.validation))
        if regime.validation
        else None,
    )


def pool_samples(regime: Regime, row_bytes: int) -> int:
    """Return how many training rows to hold: all of a full batch or a small set, else whole batches within a bound."""
    fit_in_pool = max(POOL_BYTES // row_bytes, POOL_MIN_STEPS * regime.batch_size)
    return regime.train if regime.train <= fit_in_pool or regime.batch is None else _whole(fit_in_pool, regime)


def _whole(samples: int, regime: Regime) -> int:
    return samples // regime.batch_size * regime.batch_size


def draw(scenario: Scenario, samples: int, seed: int) -> tuple[Any, Any]:
    """Call the recipe with a fresh generator and check what it returns."""
    drawn = scenario.data(samples, np.random.default_rng(seed))
    if not isinstance(drawn, tuple) or len(drawn) != 2:
        raise ScenarioError("data(samples, rng) must return a pair (x, y) of NumPy arrays")
    for name, array in zip("xy", drawn, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype.name not in ALLOWED_DTYPES:
            found = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ScenarioError(f"data() must return NumPy arrays of {', '.join(ALLOWED_DTYPES)}; {name} is {found}")
        if len(array) != samples:
            raise ScenarioError(f"data() was asked for {samples:,} samples, {name} has {len(array):,}")
    return drawn


def _repeat(rows: Any, samples: int) -> Any:
    """Return that many rows, over again from the first where there are too few: a pass costs the same."""
    return rows[:samples] if samples <= len(rows) else np.resize(rows, (samples, *rows.shape[1:]))
