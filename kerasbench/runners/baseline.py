"""A scenario's native baseline, a model without Keras, in the place of its Keras model."""

import gc
import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kerasbench.native import Baseline, Start
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners import Call, Hooks, Logs
from kerasbench.runners.feed import Fed, Rows
from kerasbench.runners.inputs import dtype_name, is_nested
from kerasbench.runners.layers import random_layers
from kerasbench.runners.trainer import PreparedModel, Trainer
from kerasbench.scenario import ScenarioError, baseline_file, execute, file_hash, require_unchanged


class BaselineRunner(Trainer):
    """The baseline begins with the weights of the Keras model, which then is gone. Its loop runs its own steps."""

    model: Baseline
    _stopped = False

    def take_model(self, prepared: PreparedModel) -> None:
        self.scenario, self.feed = prepared.scenario, prepared.feed
        feed, model = prepared.feed, prepared.model
        self.new_tokens = 0 if self.scenario.generate else self.scenario.new_tokens
        file, rows, device = Path(self.request.file), feed.train, self.request.device
        if is_nested(rows.x) or is_nested(rows.y) or rows.y is None or rows.weights is not None:
            raise _unsupported("a native baseline takes one array for x and one for y")
        if random_layers(list(model._flatten_layers())):
            cause = "its layers use random numbers: the losses of a native baseline could not be compared with Keras'"
            raise _unsupported(cause)
        file = baseline_file(file, self.request.backend)
        require_unchanged(file, file_hash(file), self.request.baseline_hash)
        build = getattr(execute(f"kerasbench_baseline_{file.stem}", file), "build", None)
        if not callable(build):
            raise ScenarioError(
                f"{file}: a native baseline needs a function build(start) at its top level", "write one"
            )
        place = "cuda" if device.platform == "rocm" else device.platform  # as ROCm builds of torch say
        weights, jit = [weight.copy() for weight in model.get_weights()], model.jit_compile
        self.take(build(Start(weights, feed.workload, place, jit)))
        # Of calls it is the Keras model's; a loop is compiled as its framework does it.
        self.jit = jit if self.request.plan.agenda.only_predicts else self.model.jit
        del model, prepared.model
        gc.collect()  # the Keras model is held by cycles, and holds memory on the device

    def take(self, baseline: Baseline) -> None:
        self.model = baseline
        self.predict_on_batch = lambda x: baseline.predict(x, len(x))
        weights = baseline.weights()
        self.parameters = sum(math.prod(array.shape) for array in weights)
        self.compute_dtypes = {dtype_name(array) for array in weights}  # it computes in what they are kept in

    def fit(
        self, rows: Fed, hooks: Hooks | None = None, epochs: int = 1, shuffle: bool = True, whole: bool = False
    ) -> Logs:
        """Train as Keras does with these arguments; rows are placed on the device once, before."""
        assert isinstance(rows, Rows)  # it has no bare steps
        hooks = hooks or Hooks()
        begin_step, batch = hooks.on_train_batch_begin, self.feed.batch
        self._stopped = False

        def stops(step: int) -> bool:
            if self._stopped:  # asked for at the step before, which is trained all the same, as by Keras
                return True
            begin_step(step)
            return False

        place = self.model.place
        placed = place(rows.x, rows.y)
        unseen, test = self.feed.validation, self.feed.test
        validation = place(unseen.x, unseen.y) if whole and len(unseen) else None
        tests = place(test.x, test.y) if whole and self.feed.workload.test_each_epoch else None
        history: defaultdict[str, list[float]] = defaultdict(list)
        for epoch in range(epochs):
            hooks.on_epoch_begin(epoch)
            if self._stopped:
                break
            logs = self.model.train_epoch(*placed, batch, shuffle, stops)
            if validation:
                evaluated = self.model.evaluate(*validation, batch)
                logs |= {f"val_{name}": value for name, value in evaluated.items()}
            if tests:
                self.model.evaluate(*tests, batch)
            for name, value in logs.items():
                history[name].append(value)
            if self._stopped:
                break
        hooks.on_train_end()
        return history

    def stop(self) -> None:
        self._stopped = True

    def evaluate(self, rows: Rows) -> float:
        return self.model.evaluate(*self.model.place(rows.x, rows.y), self.feed.batch)["loss"]

    def predictor(self, batch: int) -> Call:
        return lambda x: self.model.predict(x, batch)

    def caller(self, compiled: bool) -> Call | None:
        return self.model.caller(compiled)

    def wait(self) -> None:
        variables = [SimpleNamespace(_value=array) for array in self.model.weights()]  # where JAX looks for arrays
        self.backend.synchronize(SimpleNamespace(variables=variables))

    def forward(self, x: Any) -> Any:
        return self.model.forward(x)

    def arrays(self) -> tuple[Iterable[Any], Iterable[Any]]:
        def floats(arrays: list[Any]) -> list[Any]:
            return [array for array in arrays if "float" in dtype_name(array)]

        return floats(self.model.weights()), floats(self.model.slots())


def _unsupported(cause: str) -> TrialFailure:
    return TrialFailure(Failure(Code.UNSUPPORTED, cause, "leave --native out for this scenario"))
