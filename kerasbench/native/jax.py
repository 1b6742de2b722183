"""Plain JAX: a function of parameters, one jitted step that donates its state, an optimizer written out."""

from functools import partial
from operator import getitem
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kerasbench.native import BaseLoop, Call, Logs, Model, Optimizer, Start, Stops, batches, take

ZEROS = np.float32(0), np.int32(0)  # the sum of losses, and how many are right
INDEX = "int32"  # JAX's own; of int64 it would make int32 at each step


def sgd(rate: float) -> Optimizer:
    return Optimizer(
        lambda params: (), lambda grads, slots, params: (jax.tree.map(lambda p, g: p - rate * g, params, grads), slots)
    )


def adam(rate: float, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7) -> Optimizer:
    """Kingma & Ba, ICLR 2015 (arXiv 1412.6980), in the order of its section 2, as Keras does."""

    def init(params: Any) -> Any:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return zeros, jax.tree.map(jnp.zeros_like, params), jnp.zeros((), jnp.float32)

    def apply(grads: Any, slots: Any, params: Any) -> tuple[Any, Any]:
        first, second, step = slots
        step = step + 1
        first = jax.tree.map(lambda m, g: beta_1 * m + (1 - beta_1) * g, first, grads)
        second = jax.tree.map(lambda v, g: beta_2 * v + (1 - beta_2) * g * g, second, grads)
        scale = rate * jnp.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        params = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + epsilon), params, first, second)
        return params, (first, second, step)

    return Optimizer(init, apply)


def dense(x: Any, kernel: Any, bias: Any) -> Any:
    return x @ kernel + bias


class Loop(BaseLoop):
    """Train ``model(params, x)``, which returns logits, by cross entropy; ``outputs`` turns them into predictions."""

    jit = True

    def __init__(
        self, start: Start, model: Model, optimizer: Optimizer, accuracy: bool, outputs: Call = lambda logits: logits
    ) -> None:
        params = [jnp.asarray(weight) for weight in start.weights]
        self._model, self._optimizer, self._accuracy = model, optimizer, accuracy
        self._state = params, optimizer.init(params)
        self._train = jax.jit(self._train_step, donate_argnums=0)
        self._test = jax.jit(self._test_step)
        self._eager = lambda params, x: outputs(model(params, x))
        self._forward = jax.jit(self._eager)
        self._compiles = start.jit

    def place(self, x: Any, y: Any) -> tuple[Any, Any]:
        return jnp.asarray(x), jnp.asarray(y)

    def train_epoch(self, x: Any, y: Any, batch: int, shuffle: bool, stops: Stops) -> Logs:
        samples, totals = 0, ZEROS
        for step, rows in enumerate(batches(len(x), batch, shuffle, INDEX)):
            if stops(step):
                break
            self._state, totals = self._train(self._state, totals, x, y, rows)
            samples += len(x) if rows is None else len(rows)
        return self._logs(float(totals[0]), int(totals[1]), samples)

    def evaluate(self, x: Any, y: Any, batch: int) -> Logs:
        totals = ZEROS
        for rows in batches(len(x), batch, False, INDEX):
            totals = self._test(self._state[0], totals, x, y, rows)
        return self._logs(float(totals[0]), int(totals[1]), len(x))

    def compute_loss(self, x: Any, y: Any, params: Any) -> tuple[Any, Any]:
        logits = self._model(params, x)
        right = jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], axis=-1)
        return -jnp.mean(right), logits

    def forward(self, x: Any) -> Any:
        return self._forward(self._state[0], x)

    def caller(self, compiled: bool) -> Call | None:
        if compiled and not self._compiles:
            return None
        eager = self._eager
        # A function of its own: JAX would find the program of one that it has compiled before.
        call, params = jax.jit(partial(eager)) if compiled else eager, self._state[0]
        return lambda x: jax.block_until_ready(call(params, x))

    @staticmethod
    def fetch(outputs: Any) -> Any:
        return np.asarray(outputs)

    def weights(self) -> list[Any]:
        return list(jax.tree.leaves(self._state[0]))

    def slots(self) -> list[Any]:
        return list(jax.tree.leaves(self._state[1]))

    def _train_step(self, state: Any, totals: Any, x: Any, y: Any, rows: Any) -> tuple[Any, Any]:
        params, slots = state
        some_x, some_y = take(x, y, rows, getitem)
        (loss, logits), grads = jax.value_and_grad(lambda p: self.compute_loss(some_x, some_y, p), has_aux=True)(params)
        return self._optimizer.apply(grads, slots, params), self._count(totals, loss, logits, some_y)

    def _test_step(self, params: Any, totals: Any, x: Any, y: Any, rows: Any) -> Any:
        some_x, some_y = take(x, y, rows, getitem)
        return self._count(totals, *self.compute_loss(some_x, some_y, params), some_y)

    def _count(self, totals: Any, loss: Any, logits: Any, y: Any) -> Any:
        losses, right = totals
        return losses + loss * len(y), right + (jnp.sum(logits.argmax(1) == y) if self._accuracy else 0)
