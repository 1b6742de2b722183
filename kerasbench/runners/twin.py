"""A scenario's native baseline, a model without Keras, in the place of its Keras model."""

import gc
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerasbench.native import Baseline, Start
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners import Call, Hooks
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.inputs import dtype_name, is_nested
from kerasbench.runners.keras import KerasRunner, WithKeras
from kerasbench.runners.layers import random_layers
from kerasbench.scenario import Scenario, ScenarioError, baseline_file, execute, require_unchanged


@dataclass(frozen=True)
class Array:
    """A baseline's array where a backend looks for a Keras variable."""

    value: Any

    @property
    def _value(self) -> Any:
        return self.value  # where JAX is asked what to wait for


class TwinRunner(WithKeras):
    """The baseline begins with the weights of the Keras model, which then is gone. Its loop runs its own steps."""

    baseline: Baseline
    _stopped = False

    def build(self, scenario: Scenario, feed: Feed) -> None:
        self.scenario, self.feed = scenario, feed
        file, rows, device = Path(self.request.file), feed.train, self.request.device
        if is_nested(rows.x) or is_nested(rows.y) or rows.weights is not None:
            raise _unsupported("a native baseline takes one array for x and one for y")
        keras = KerasRunner(self.backend, self.request)
        keras.build(scenario, feed)
        if random_layers(keras.layers):
            raise _unsupported(
                "its layers use random numbers: the losses of a native baseline could not be compared with Keras'"
            )
        file = baseline_file(file, self.request.backend)
        require_unchanged(file, self.request.baseline_hash)
        build = getattr(execute(f"kerasbench_baseline_{file.stem}", file), "build", None)
        if not callable(build):
            raise ScenarioError(f"{file}: a native baseline needs a function build(start) at its top level")
        place = "cuda" if device.platform == "rocm" else device.platform  # as ROCm builds of torch say
        weights = [weight.copy() for weight in keras.model.get_weights()]
        self.baseline = build(Start(weights, feed.workload, place, keras.jit))
        # Of calls it is the Keras model's; a loop is compiled as its framework does it.
        self._jit = keras.jit if self.request.protocol.agenda.only_predicts else self.baseline.jit
        del keras
        gc.collect()  # the Keras model is held by cycles, and holds memory on the device

    def fit(
        self, rows: Rows, hooks: Hooks | None = None, epochs: int = 1, shuffle: bool = True, whole: bool = False
    ) -> Mapping[str, Sequence[Any]]:
        """Train as Keras does with these arguments; rows are placed on the device once, before."""
        hooks = hooks or Hooks()
        begin_step, batch = hooks.on_train_batch_begin, self.feed.batch
        self._stopped = False

        def stops(step: int) -> bool:
            if self._stopped:  # asked for at the step before, which is trained all the same, as by Keras
                return True
            begin_step(step)
            return False

        place = self.baseline.place
        placed = place(rows.x, rows.y)
        unseen, test = self.feed.validation, self.feed.test
        validation = place(unseen.x, unseen.y) if whole and len(unseen) else None
        tests = place(test.x, test.y) if whole and self.feed.workload.test_each_epoch else None
        history: defaultdict[str, list[float]] = defaultdict(list)
        for epoch in range(epochs):
            hooks.on_epoch_begin(epoch)
            if self._stopped:
                break
            logs = self.baseline.train_epoch(*placed, batch, shuffle, stops)
            if validation:
                evaluated = self.baseline.evaluate(*validation, batch)
                logs |= {f"val_{name}": value for name, value in evaluated.items()}
            if tests:
                self.baseline.evaluate(*tests, batch)
            for name, value in logs.items():
                history[name].append(value)
            if self._stopped:
                break
        hooks.on_train_end()
        return history

    def stop(self) -> None:
        self._stopped = True

    def evaluate(self, rows: Rows) -> float:
        return self.baseline.evaluate(*self.baseline.place(rows.x, rows.y), self.feed.batch)["loss"]

    @property
    def predict_on_batch(self) -> Call:
        return lambda x: self.baseline.predict(x, len(x))

    def predictor(self, batch: int) -> Call:
        return lambda x: self.baseline.predict(x, batch)

    def caller(self, compiled: bool) -> Call | None:
        return self.baseline.caller(compiled)

    def wait(self) -> None:
        self.backend.synchronize(self)

    def forward(self, x: Any) -> Any:
        return self.baseline.forward(x)

    def weights(self) -> list[Any]:
        return [array for array in self.baseline.weights() if "float" in dtype_name(array)]

    def slots(self) -> list[Any]:
        return [array for array in self.baseline.slots() if "float" in dtype_name(array)]

    @property
    def variables(self) -> list[Array]:
        return [Array(array) for array in self.baseline.weights()]

    @property
    def loss_owner(self) -> Any:
        return self.baseline

    @property
    def parameters(self) -> int:
        return sum(math.prod(array.shape) for array in self.baseline.weights())

    @property
    def jit(self) -> bool:
        return self._jit

    @property
    def compute_dtypes(self) -> set[str]:
        return {dtype_name(array) for array in self.baseline.weights()}  # it computes in what they are kept in

    @property
    def weight_dtypes(self) -> set[str]:
        return {dtype_name(array) for array in self.weights()}


def _unsupported(cause: str) -> TrialFailure:
    return TrialFailure(Failure(Code.UNSUPPORTED, cause, "leave --native out for this scenario"))
