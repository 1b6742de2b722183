"""Plain training loops, one module for each framework: compared with a Keras model, they tell what Keras costs.

``build(start)`` of ``native/<scenario>_<backend>.py``, beside the scenario, returns a ``Baseline``: the same model,
loss, optimizer and step. The loops here are as an engineer of the framework writes them: samples on the device, one
compiled step where the framework compiles, metrics read once an epoch. This module imports no framework.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kerasbench.scenario import Workload

Model = Callable[[Any, Any], Any]  # parameters and a batch -> logits
Call = Callable[[Any], Any]
Stops = Callable[[int], bool]  # told that this step begins; whether training ends before it
Logs = dict[str, float]


@dataclass(frozen=True)
class Start:
    # The Keras model's, NumPy arrays in its order and layout: a kernel is (inputs, outputs), or (height, width, inputs,
    # outputs).
    weights: list[Any]
    workload: Workload
    place: str  # the device as torch calls it: cpu, cuda or mps
    jit: bool  # whether the step is compiled by XLA, where that can be chosen


class Baseline(Protocol):
    """What a worker does with a native baseline. Placed samples are what ``place`` returned."""

    jit: bool

    # NumPy samples as the framework's arrays on the device, as they are trained on.
    def place(self, x: Any, y: Any) -> tuple[Any, Any]: ...
    # Trains on placed samples once, asking ``stops`` before each step; the loss and metrics of Keras.
    def train_epoch(self, x: Any, y: Any, batch: int, shuffle: bool, stops: Stops) -> Logs: ...
    # Loss and metrics of placed samples.
    def evaluate(self, x: Any, y: Any, batch: int) -> Logs: ...
    # A batch's mean loss and the logits that it is of. Each step computes its loss by this method.
    def compute_loss(self, x: Any, y: Any, *state: Any) -> tuple[Any, Any]: ...
    # The outputs for a NumPy batch, where the device left them.
    def forward(self, x: Any) -> Any: ...
    # What calls the model on a batch on the device, and waits for its outputs; as ``Backend.caller``.
    def caller(self, compiled: bool) -> Call | None: ...
    # The outputs for NumPy samples as one NumPy array.
    def predict(self, x: Any, batch: int) -> Any: ...
    # The arrays that are trained, as they are now.
    def weights(self) -> list[Any]: ...
    # The optimizer's arrays, as they are now.
    def slots(self) -> list[Any]: ...


@dataclass(frozen=True)
class Optimizer:
    init: Callable[[Any], Any]  # of parameters: their slots
    # Of gradients, slots and parameters: new parameters and slots, as JAX wants it, or None after changes in place.
    apply: Callable[[Any, Any, Any], Any]


class BaseLoop:
    """A loop counts what it gets right where ``accuracy`` is asked, and predicts a batch at a time."""

    _accuracy: bool
    forward: Call
    fetch: Call  # the outputs as a NumPy array

    def predict(self, x: Any, batch: int) -> Any:
        return np.concatenate([self.fetch(self.forward(x[at : at + batch])) for at in range(0, len(x), batch)])

    def _logs(self, losses: float, right: int, samples: int) -> Logs:
        samples = max(1, samples)
        return {"loss": losses / samples} | ({"accuracy": right / samples} if self._accuracy else {})


def batches(samples: int, batch: int, shuffle: bool, dtype: str) -> Iterator[Any]:
    """Yield the rows of each batch; None where one batch takes all of them, in whatever order."""
    if batch >= samples:
        yield None
        return
    order: Any = np.arange(samples, dtype=dtype)
    if shuffle:
        np.random.default_rng().shuffle(order)
    for begin in range(0, samples, batch):
        yield order[begin : begin + batch]


def take(x: Any, y: Any, rows: Any, gather: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return a batch's inputs and targets; ``rows`` as ``batches`` has them, ``gather`` is the framework's."""
    return (x, y) if rows is None else (gather(x, rows), gather(y, rows))
