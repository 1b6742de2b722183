from typing import Any

import numpy as np
import pytest

from kerasbench.native import BaseLoop


class Doubling(BaseLoop):
    """Outputs are twice the inputs, and lie on a device of their own until they are fetched."""

    def __init__(self, accuracy: bool = True) -> None:
        super().__init__(accuracy)
        self.batches: list[int] = []

    def forward(self, x: Any) -> Any:
        self.batches.append(len(x))
        return ("on the device", 2 * x)

    @staticmethod
    def fetch(outputs: Any) -> Any:
        return outputs[1]


def test_prediction_goes_batch_by_batch_and_ends_in_one_array() -> None:
    loop, x = Doubling(), np.arange(10)
    assert loop.predict(x, 4).tolist() == [2 * one for one in range(10)]
    assert loop.batches == [4, 4, 2]


@pytest.mark.parametrize(("accuracy", "logs"), [(True, {"loss": 0.5, "accuracy": 0.75}), (False, {"loss": 0.5})])
def test_logs_are_means_over_samples(accuracy: bool, logs: dict[str, float]) -> None:
    assert Doubling(accuracy)._logs(10.0, 15, 20) == logs


def test_an_epoch_that_was_stopped_before_its_first_step_has_logs_too() -> None:
    assert Doubling()._logs(0.0, 0, 0) == {"loss": 0.0, "accuracy": 0.0}
