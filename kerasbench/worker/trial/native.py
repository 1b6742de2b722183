"""A twin in the place of a Keras model: what the phases use of one, and nothing else.

Windows, blocks, prediction and proof are the same code for both. A twin's loop runs its own steps; it is told of
callbacks only what a clock needs: that an epoch or a step begins, that an epoch or training is over.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.requests import TrialRequest
from kerasbench.native import Logs, Start, Stops, Twin
from kerasbench.scenario import Regime, ScenarioError, execute, require_unchanged, twin_file
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.trial.parity import random_layers


def build_twin(request: TrialRequest, regime: Regime, model: Any) -> "NativeModel":
    """Return the scenario's twin with the weights of its Keras model, which the caller then lets go.

    Raises:
        TrialFailure: what the twin computes could not be compared. ScenarioError: its file has no ``build``, or has
            changed. Whatever the file itself raises passes through.
    """
    if random_layers(model):
        cause = "its layers draw random numbers: a twin's losses could not be compared with Keras'"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, "leave --native out for this scenario", "build"))
    file = twin_file(Path(request.file), request.backend)
    require_unchanged(file, request.twin_hash)
    build = getattr(execute(f"kerasbench_twin_{file.stem}", file), "build", None)
    if not callable(build):
        raise ScenarioError(f"{file}: a twin has a function build(start) at its top level")
    place = "cuda" if request.device.platform == "rocm" else request.device.platform  # as ROCm builds of torch say
    twin = build(Start([weight.copy() for weight in model.get_weights()], regime, place, model.jit_compile))
    return NativeModel(twin)


@dataclass(frozen=True)
class History:
    """What ``fit`` returns: the logs of each epoch by name."""

    history: dict[str, list[float]] = field(default_factory=dict)

    def add(self, logs: Logs) -> None:
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)


@dataclass(frozen=True)
class Array:
    """One of a twin's arrays where proof and terms look for a Keras variable."""

    value: Any

    @property
    def _value(self) -> Any:
        return self.value  # where JAX is asked what to wait for

    @property
    def dtype(self) -> str:
        return str(getattr(self.value.dtype, "name", self.value.dtype)).removeprefix("torch.")


@dataclass(frozen=True)
class Layer:
    """A twin's weights where terms look for layers; it computes in what they are kept in."""

    weights: list[Array]

    @property
    def compute_dtype(self) -> str:
        return self.weights[0].dtype


@dataclass(frozen=True)
class Slots:
    """A twin's optimizer where proof looks for Keras'."""

    variables: list[Array]


class NativeModel:
    """Train, evaluate and predict with a twin as the phases do with a Keras model."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.jit_compile = twin.jit
        self.stop_training = False
        self._placed: dict[int, tuple[Any, Any, Any]] = {}  # by identity: with the arrays, so that none is taken over

    @property
    def variables(self) -> list[Array]:
        return [Array(one) for one in self.twin.weights()]

    weights = variables

    @property
    def optimizer(self) -> Slots:
        return Slots([Array(one) for one in self.twin.slots()])

    def count_params(self) -> int:
        return sum(math.prod(array.value.shape) for array in self.variables)

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int,
        epochs: int = 1,
        shuffle: bool = True,
        callbacks: Sequence[Any] = (),
        validation_data: tuple[Any, Any] | None = None,
        verbose: int = 0,
    ) -> History:
        """Train as ``keras.Model.fit`` does with these arguments; rows are placed on the device once, before."""
        self.stop_training = False
        for callback in callbacks:
            callback.set_model(self)
        begin_epoch, end_epoch = _hook(callbacks, "on_epoch_begin"), _hook(callbacks, "on_epoch_end")
        begin_step = _hook(callbacks, "on_train_batch_begin")
        self._placed.clear()
        history, rows = History(), self._place(x, y)
        unseen = validation_data and self._place(*validation_data)
        for epoch in range(epochs):
            begin_epoch(epoch)
            if self.stop_training:
                break
            logs = self.twin.train_epoch(*rows, batch_size, shuffle, self._stops(begin_step))
            if unseen:
                logs |= {f"val_{name}": value for name, value in self.twin.evaluate(*unseen, batch_size).items()}
            history.add(logs)
            end_epoch(epoch)
            if self.stop_training:
                break
        _hook(callbacks, "on_train_end")()
        self._placed.clear()
        return history

    def evaluate(self, x: Any, y: Any, batch_size: int, verbose: int = 0, return_dict: bool = True) -> Logs:
        return self.twin.evaluate(*self._place(x, y), batch_size)

    def predict(self, x: Any, batch_size: int, verbose: int = 0) -> Any:
        return self.twin.predict(x, batch_size)

    def predict_on_batch(self, x: Any) -> Any:
        return self.twin.predict(x, len(x))

    def forward(self, x: Any) -> Any:
        return self.twin.forward(x)

    def _flatten_layers(self, include_self: bool = True) -> list[Layer]:
        return [Layer([array]) for array in self.variables]

    def _place(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return rows on the device; the same arrays are placed once in a ``fit``, as a test set is in each epoch."""
        found = self._placed.get(id(x))
        if found is None:
            found = self._placed[id(x)] = (x, *self.twin.place(x, y))
        return found[1:]

    def _stops(self, begin_step: Callable[..., object]) -> Stops:
        def stops(step: int) -> bool:
            if self.stop_training:  # asked for at the step before, which is trained all the same, as by Keras
                return True
            begin_step(step)
            return False

        return stops


def _hook(callbacks: Sequence[Any], name: str) -> Callable[..., object]:
    """Return a call of that hook of every callback; of one callback its own, which costs no loop at each step."""
    hooks: list[Callable[..., object]] = [getattr(callback, name) for callback in callbacks]
    if len(hooks) == 1:
        return hooks[0]

    def call(*given: Any) -> None:
        for hook in hooks:
            hook(*given)

    return call
