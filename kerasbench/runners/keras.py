"""A Keras model, trained by `fit`."""

import dataclasses
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kerasbench import private
from kerasbench.protocol.columns import CPU
from kerasbench.runners import Bare, Call, Hooks, Logs
from kerasbench.runners.feed import Fed, Feed, Rows
from kerasbench.runners.inputs import leaves, mapped
from kerasbench.runners.loop import Loop, loss_of
from kerasbench.runners.streams import epoch_of, stream_of
from kerasbench.runners.trainer import PreparedModel, Trainer
from kerasbench.runners.weights import make_weights
from kerasbench.scenario import ScenarioError

NO_LOSS = "No loss to compute"  # Keras of a model that was compiled without one
NOT_EVALUATED = (
    "evaluate() has no loss",
    'give compile() one, or the model a test_step of its own that returns it, {"loss": ...}',
)
OVERRIDES = ("train_step", "test_step", "compute_loss")
HOOKS = ("on_epoch_begin", "on_train_batch_begin", "on_train_end")

PEAK_PRODUCT_S = 0.05  # long enough for the clock and for every core
PEAK_SIDES = (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)  # the largest takes 4 GiB in float32
PEAK_REPEATS = 5

SHUFFLES = 5
UNLIMITED = 1 << 62  # steps of a script's own loop
COPIED_NUMBERS = 1 << 28  # of weights, which a trial keeps a second time: a GiB in float32
FITTED_STEPS = 16  # of a model that is built again and again: what stays of one hardly depends on its steps

MOMENTUM, VELOCITY = "_momentum", "_velocity"  # how Keras calls first and second moments
VANISHING = 1e-20  # of a first moment: no gradient has reached it for some 400 steps


def queued_batches(dataset: Any) -> int:
    """Return how many batches the workers of a `PyDataset` put by while no step takes one; 0: it has none."""
    workers = getattr(dataset, "workers", 0)
    has_queue = workers > 1 or (workers > 0 and dataset.use_multiprocessing)  # as Keras decides it
    return dataset.max_queue_size + workers if has_queue else 0


def _fed(array: Any) -> Any:
    """Return an array as `fit` takes it: text, which TensorFlow alone reads, as its tensor."""
    if array.dtype.kind not in "SU":
        return array
    import tensorflow as tf

    return tf.constant(array)


def can_predict(model: Any, feed: Feed) -> bool:
    """Tell whether it has more than a training step of its own, as a script's model may."""
    if not feed.is_of_script:
        return True
    import keras

    return type(model).call is not keras.Model.call


def count_parameters(model: Any, feed: Feed) -> int:
    """Return how many numbers are in its weights, also where Keras does not count because it was never called."""
    return int(model.count_params()) if can_predict(model, feed) else _count(model)


def _count(model: Any) -> int:
    return sum(math.prod(weight.shape) for weight in model.weights)


class KerasRunner(Trainer):
    origin: list[Any] | None = None  # a script's weights before any step; None: it is no script, or they are too large
    given: Feed  # as it was before a choice has changed it

    def take_model(self, prepared: PreparedModel) -> None:
        self.scenario, self.given, self.feed = prepared.scenario, prepared.given, prepared.feed
        self.model = model = prepared.model
        self.predicts = can_predict(model, self.feed)
        self.layers = list(model._flatten_layers())
        self.origin = model.get_weights() if self.feed.is_of_script and _count(model) <= COPIED_NUMBERS else None
        layers = model._flatten_layers(include_self=False)
        self.compute_dtypes = {layer.compute_dtype for layer in layers if layer.weights}
        self.parameters = count_parameters(model, self.feed)
        self.jit = bool(model.jit_compile)
        self.steps_per_execution = model.steps_per_execution if self.feed.loop is None else 1
        methods = {name: getattr(type(model), name, None) for name in OVERRIDES}
        of_keras = ("keras.", f"{self.backend.PACKAGE}.")  # where a backend from outside has its trainer
        self.overrides = [
            name for name, method in methods.items() if method and not method.__module__.startswith(of_keras)
        ]
        generate, callbacks = self.scenario.generate, self.scenario.callbacks
        self.new_tokens, self.generate = self.scenario.new_tokens, generate and partial(generate, model)
        self.predict_on_batch = model.predict_on_batch
        self.callbacks = callbacks(Path(tempfile.mkdtemp())) if callbacks else []
        self.fed = self.feed.kind
        if self.feed.feeder is not None:
            self.queued_batches = self.feed.feeder.queue(self.feed.workers)

    def rewind(self) -> bool:
        """Give a script's model, which is there once, the weights that it began with; False: they were not kept."""
        if self.origin is None:
            return False
        self.model.set_weights(self.origin)
        for slot in self._slots:  # its optimizer forgets
            if slot.name != "learning_rate":
                slot.assign(np.zeros(slot.shape, slot.dtype))
        return True

    def build_again(self, clears: bool, fits: bool = False) -> None:
        """Build the scenario's model as a user would, and train it for a short epoch where it is to be."""
        if clears:
            self.keras.backend.clear_session()
        model = self.scenario.build(self.feed.workload)
        make_weights(model, self.feed)
        if fits:
            model.fit(**self._arguments(self.feed.train[: FITTED_STEPS * self.feed.batch]), verbose=0)

    def _arguments(self, rows: Rows) -> dict[str, Any]:
        """Return what `fit` and `evaluate` take for these rows: arrays and a batch size, or the workload's pipeline."""
        batch, feed = self.feed.batch, self.feed.workload.feed
        if feed is not None:
            dataset = feed(rows.x, rows.y, batch)
            self.queued_batches = queued_batches(dataset)
            return {"x": dataset}
        weights = {} if rows.weights is None else {"sample_weight": rows.weights}
        targets = {} if rows.y is None else {"y": rows.y}
        return {"x": mapped(_fed, rows.x), **targets, "batch_size": batch, **weights}

    def fit(
        self, rows: Fed, hooks: Hooks | None = None, epochs: int = 1, shuffle: bool = True, whole: bool = False
    ) -> Logs:
        """Train as a user does, without a progress bar; shuffled, as Keras does by default."""
        if self.feed.loop is not None:
            return self._go_on(self.feed.loop, hooks, epochs)
        arguments = self._given(rows, shuffle and self.feed.shuffle) | self._besides(hooks, whole)
        try:
            logs: Logs = self.model.fit(**arguments, verbose=0, epochs=epochs).history
        except ValueError as error:
            if NO_LOSS not in str(error):
                raise
            raise ScenarioError(*NOT_EVALUATED) from error
        if self.feed.is_of_script and "loss" not in logs:  # of a training step of its own
            logs = {**logs, "loss": next(iter(logs.values()), [0.0] * epochs)}
        return logs

    def _given(self, rows: Fed, shuffle: bool) -> dict[str, Any]:
        """Return what `fit` is given for its batches."""
        if not isinstance(rows, Rows):
            return {**rows, "shuffle": shuffle}
        if shuffle and self.feed.feeder is not None:
            return {"x": self.made_feed(rows), "shuffle": False}  # it shuffles by itself
        weights = {} if self.feed.class_weight is None else {"class_weight": dict(self.feed.class_weight)}
        return {**self._arguments(rows), **weights, "shuffle": shuffle}

    def epochs(self, rows: Rows) -> Callable[[], Iterator[Any]] | None:
        if self.feed.stream is not None or self.feed.loop is not None:
            return None
        try:
            adapter = private.ADAPTER.find()(**self._given(rows, self.feed.shuffle))
        except private.LostNameError:
            return None
        batches = getattr(adapter, self.backend.ITERATOR)

        def epoch() -> Iterator[Any]:
            adapter.on_epoch_begin()
            yield from batches()
            adapter.on_epoch_end()

        return epoch

    def made_feed(self, rows: Rows) -> Any:
        """Return batches that the feed makes of these rows in place of arrays, from disk where they are kept there."""
        feed, parts = self.feed, self.feed.step(rows)
        assert feed.feeder is not None
        if rows.items is not None:
            parts = (rows.items, *parts[1:])
        source = feed.feeder.make(parts, feed.batch, feed.workers, None if rows.items is None else feed.store)
        self.fed = stream_of(source, None).kind
        self.fed_by = getattr(source, "num_workers", getattr(source, "workers", self.feed.workers))
        return source

    def _go_on(self, loop: Loop, hooks: Hooks | None, steps: int) -> Logs:
        """Let the script's own loop go on for so many steps, or until it is stopped."""
        result = loop.run(hooks, steps if steps == 1 else UNLIMITED)
        self.wait()
        self.feed = dataclasses.replace(self.feed, digest=loop.digest)
        return {"loss": [loss_of(result) if self.scenario.trains else 0.0]}

    def _besides(self, hooks: Hooks | None, whole: bool) -> dict[str, Any]:
        hooked = self.keras.callbacks.LambdaCallback
        besides: dict[str, Any] = {"callbacks": [*self.callbacks] if whole else []}
        rows, feed = self.feed.validation, self.feed.workload.feed
        if whole and len(rows):
            besides["validation_data"] = feed(rows.x, rows.y, self.feed.batch) if feed else self.feed.one_batch(rows)
        if whole and self.feed.workload.test_each_epoch:
            evaluate = partial(self.model.evaluate, **self._arguments(self.feed.test), verbose=0)
            besides["callbacks"].append(hooked(on_epoch_end=lambda epoch, logs: evaluate()))
        if hooks is not None:
            # Its own methods, so that a step costs one call; and those alone that do something.
            does = [name for name in HOOKS if getattr(type(hooks), name) is not getattr(Hooks, name)]
            besides["callbacks"].append(hooked(**{name: getattr(hooks, name) for name in does}))
        return besides

    def stop(self) -> None:
        if self.feed.loop is not None:
            self.feed.loop.stop()
        self.model.stop_training = True

    def evaluate(self, rows: Rows) -> float:
        """Raise ScenarioError where there is no loss, as of an own ``train_step`` that was compiled without one."""
        try:
            logs = self.model.evaluate(**self._arguments(rows), verbose=0, return_dict=True)
        except ValueError as error:
            if NO_LOSS not in str(error):
                raise
            raise ScenarioError(*NOT_EVALUATED) from error
        if "loss" not in logs:
            raise ScenarioError("the model's own test_step returns no loss", 'have it return {"loss": ...}')
        computes = "test_step" in self.overrides or "compute_loss" in self.overrides
        if logs["loss"] == 0 and getattr(self.model, "loss", "") is None and not computes:  # in place of NO_LOSS on JAX
            raise ScenarioError(*NOT_EVALUATED)
        return float(logs["loss"])

    def takes_batches(self) -> bool:
        """With several steps in an execution, Keras' nightly of October 2026 cuts the batch into samples on JAX."""
        if self.steps_per_execution == 1:
            return True
        x = self.feed.inputs(self.feed.first_batch)
        expected = [array.shape for _, array in leaves(self.forward(self.place(x)))]
        try:
            is_batch = [array.shape for _, array in leaves(self.predict_on_batch(x))] == expected
        except Exception:  # whatever the model says of samples that are no batch
            is_batch = False
        if not is_batch:
            which = f"Keras {self.keras.__version__} on {self.request.backend}"
            private.note(f"{which} has no predict_on_batch with several steps in an execution: it is left out")
        return is_batch

    def bare_steps(self, batch: Any) -> Bare | None:
        return self.backend.bare_steps(self.model, batch)

    def peak_flops(self) -> float:
        """In the dtype and the rounding mode that are in force; at each size the quickest of several counts."""
        ops, dtype = self.keras.ops, self.keras.config.dtype_policy().compute_dtype

        def product_s(a: Any) -> float:
            start_ns = time.perf_counter_ns()
            product = ops.matmul(a, a)
            self.to_numpy(product[0, 0])  # waits for it
            return (time.perf_counter_ns() - start_ns) / 1e9

        best = 0.0
        for side in PEAK_SIDES:
            a = ops.full((side, side), 1.0 / side, dtype)  # made on the device, whose memory it is to take
            taken_s = min(product_s(a) for _ in range(PEAK_REPEATS))
            best = max(best, 2 * side**3 / taken_s)
            if taken_s >= PEAK_PRODUCT_S:
                break
        return best

    def shuffle_ns(self, rows: int, few: int, batch: int) -> int | None:
        """It is drawn before an epoch's first batch, by what `fit` uses; the quickest draws count."""
        if self.feed.workload.feed is not None or self.feed.workers:  # these start with each `fit`
            return None
        try:
            adapter_of = private.ADAPTER.find()
        except private.LostNameError:
            return None

        def epochs_of(x: Any) -> Callable[[], Iterable[Any]]:
            if self.feed.feeder is None:
                adapter = adapter_of(x, batch_size=batch, shuffle=True)
                return partial(getattr(adapter, self.backend.ITERATOR))
            for _ in epoch_of(source := self.made_feed(Rows(x))):
                pass  # the first epoch makes what is made once
            return partial(epoch_of, source)

        def begin_ns(count: int) -> int:
            x: Any = np.zeros((count, 1), np.uint8)  # of one byte, so that only their order costs
            epoch = epochs_of(x)
            began_ns = time.perf_counter_ns()
            next(iter(epoch()))
            return time.perf_counter_ns() - began_ns

        begin_ns(few)  # the first also loads what it needs
        both = [(begin_ns(rows), begin_ns(few)) for _ in range(SHUFFLES)]
        return max(0, min(many for many, _ in both) - min(fewer for _, fewer in both))

    def predictor(self, batch: int) -> Call:
        return partial(self.model.predict, batch_size=batch, verbose=0)

    def caller(self, compiled: bool) -> Call | None:
        return self.backend.caller(self.model, compiled)

    def forward(self, x: Any) -> Any:
        return self.backend.forward(self.model, x)

    @property
    def _slots(self) -> list[Any]:
        return getattr(getattr(self.model, "optimizer", None), "variables", [])

    def arrays(self) -> tuple[Iterable[Any], Iterable[Any]]:
        def floats(variables: list[Any]) -> list[Any]:
            return [variable.value for variable in variables if "float" in str(variable.dtype)]

        return floats(self.model.weights), floats(self._slots)

    def trained_weights(self) -> list[tuple[str, Any]]:
        trained = self.model.trainable_variables
        return [(variable.path, variable.value) for variable in trained if "float" in str(variable.dtype)]

    def updates(self) -> int | None:
        iterations = getattr(getattr(self.model, "optimizer", None), "iterations", None)
        return None if iterations is None else int(self.to_numpy(iterations))

    def vanishing(self) -> float | None:
        """None, too, where the device or the backend has taken such numbers for zero all along.

        A weight of a unit that no longer reacts has the gradient zero. Its first moment, in float32, becomes a tenth
        smaller with each step: below 1e-20 after about 400, and where such numbers are kept subnormal after about 800.
        """
        if not (self.backend.flush_subnormals and self.request.device.platform == CPU):
            return None
        of_path = {moment.path: moment for moment in self._slots if moment.dtype == "float32"}
        gone = total = 0
        for path in [path for path in of_path if path.endswith(MOMENTUM)]:
            first = np.abs(self.to_numpy(of_path[path]))
            second = of_path.get(path.removesuffix(MOMENTUM) + VELOCITY)  # shrinks more slowly: it tells what has lived
            lived = first if second is None else self.to_numpy(second)
            gone += int(np.count_nonzero((first < VANISHING) & (lived != 0)))
            total += first.size
        return gone / total if total else None
