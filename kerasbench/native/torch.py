"""Plain torch: a module, an optimizer of torch.optim, and a loop over rows that lie on the device."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from kerasbench.native import BaseLoop, Call, Logs, Start, Stops

MakeOptimizer = Callable[[Any], Any]  # parameters -> one of torch.optim


def copy_weights(model: Any, weights: list[Any]) -> None:
    """Copy Keras' weights into a module's parameters: a kernel has its outputs last in Keras, and first in torch."""
    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            order = (weight.ndim - 1, weight.ndim - 2, *range(weight.ndim - 2)) if weight.ndim > 1 else (0,)
            parameter.copy_(torch.from_numpy(weight.transpose(order).copy()))


def sgd(rate: float) -> MakeOptimizer:
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, fused=True)


def adam(rate: float, epsilon: float = 1e-7) -> MakeOptimizer:
    """Adam with epsilon where Keras has it: added to the root of the second moment before its correction for the start.

    Without this, the first steps of an aggressive rate go elsewhere. It costs a microsecond a step.
    """

    def make(parameters: Any) -> Any:
        steps = itertools.count(1)

        def place_epsilon(optimizer: Any, *given: Any) -> None:
            (group,) = optimizer.param_groups
            group["eps"] = epsilon / math.sqrt(1 - group["betas"][1] ** next(steps))

        made = torch.optim.Adam(parameters, lr=rate, eps=epsilon, fused=True)
        made.register_step_pre_hook(place_epsilon)
        return made

    return make


class Loop(BaseLoop):
    """Train a module that returns logits by cross entropy; ``outputs`` turns them into predictions."""

    jit = False

    def __init__(
        self, start: Start, model: Any, optimizer: MakeOptimizer, accuracy: bool, outputs: Call = lambda logits: logits
    ) -> None:
        self._device = torch.device(start.place)
        self._model = model.to(self._device)
        self._optimizer = optimizer(self._model.parameters())
        self._outputs, self._accuracy, self._compiles = outputs, accuracy, start.jit

    def place(self, x: Any, y: Any) -> tuple[Any, Any]:
        return self._input(x), torch.from_numpy(y).to(self._device, torch.int64)

    def train_epoch(self, x: Any, y: Any, batch: int, shuffle: bool, stops: Stops) -> Logs:
        self._model.train()
        # One batch of all rows is the same in any order.
        order = torch.randperm(len(x), device=self._device) if shuffle and batch < len(x) else None
        totals = self._zeros()
        for step, begin in enumerate(range(0, len(x), batch)):
            if stops(step):
                break
            rows = slice(begin, begin + batch)
            some_x, some_y = (x[rows], y[rows]) if order is None else _gather(x, y, order[rows])
            loss, logits = self.compute_loss(some_x, some_y)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            self._count(totals, loss.detach(), logits.detach(), some_y)
        return self._logs(float(totals[0]), int(totals[1]), totals[2])

    def evaluate(self, x: Any, y: Any, batch: int) -> Logs:
        self._model.eval()
        totals = self._zeros()
        with torch.inference_mode():
            for some_x, some_y in zip(x.split(batch), y.split(batch), strict=True):
                self._count(totals, *self.compute_loss(some_x, some_y), some_y)
        return self._logs(float(totals[0]), int(totals[1]), totals[2])

    def compute_loss(self, x: Any, y: Any) -> tuple[Any, Any]:
        logits = self._model(x)
        return nn.functional.cross_entropy(logits.flatten(0, -2), y.flatten()), logits

    def forward(self, x: Any) -> Any:
        self._model.eval()
        with torch.inference_mode():
            return self._outputs(self._model(self._input(x)))

    def caller(self, compiled: bool) -> Call | None:
        if compiled and not self._compiles:
            return None
        self._model.eval()
        module = torch.compile(self._model) if compiled else self._model

        def call(x: Any) -> Any:
            with torch.inference_mode():
                outputs = self._outputs(module(x))
            if self._device.type == "mps":
                torch.zeros((), device="mps").cpu()  # as in backends/torch.py
            elif self._device.type != "cpu":
                torch.accelerator.synchronize()
            return outputs

        return call

    @staticmethod
    def fetch(outputs: Any) -> Any:
        return outputs.cpu().numpy()

    def weights(self) -> list[Any]:
        return [parameter.detach() for parameter in self._model.parameters()]

    def slots(self) -> list[Any]:
        return [slot for state in self._optimizer.state.values() for slot in state.values() if torch.is_tensor(slot)]

    def _input(self, x: Any) -> Any:
        return torch.from_numpy(x).to(self._device)

    def _zeros(self) -> list[Any]:
        """Return the sum of losses, how many are right, and how many there were; the last is known on the host."""
        return [torch.zeros((), device=self._device), torch.zeros((), dtype=torch.int64, device=self._device), 0]

    def _count(self, totals: list[Any], loss: Any, logits: Any, y: Any) -> None:
        totals[0].add_(loss, alpha=len(y))
        if self._accuracy:
            totals[1].add_((logits.argmax(1) == y).sum())
        totals[2] += len(y)


def _gather(x: Any, y: Any, rows: Any) -> tuple[Any, Any]:
    return x.index_select(0, rows), y.index_select(0, rows)
