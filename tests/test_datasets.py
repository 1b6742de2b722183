import numpy as np

from kerasbench import datasets


def test_images_have_the_published_shape_type_and_range() -> None:
    x, y = datasets.images((28, 28), classes=10)(500, np.random.default_rng(0))
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((500, 28, 28), np.float32, (500,), np.int32)
    assert x.min() >= 0
    assert 0.9 < x.max() <= 1
    assert set(y) == set(range(10))


def test_the_same_seed_draws_the_same_images() -> None:
    recipe = datasets.images((32, 32, 3), classes=10)
    first, second = (recipe(20, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_images_can_be_learned() -> None:
    x, y = datasets.images((28, 28), classes=10)(2_000, np.random.default_rng(0))
    flat = x.reshape(len(x), -1)
    means = np.stack([flat[:1000][y[:1000] == label].mean(axis=0) for label in range(10)])
    nearest = ((flat[1000:, None, :] - means) ** 2).sum(axis=-1).argmin(axis=1)
    assert (nearest == y[1000:]).mean() > 0.9  # chance is 0.1


def test_iris_is_the_published_set() -> None:
    x, y = datasets.iris(150, np.random.default_rng(0))
    assert np.bincount(y).tolist() == [50, 50, 50]
    # The means that every textbook prints, in cm.
    assert np.round(x.mean(axis=0), 3).tolist() == np.float32([5.843, 3.057, 3.758, 1.199]).tolist()
    assert x.dtype == np.float32


def test_iris_rows_keep_their_species_when_shuffled() -> None:
    x, y = datasets.iris(112, np.random.default_rng(1))
    assert len(x) == 112
    assert x[y == 0][:, 2].max() < 2  # setosa alone has petals under 2 cm
    assert x[y != 0][:, 2].min() > 2
