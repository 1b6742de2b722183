import numpy as np
import pytest

from kerasbench import datasets
from kerasbench.scenario import Regime, Scenario, ScenarioError
from kerasbench.worker.feed import POOL_BYTES, pool_samples, prepare

IMAGES = datasets.images((8, 8), classes=3)


def scenario(regime: Regime, data: object = IMAGES) -> Scenario:
    return Scenario(build=len, data=data, regimes=(regime,))  # type: ignore[arg-type]


def test_a_pool_holds_whole_batches_within_its_bound() -> None:
    regime = Regime(train=50_000, batch=32)
    row_bytes = 32 * 32 * 3 * 4
    samples = pool_samples(regime, row_bytes)
    assert samples % 32 == 0
    assert POOL_BYTES - 32 * row_bytes < samples * row_bytes <= POOL_BYTES


def test_a_small_set_and_a_full_batch_are_held_whole() -> None:
    assert pool_samples(Regime(train=1000, batch=32), 100) == 1000
    assert pool_samples(Regime(train=52_500), 784 * 4 * 10) == 52_500


def test_unseen_rows_are_not_among_the_training_rows() -> None:
    feed = prepare(scenario(Regime(train=100, batch=10, test=20)), Regime(train=100, batch=10, test=20), seed=0)
    assert (len(feed.x), len(feed.x_test)) == (100, 20)
    assert not any((row == feed.x).all(axis=(1, 2)).any() for row in feed.x_test)


def test_validation_has_the_published_number_of_rows_however_many_are_held() -> None:
    regime = Regime(train=64, batch=32, validation=200)
    feed = prepare(scenario(regime), regime, seed=0)
    assert feed.validation is not None
    assert [len(part) for part in feed.validation] == [200, 200]
    assert np.array_equal(feed.validation[0][64:128], feed.x)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (lambda samples, rng: [1], "must return a pair"),
        (lambda samples, rng: ([1] * samples, np.zeros(samples, np.int32)), "x is list"),
        (lambda samples, rng: (np.zeros(samples), np.zeros(samples, np.int32)), "x is an array of float64"),
        (lambda samples, rng: (np.zeros(9, np.float32), np.zeros(9, np.int32)), "x has 9"),
    ],
)
def test_a_recipe_that_returns_something_else_is_refused(data: object, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        prepare(scenario(Regime(train=64, batch=32), data), Regime(train=64, batch=32), seed=0)
