"""A scenario's native baseline, a model without Keras, in the place of its Keras model.

``NativeModel`` has what the phases use of a Keras model and nothing else, so that windows, slices, prediction and proof
are the same code for both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kerasbench.native import Baseline, Logs, Start
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import TrialRequest
from kerasbench.scenario import ScenarioError, Workload, baseline_file, execute, require_unchanged
from kerasbench.worker.checks import random_layers
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.inputs import dtype_name


def build_baseline(request: TrialRequest, workload: Workload, model: Any) -> "NativeModel":
    """Return the scenario's baseline with the weights of its Keras model, which the caller then lets go."""
    if random_layers(model):
        cause = "its layers use random numbers: the losses of a native baseline could not be compared with Keras'"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, "leave --native out for this scenario"))
    file = baseline_file(Path(request.file), request.backend)
    require_unchanged(file, request.baseline_hash)
    build = getattr(execute(f"kerasbench_baseline_{file.stem}", file), "build", None)
    if not callable(build):
        raise ScenarioError(f"{file}: a native baseline needs a function build(start) at its top level")
    place = "cuda" if request.device.platform == "rocm" else request.device.platform  # as ROCm builds of torch say
    baseline = build(Start([weight.copy() for weight in model.get_weights()], workload, place, model.jit_compile))
    native = NativeModel(baseline)
    if request.protocol.agenda.only_predicts:
        native.jit_compile = model.jit_compile  # of calls; a loop is compiled as its framework does it
    return native


@dataclass(frozen=True)
class Array:
    """A baseline's array where checks look for a Keras variable."""

    value: Any

    @property
    def _value(self) -> Any:
        return self.value  # where JAX is asked what to wait for

    @property
    def dtype(self) -> str:
        return dtype_name(self.value)


class NativeModel:
    """Train, evaluate and predict with a baseline as the phases do with a Keras model.

    The baseline's loop runs its own steps. Callbacks hear only what a clock needs: that an epoch or a step begins, that
    an epoch or training is over.
    """

    def __init__(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self.jit_compile = baseline.jit
        self.steps_per_execution = 1
        self.stop_training = False
        self._placed: dict[int, tuple[Any, Any, Any]] = {}  # by identity; x is kept, so that none is reused

    @property
    def variables(self) -> list[Array]:
        return [Array(weight) for weight in self.baseline.weights()]

    weights = variables

    @property
    def optimizer(self) -> SimpleNamespace:
        return SimpleNamespace(variables=[Array(slot) for slot in self.baseline.slots()])

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
    ) -> SimpleNamespace:
        """Train as ``keras.Model.fit`` does with these arguments; rows are placed on the device once, before."""
        self.stop_training = False
        for callback in callbacks:
            callback.set_model(self)
        begin_epoch, end_epoch = _hook(callbacks, "on_epoch_begin"), _hook(callbacks, "on_epoch_end")
        begin_step = _hook(callbacks, "on_train_batch_begin")

        def stops(step: int) -> bool:
            if self.stop_training:  # asked for at the step before, which is trained all the same, as by Keras
                return True
            begin_step(step)
            return False

        self._placed.clear()
        history: dict[str, list[float]] = {}
        rows = self._place(x, y)
        unseen = validation_data and self._place(*validation_data)
        for epoch in range(epochs):
            begin_epoch(epoch)
            if self.stop_training:
                break
            logs = self.baseline.train_epoch(*rows, batch_size, shuffle, stops)
            if unseen:
                logs |= {f"val_{name}": value for name, value in self.baseline.evaluate(*unseen, batch_size).items()}
            for name, value in logs.items():
                history.setdefault(name, []).append(value)
            end_epoch(epoch)
            if self.stop_training:
                break
        _hook(callbacks, "on_train_end")()
        self._placed.clear()
        return SimpleNamespace(history=history)

    def evaluate(self, x: Any, y: Any, batch_size: int, verbose: int = 0, return_dict: bool = True) -> Logs:
        return self.baseline.evaluate(*self._place(x, y), batch_size)

    def predict(self, x: Any, batch_size: int, verbose: int = 0) -> Any:
        return self.baseline.predict(x, batch_size)

    def predict_on_batch(self, x: Any) -> Any:
        return self.baseline.predict(x, len(x))

    def _flatten_layers(self, include_self: bool = True) -> list[SimpleNamespace]:
        """Return a layer for each weight, where checks look for layers; it computes in what the weight is kept in."""
        return [SimpleNamespace(weights=[array], compute_dtype=array.dtype) for array in self.variables]

    def _place(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return rows on the device; the same arrays are placed once in a ``fit``, as a test set is in each epoch."""
        if id(x) not in self._placed:
            self._placed[id(x)] = (x, *self.baseline.place(x, y))
        return self._placed[id(x)][1:]


def _hook(callbacks: Sequence[Any], name: str) -> Callable[..., object]:
    """Return a call of that hook of every callback; of one callback its own, which costs no loop at each step."""
    hooks: list[Callable[..., object]] = [getattr(callback, name) for callback in callbacks]
    if len(hooks) == 1:
        return hooks[0]

    def call_all(*arguments: Any) -> None:
        for hook in hooks:
            hook(*arguments)

    return call_all
