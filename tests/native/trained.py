"""A linear classifier, trained by a loop of kerasbench/native in a child, and by hand in NumPy.

``python -m tests.native.trained jax`` writes what the loop did with each optimizer, as JSON: the parent imports no
framework.
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerasbench.native import Start
from kerasbench.scenario import Workload

ROOT = Path(__file__).parents[2]
OPTIMIZERS = ("sgd", "adam")
SAMPLES, INPUTS, CLASSES = 48, 5, 3
BATCH, EPOCHS, RATE = 16, 2, 0.05
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7
Arrays = Any  # NumPy's, which mypy passes over here


def rows() -> tuple[Arrays, Arrays]:
    rng = np.random.default_rng(1)
    return rng.random((SAMPLES, INPUTS), np.float32), rng.integers(0, CLASSES, SAMPLES, np.int32)


def initial() -> list[Arrays]:
    rng = np.random.default_rng(2)
    return [rng.standard_normal((INPUTS, CLASSES)).astype(np.float32), np.zeros(CLASSES, np.float32)]


def loop(name: str, optimizer: str) -> Any:
    """Return the framework's loop over the classifier, as a baseline makes it."""
    module = importlib.import_module(f"kerasbench.native.{name}")
    start = Start(initial(), Workload(train=SAMPLES, batch=BATCH), "cpu", False)
    model: Any = lambda weights, x: x @ weights[0] + weights[1]  # noqa: E731 (torch has another)
    if name == "torch":
        model = importlib.import_module("torch").nn.Linear(INPUTS, CLASSES)
        module.copy_weights(model, start.weights)
    return module.Loop(start, model, getattr(module, optimizer)(RATE), accuracy=True)


def by_loop(name: str, optimizer: str) -> dict[str, Any]:
    """Train without shuffling; return logs, weights and outputs, and how a pass ends that is stopped."""
    trained, (x, y) = loop(name, optimizer), rows()
    placed = trained.place(x, y)
    logs = [trained.train_epoch(*placed, BATCH, False, lambda step: False) for _ in range(EPOCHS)]
    weights = list(map(np.asarray, trained.weights()))
    learnt = {
        "logs": logs,
        "weights": [(weight.T if name == "torch" else weight).tolist() for weight in weights],
        "evaluated": trained.evaluate(*placed, BATCH),
        "predicted": trained.predict(x, BATCH).tolist(),
        "slots": len(trained.slots()),
    }
    asked: list[int] = []
    trained.train_epoch(*placed, BATCH, True, lambda step: bool(asked.append(step)) or step == 1)  # type: ignore
    return learnt | {"asked": asked}


def traces(name: str) -> list[int]:
    """Return how often the model was called for being compiled, after a prediction and after a compiled call."""
    called: list[int] = []

    def model(weights: Any, x: Any) -> Any:
        called.append(1)
        return x @ weights[0] + weights[1]

    module = importlib.import_module(f"kerasbench.native.{name}")
    start = Start(initial(), Workload(train=SAMPLES, batch=BATCH), "cpu", True)
    trained, (x, _) = module.Loop(start, model, module.sgd(RATE), accuracy=True), rows()
    trained.forward(x)
    after = [len(called)]
    compiled = trained.caller(True)
    for _ in range(2):
        compiled(x)
        after.append(len(called))
    return after


def check(name: str) -> dict[str, int]:
    """Assert that loops in a child compute what is computed by hand; return how many slots each optimizer has."""
    command = [sys.executable, "-m", "tests.native.trained", name]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    for optimizer in OPTIMIZERS:
        agrees(told[optimizer], by_hand(optimizer))
    if name != "torch":  # whose compiler tells nobody; its function is made anew as well
        assert told["traces"] == [1, 2, 2]  # the first compiled call compiles, whatever has predicted before
    return {optimizer: told[optimizer]["slots"] for optimizer in OPTIMIZERS}


def agrees(learnt: dict[str, Any], expected: dict[str, Any]) -> None:
    for logs, wanted in zip(learnt["logs"], expected["logs"], strict=True):
        assert logs == pytest.approx(wanted, rel=1e-4)
    assert learnt["evaluated"] == pytest.approx(expected["evaluated"], rel=1e-4)
    kernel, bias = expected["weights"]
    for weight, wanted in zip(learnt["weights"], (kernel, bias), strict=True):
        np.testing.assert_allclose(weight, wanted, atol=1e-4)
    np.testing.assert_allclose(learnt["predicted"], rows()[0] @ kernel + bias, atol=1e-4)
    assert learnt["asked"] == [0, 1]  # whether to stop is asked before each step, and no step follows a yes


def by_hand(optimizer: str) -> dict[str, Any]:
    (x, y), weights = rows(), initial()
    moments = [[np.zeros_like(weight), np.zeros_like(weight)] for weight in weights]
    logs, step = [], 0
    for _ in range(EPOCHS):
        losses = right = 0.0
        for begin in range(0, SAMPLES, BATCH):
            some_x, some_y = x[begin : begin + BATCH], y[begin : begin + BATCH]
            chances = _chances(some_x, weights)
            losses += -np.log(chances[range(BATCH), some_y]).sum()
            right += (chances.argmax(1) == some_y).sum()
            wrong = (chances - np.eye(CLASSES)[some_y]) / BATCH
            step += 1
            for weight, grad, moment in zip(weights, (some_x.T @ wrong, wrong.sum(0)), moments, strict=True):
                weight[...] -= _change(optimizer, grad, moment, step).astype(np.float32)
        logs.append({"loss": losses / SAMPLES, "accuracy": right / SAMPLES})
    chances = _chances(x, weights)
    loss = float(-np.log(chances[range(SAMPLES), y]).mean())
    accuracy = float((chances.argmax(1) == y).mean())
    return {"logs": logs, "weights": weights, "evaluated": {"loss": loss, "accuracy": accuracy}}


def _chances(x: Arrays, weights: list[Arrays]) -> Arrays:
    exponents = np.exp(x @ weights[0] + weights[1])
    return exponents / exponents.sum(1, keepdims=True)


def _change(optimizer: str, grad: Arrays, moment: list[Arrays], step: int) -> Arrays:
    """Adam as Kingma and Ba have it at the end of section 2, with epsilon beside the uncorrected root."""
    if optimizer == "sgd":
        return RATE * grad
    moment[0] = BETA_1 * moment[0] + (1 - BETA_1) * grad
    moment[1] = BETA_2 * moment[1] + (1 - BETA_2) * grad**2
    return RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step) * moment[0] / (np.sqrt(moment[1]) + EPSILON)


if __name__ == "__main__":
    said: dict[str, Any] = {optimizer: by_loop(sys.argv[1], optimizer) for optimizer in OPTIMIZERS}
    print(json.dumps(said | ({} if sys.argv[1] == "torch" else {"traces": traces(sys.argv[1])})))
