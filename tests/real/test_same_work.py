"""That a backend which does less of the work is found, where the losses are the same; and what is no such fault."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.analysis.cases import summarize_case
from kerasbench.analysis.rows import judge_cases
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import ModelConfig
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

SAVE = """
import sys, keras, numpy as np
last, file = sys.argv[1:]
units, loss = {"softmax": (10, "sparse_categorical_crossentropy"), "sigmoid": (1, "binary_crossentropy")}[last]
model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(units, activation=last)])
model.compile("adam", loss)
model.set_weights([20 * np.random.default_rng(0).normal(size=(20, units)), np.zeros(units)])
model.save(file)
"""
FAULTS = Path(__file__).parents[1] / "faults" / "less_work.py"


def judged(**outcomes: Outcome) -> dict[Column, Failure]:
    measured = {backend: trials.measured(outcome) for backend, outcome in outcomes.items()}
    cases = {
        Column(backend, "cpu"): summarize_case([made.trial(backend=backend, found=measurement)])
        for backend, measurement in measured.items()
    }
    return judge_cases(cases)


@pytest.mark.parametrize(
    ("workload", "cause"),
    [
        ("cuts", r"dense/kernel .*stood still"),
        pytest.param("skips", "stood still", marks=pytest.mark.weekly),
        pytest.param("rests", "updates of the weights in", marks=pytest.mark.weekly),
    ],
)
def test_a_backend_that_does_less_has_no_number(workload: str, cause: str) -> None:
    outcomes = {backend: trials.run(FAULTS, backend, workload=workload) for backend in ("jax", "torch")}
    ((column, failure),) = judged(**outcomes).items()
    assert (column.backend, failure.code) == ("torch", Code.PARITY)
    assert re.search(cause, failure.cause)


def test_a_model_that_keeps_what_it_has_seen_has_no_number() -> None:
    failure = made.known(trials.run(FAULTS, "torch", workload="keeps").failure)
    assert failure.code is Code.INVALID and "inputs that it has not met" in failure.cause


@pytest.mark.weekly
@pytest.mark.parametrize("last", ["softmax", "sigmoid"])
def test_a_trained_classifier_that_is_sure_and_wrong_is_measured_on_all_backends(last: str, tmp_path: Path) -> None:
    file = tmp_path / f"{last}.keras"
    environment = os.environ | {"KERAS_BACKEND": "torch"}
    subprocess.run([sys.executable, "-c", SAVE, last, str(file)], env=environment, check=True)
    outcomes = {
        backend: trials.run(file, backend, model_config=ModelConfig()) for backend in ("jax", "tensorflow", "torch")
    }
    assert judged(**outcomes) == {}
    parities = {backend: made.known(trials.measured(outcome).parity) for backend, outcome in outcomes.items()}
    assert all(parity.outputs for parity in parities.values())
    assert [backend for backend, parity in parities.items() if not parity.losses] == ["tensorflow"]
