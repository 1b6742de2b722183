from typing import Any

import numpy as np
import pytest

from kerasbench import datasets
from kerasbench.datasets import DataError, Dataset


def drawn(dataset: Dataset, samples: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return dataset.rows("synthetic", samples, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("dataset", "x_is", "most", "y_is"),
    [
        (datasets.mnist(), ((28, 28), "uint8"), 255, ((), "int32")),
        (datasets.mnist(datasets.unit), ((28, 28), "float32"), 1, ((), "int32")),
        (datasets.mnist(lambda x: x.reshape(-1, 784).astype("float32")), ((784,), "float32"), 255, ((), "int32")),
        (datasets.cifar10(datasets.unit), ((32, 32, 3), "float32"), 1, ((), "int32")),
        (datasets.cifar100(datasets.unit, one_hot=True), ((32, 32, 3), "float32"), 1, ((100,), "float32")),
        (datasets.boston(), ((13,), "float32"), 711, ((1,), "float32")),
        (datasets.random_samples((29, 1), 12), ((29, 1), "float32"), 1, ((12,), "float32")),
        (datasets.images((28, 20), 3), ((28, 20), "float32"), 1, ((), "int32")),
        (datasets.cifar10(datasets.unit, one_hot=True), ((32, 32, 3), "float32"), 1, ((10,), "float32")),
        (datasets.sequences(9, vocabulary=1_000, classes=3), ((9,), "int32"), 999, ((), "int32")),
        (datasets.next_tokens(9, vocabulary=1_000), ((9,), "int32"), 999, ((9,), "int32")),
    ],
)
def test_rows_have_the_published_shape_type_and_range(
    dataset: Dataset, x_is: tuple[tuple[int, ...], str], most: float, y_is: tuple[tuple[int, ...], str]
) -> None:
    x, y = drawn(dataset)
    assert [(of.shape[1:], of.dtype.name, len(of)) for of in (x, y)] == [(*x_is, 500), (*y_is, 500)]
    assert x.min() >= 0 and 0.95 * most < x.max() <= most


def test_the_same_seed_draws_the_same_rows() -> None:
    first, second, other = (drawn(datasets.cifar10(), seed=seed) for seed in (5, 5, 6))
    assert all(map(np.array_equal, first, second))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("dataset", [datasets.mnist(datasets.unit), datasets.cifar10(datasets.unit)])
def test_pictures_can_be_learned(dataset: Dataset) -> None:
    x, y = drawn(dataset, 2_000)
    flat = x.reshape(len(x), -1)
    means = np.stack([flat[:1000][y[:1000] == label].mean(axis=0) for label in range(10)])
    nearest = np.stack([((flat[1000:] - mean) ** 2).sum(axis=1) for mean in means]).argmin(axis=0)
    assert (nearest == y[1000:]).mean() > 0.9  # chance is 0.1


def real(x: np.ndarray, y: np.ndarray) -> Dataset:
    def draw(samples: int, rng: object) -> tuple[np.ndarray, np.ndarray]:
        raise AssertionError("real rows were asked for")

    return Dataset("Mine", (2,), draw, load=lambda: (x, y))


def test_real_rows_come_in_the_order_of_their_files_so_that_splits_are_the_published_ones() -> None:
    x: Any = np.arange(200, dtype=np.uint8).reshape(100, 2)
    got_x, got_y = real(x, np.arange(100)).rows("real", 50, np.random.default_rng(0))
    assert np.array_equal(got_x, x[:50])
    assert list(got_y) == list(range(50))


@pytest.mark.parametrize(
    ("shape", "targets", "complaint"),
    [
        ((100, 3), 100, r"samples of shape \(2,\) and as many targets are needed, .*: delete the damaged file"),
        ((100, 2), 99, "the file has 100 of shape .* and 99: delete the damaged file"),
        ((10, 2), 10, "Mine has 10 samples, 50 are needed: use fewer"),
    ],
    ids=["other shape", "no pairs", "too few"],
)
def test_real_rows_that_are_not_as_they_should_be(shape: tuple[int, int], targets: int, complaint: str) -> None:
    dataset = real(np.zeros(shape, np.uint8), np.zeros(targets))
    with pytest.raises(DataError, match=complaint):
        dataset.rows("real", 50, np.random.default_rng(0))
    with pytest.raises(DataError, match=r"must return x, \(x, y\) or"):
        Dataset("own", (), lambda samples, rng: (1, 2, 3, 4)).rows("synthetic", 1, None)


def test_iris_is_the_published_set() -> None:
    x, y = datasets.iris().rows("synthetic", 150, np.random.default_rng(0))
    assert np.bincount(y).tolist() == [50, 50, 50]
    # The means that every textbook prints, in cm.
    assert np.round(x.mean(axis=0), 3).tolist() == np.float32([5.843, 3.057, 3.758, 1.199]).tolist()
    assert x.dtype == np.float32
    x, y = drawn(datasets.iris(), 112, seed=1)  # rows keep their species when shuffled: setosa's petals are short
    assert len(x) == 112 and x[y == 0][:, 2].max() < 2 < x[y != 0][:, 2].min()
    with pytest.raises(DataError, match="Iris has 150 samples, 151 are needed"):
        drawn(datasets.iris(), 151)


def test_every_other_word_of_a_text_tells_its_class() -> None:
    x, y = drawn(datasets.sequences(9, vocabulary=1_000, classes=3))
    assert set(y) == {0, 1, 2}
    assert (x[:, ::2] % 3 == y[:, None]).all()
    assert not (x[:, 1::2] % 3 == y[:, None]).all()


def test_three_of_four_words_follow_from_the_one_before_by_the_same_table_in_every_trial() -> None:
    x, y = drawn(datasets.next_tokens(20, vocabulary=50), seed=1)
    assert (x[:, 1:] == y[:, :-1]).all()
    other_x, other_y = drawn(datasets.next_tokens(20, vocabulary=50), seed=2)
    table = {word: np.bincount(other_y[other_x == word]).argmax() for word in range(50)}
    followed = np.vectorize(table.get)(x) == y
    assert 0.7 < followed.mean() < 0.8
