"""How far weights move, read from a runner whose weights the test moves."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.worker.movement import SAMPLED, MovementMeter, compared_weights, stride
from tests import made


class Moving:
    """A kernel of which one column alone is trained, another, and a bias."""

    def __init__(self, rows: int = 3_000) -> None:
        self.kernel: Any = np.zeros((rows, 10), np.float32)
        self.other: Any = np.zeros((2, 2), np.float32)
        self.count = 0
        self.to_numpy = np.asarray

    def trained_weights(self) -> list[tuple[str, Any]]:
        return [("dense/kernel", self.kernel), ("other/kernel", self.other), ("dense/bias", np.zeros(4))]

    def updates(self) -> int:
        return self.count

    def train(self, steps: int) -> None:
        self.kernel[:, 3] += steps
        self.count += steps


def test_a_distance_is_a_root_mean_square_over_numbers_of_each_column() -> None:
    runner: Any = Moving()
    meter = MovementMeter(runner)
    runner.train(6)
    meter.begin_slices()
    runner.train(100)
    movement = made.known(meter.movement(steps=100))
    assert (movement.weights, movement.sizes) == (["dense/kernel", "other/kernel"], [30_000, 4])
    assert movement.first == pytest.approx([6 / np.sqrt(10), 0], rel=0.01)
    assert movement.later == pytest.approx([100 / np.sqrt(10), 0], rel=0.01)
    assert (movement.steps, movement.updates) == (100, 100)  # not the first six


def test_what_is_no_number_has_not_moved() -> None:
    runner: Any = Moving()
    meter = MovementMeter(runner)
    runner.other[0] = np.nan
    assert made.known(meter.movement(1)).later == [0, 0]  # the losses tell


def test_vectors_are_compared_where_there_is_no_matrix() -> None:
    """A bias before a batch normalisation has no gradient, and Adam makes steps of rounding errors."""
    runner: Any = SimpleNamespace(trained_weights=lambda: [("bias", np.zeros(3)), ("scale", np.zeros(()))])
    assert [path for path, _ in compared_weights(runner)] == ["bias", "scale"]


def test_a_runner_that_does_not_tell_its_weights_has_no_movement() -> None:
    runner: Any = SimpleNamespace(trained_weights=list, updates=lambda: None)
    assert MovementMeter(runner).movement(5) is None


@pytest.mark.parametrize("size", [1, 7, SAMPLED, 10 * SAMPLED, 2**22, 3 * 5 * 7 * 11 * 13 * 17])
def test_a_stride_meets_every_column_and_takes_enough(size: int) -> None:
    step = stride(size)
    assert np.gcd(step, size) == 1
    assert min(size, SAMPLED // 2) <= -(-size // step) <= max(SAMPLED, 1) * 2
