"""Operations as torch counts them, against the products of a model that can be counted by hand."""

import sys
from pathlib import Path

import pytest

from kerasbench.processes import questions
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import CountRequest
from kerasbench.scenario import content_hash

pytestmark = [pytest.mark.real, pytest.mark.traced]

INPUTS, HIDDEN, CLASSES = 20, 30, 10
SCENARIO = f"""
import keras

from kerasbench import Workload, Scenario


def build(workload):
    model = keras.Sequential(
        [keras.Input(({INPUTS},)), keras.layers.Dense({HIDDEN}, "relu"), keras.layers.Dense({CLASSES})]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def data(samples, rng):
    return rng.random((samples, {INPUTS}), "float32"), rng.integers(0, {CLASSES}, samples, "int32")


scenario = Scenario(build=build, data=data, workloads=(Workload(train=64, batch=32),))
"""


def count(folder: Path, file_hash: str = "") -> float | Failure:
    file = folder / "mine.py"
    file.write_text(SCENARIO)
    return questions.count(CountRequest(str(file), file_hash or content_hash(file), "default"), sys.executable)


def test_a_step_s_operations_are_those_of_its_products(tmp_path: Path) -> None:
    """There: x @ W in each layer. Back: each W's gradient, and each x's but the first's, for which nobody asks."""
    there = 2 * (INPUTS * HIDDEN + HIDDEN * CLASSES)
    back = there + 2 * HIDDEN * CLASSES
    found = count(tmp_path)
    assert not isinstance(found, Failure), found
    assert found == pytest.approx(there + back)


def test_a_file_that_has_changed_since_it_was_planned_is_not_counted(tmp_path: Path) -> None:
    found = count(tmp_path, "the hash that it had")
    assert isinstance(found, Failure)
    assert found.code is Code.INVALID and "changed" in found.cause
