"""Plain TensorFlow: variables, one tf.function step that gathers its batch, an optimizer written out."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from kerasbench.native import BaseLoop, Call, Logs, Model, Optimizer, Start, Stops, batches, take

INDEX = "int64"  # TensorFlow keeps int32 in host memory, also where it computes on a GPU; so with the classes


def sgd(rate: float) -> Optimizer:
    def apply(grads: list[Any], slots: list[Any], variables: list[Any]) -> None:
        for variable, grad in zip(variables, grads, strict=True):
            variable.assign_sub(rate * grad)

    return Optimizer(lambda variables: [], apply)


def adam(rate: float, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7) -> Optimizer:
    """Kingma & Ba, ICLR 2015 (arXiv 1412.6980), by TensorFlow's fused kernel, which counts as Keras does."""

    def init(variables: list[Any]) -> list[Any]:
        moments = [tf.Variable(tf.zeros_like(variable)) for variable in [*variables, *variables]]
        return [*moments, tf.Variable(beta_1), tf.Variable(beta_2)]

    def apply(grads: list[Any], slots: list[Any], variables: list[Any]) -> None:
        *moments, power_1, power_2 = slots
        first, second = moments[: len(variables)], moments[len(variables) :]
        for variable, grad, m, v in zip(variables, grads, first, second, strict=True):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle, m=m.handle, v=v.handle, beta1_power=power_1, beta2_power=power_2, lr=rate,
                beta1=beta_1, beta2=beta_2, epsilon=epsilon, grad=tf.convert_to_tensor(grad),
            )  # fmt: skip
        power_1.assign(power_1 * beta_1)
        power_2.assign(power_2 * beta_2)

    return Optimizer(init, apply)


class Loop(BaseLoop):
    """Train ``model(variables, x)``, which returns logits, by cross entropy; ``outputs`` makes predictions of them."""

    def __init__(
        self, start: Start, model: Model, optimizer: Optimizer, accuracy: bool, outputs: Call = lambda logits: logits
    ) -> None:
        self.jit = start.jit
        self._model, self._optimizer, self._accuracy = model, optimizer, accuracy
        self._variables = [tf.Variable(weight) for weight in start.weights]
        self._slots = optimizer.init(self._variables)
        self._losses, self._right = tf.Variable(0.0), tf.Variable(0, dtype=tf.int64)
        self._train, self._test = self._compiled(self._train_step), self._compiled(self._test_step)
        self._eager = lambda x: outputs(model(self._variables, x))
        self._forward = self._compiled(self._eager)

    def place(self, x: Any, y: Any) -> tuple[Any, Any]:
        return tf.constant(x), tf.constant(y, tf.int64)

    def train_epoch(self, x: Any, y: Any, batch: int, shuffle: bool, stops: Stops) -> Logs:
        return self._pass(self._train, x, y, batches(len(x), batch, shuffle, INDEX), stops)

    def evaluate(self, x: Any, y: Any, batch: int) -> Logs:
        return self._pass(self._test, x, y, batches(len(x), batch, False, INDEX), lambda step: False)

    def compute_loss(self, x: Any, y: Any) -> tuple[Any, Any]:
        logits = self._model(self._variables, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        return tf.reduce_mean(losses), logits

    def forward(self, x: Any) -> Any:
        return self._forward(tf.constant(x))

    def caller(self, compiled: bool) -> Call | None:
        run = self._compiled(self._eager) if compiled else self._eager
        if not tf.config.list_logical_devices("GPU"):
            return run

        def call(x: Any) -> Any:
            outputs = run(x)
            tf.test.experimental.sync_devices()
            return outputs

        return call

    @staticmethod
    def fetch(outputs: Any) -> Any:
        return outputs.numpy()

    def weights(self) -> list[Any]:
        return list(self._variables)

    def slots(self) -> list[Any]:
        return list(self._slots)

    def _compiled(self, step: Any) -> Any:
        return tf.function(step, autograph=False, reduce_retracing=True, jit_compile=self.jit or None)

    def _pass(self, step: Any, x: Any, y: Any, rows_of: Iterable[Any], stops: Stops) -> Logs:
        self._losses.assign(0.0)
        self._right.assign(0)
        samples = 0
        for index, rows in enumerate(rows_of):
            if stops(index):
                break
            step(x, y, None if rows is None else tf.constant(rows))
            samples += len(x) if rows is None else len(rows)
        return self._logs(float(self._losses.numpy()), int(self._right.numpy()), samples)

    def _train_step(self, x: Any, y: Any, rows: Any) -> None:
        some_x, some_y = take(x, y, rows, tf.gather)
        with tf.GradientTape() as tape:
            loss, logits = self.compute_loss(some_x, some_y)
        self._optimizer.apply(tape.gradient(loss, self._variables), self._slots, self._variables)
        self._count(loss, logits, some_y)

    def _test_step(self, x: Any, y: Any, rows: Any) -> None:
        some_x, some_y = take(x, y, rows, tf.gather)
        self._count(*self.compute_loss(some_x, some_y), some_y)

    def _count(self, loss: Any, logits: Any, y: Any) -> None:
        self._losses.assign_add(loss * tf.cast(tf.shape(y)[0], tf.float32))
        if self._accuracy:
            right = tf.equal(tf.argmax(logits, 1, y.dtype), y)
            self._right.assign_add(tf.math.count_nonzero(right))
