"""What the loops of all frameworks have in common; it imports none of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kerasbench.native import Logs


@dataclass(frozen=True)
class Optimizer:
    """An optimizer that is written out.

    ``init`` makes the slots of parameters. ``apply`` takes gradients, slots and parameters, and either returns new
    parameters and slots, as JAX wants it, or changes both in place.
    """

    init: Callable[[Any], Any]
    apply: Callable[[Any, Any, Any], Any]


class BaseLoop(ABC):
    """A loop counts what it gets right where ``accuracy`` is asked, and predicts a batch at a time."""

    def __init__(self, accuracy: bool) -> None:
        self._accuracy = accuracy

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Return the outputs for a NumPy batch, where the device left them."""

    @staticmethod
    @abstractmethod
    def fetch(outputs: Any) -> Any:
        """Return outputs as a NumPy array."""

    def predict(self, x: Any, batch: int) -> Any:
        return np.concatenate([self.fetch(self.forward(x[at : at + batch])) for at in range(0, len(x), batch)])

    def _logs(self, losses: float, right: int, samples: int) -> Logs:
        """Return means over so many samples, of the sum of their losses and of how many were right."""
        samples = max(1, samples)
        return {"loss": losses / samples} | ({"accuracy": right / samples} if self._accuracy else {})
