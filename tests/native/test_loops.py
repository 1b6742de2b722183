"""A linear classifier, trained by a loop of kerasbench/native in a child, and by hand in NumPy.

``python -m tests.native.test_loops jax`` writes what the loop did with each optimizer, as JSON: the parent imports no
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

pytestmark = [pytest.mark.real, pytest.mark.traced]

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


def by_loop(name: str, optimizer: str) -> dict[str, Any]:
    """Train without shuffling; return what was learnt, and when a pass that is stopped was asked whether to stop.

    ``traces``: how often a model was called to be compiled, after a prediction and after each of two compiled calls.
    """
    traces: list[int] = []

    def model(weights: Any, x: Any) -> Any:
        traces.append(1)
        return x @ weights[0] + weights[1]

    module = importlib.import_module(f"kerasbench.native.{name}")
    start = Start(initial(), Workload(train=SAMPLES, batch=BATCH), "cpu", False)
    whole: Any = model
    if name == "torch":
        whole = importlib.import_module("torch").nn.Linear(INPUTS, CLASSES)
        module.copy_weights(whole, start.weights)
    loop, (x, y) = module.Loop(start, whole, getattr(module, optimizer)(RATE), accuracy=True), rows()
    placed = loop.place(x, y)
    learnt: dict[str, Any] = {
        "logs": [loop.train_epoch(*placed, BATCH, False, lambda step: False) for _ in range(EPOCHS)]
    }
    weights = list(map(np.asarray, loop.weights()))
    learnt |= {
        "weights": [(weight.T if name == "torch" else weight).tolist() for weight in weights],
        "evaluated": loop.evaluate(*placed, BATCH),
        "predicted": loop.predict(x, BATCH).tolist(),
        "slots": len(loop.slots()),
        "traces": [],
    }
    asked: list[int] = []
    loop.train_epoch(*placed, BATCH, True, lambda step: bool(asked.append(step)) or step == 1)  # type: ignore
    if name != "torch":  # whose compiler tells nobody; its function is made anew as well
        traces.clear()
        start = Start(initial(), start.workload, "cpu", True)
        compiled = module.Loop(start, model, module.sgd(RATE), accuracy=True)
        for call in (compiled.forward, *[compiled.caller(True)] * 2):
            call(x)
            learnt["traces"].append(len(traces))
    return learnt | {"asked": asked}


@pytest.mark.parametrize(
    ("name", "adam_slots"),  # two moments of each of two weights, and ...
    [
        ("jax", 5),  # ... the step
        ("tensorflow", 6),  # ... two powers of beta
        ("torch", 6),  # ... a step of each
    ],
)
def test_it_trains_as_is_computed_by_hand(name: str, adam_slots: int) -> None:
    command = [sys.executable, "-m", "tests.native.test_loops", name]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    for optimizer, slots in (("sgd", 0), ("adam", adam_slots)):
        learnt, (logs, evaluated, (kernel, bias)) = told[optimizer], by_hand(optimizer)
        for of_loop, wanted in zip([*learnt["logs"], learnt["evaluated"]], [*logs, evaluated], strict=True):
            assert of_loop == pytest.approx(wanted, rel=1e-4)
        for weight, wanted in zip(learnt["weights"], (kernel, bias), strict=True):
            np.testing.assert_allclose(weight, wanted, atol=1e-4)
        np.testing.assert_allclose(learnt["predicted"], rows()[0] @ kernel + bias, atol=1e-4)
        assert learnt["asked"] == [0, 1]  # whether to stop is asked before each step, and no step follows a yes
        assert learnt["slots"] == slots
        # The first compiled call compiles, whatever has predicted before.
        assert learnt["traces"] == ([] if name == "torch" else [1, 2, 2])


def by_hand(optimizer: str) -> tuple[list[dict[str, float]], dict[str, float], list[Arrays]]:
    """Return the logs of each epoch, those of an evaluation, and the weights.

    Adam as Kingma and Ba have it at the end of section 2, with epsilon beside the uncorrected root.
    """
    (x, y), weights = rows(), initial()
    moments = [[np.zeros_like(weight), np.zeros_like(weight)] for weight in weights]
    logs, step = [], 0
    for _ in range(EPOCHS):
        sums = np.zeros(2)
        for begin in range(0, SAMPLES, BATCH):
            some_x, some_y = x[begin : begin + BATCH], y[begin : begin + BATCH]
            chances, of_batch = judged(some_x, some_y, weights)
            sums += of_batch
            wrong = (chances - np.eye(CLASSES)[some_y]) / BATCH
            step += 1
            for weight, grad, moment in zip(weights, (some_x.T @ wrong, wrong.sum(0)), moments, strict=True):
                change = RATE * grad
                if optimizer == "adam":
                    moment[0] = BETA_1 * moment[0] + (1 - BETA_1) * grad
                    moment[1] = BETA_2 * moment[1] + (1 - BETA_2) * grad**2
                    rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
                    change = rate * moment[0] / (np.sqrt(moment[1]) + EPSILON)
                weight[...] -= change.astype(np.float32)
        logs.append(dict(zip(("loss", "accuracy"), sums / SAMPLES, strict=True)))
    _, sums = judged(x, y, weights)
    return logs, dict(zip(("loss", "accuracy"), sums / SAMPLES, strict=True)), weights


def judged(x: Arrays, y: Arrays, weights: list[Arrays]) -> tuple[Arrays, Arrays]:
    """Return the chances of each class; and the sum of the losses, and how many rows are right."""
    exponents = np.exp(x @ weights[0] + weights[1])
    chances = exponents / exponents.sum(1, keepdims=True)
    return chances, np.array([-np.log(chances[range(len(y)), y]).sum(), (chances.argmax(1) == y).sum()])


if __name__ == "__main__":
    print(json.dumps({optimizer: by_loop(sys.argv[1], optimizer) for optimizer in ("sgd", "adam")}))
