"""What a step is made of, where it is executed with another, and how many operations it takes, in real children."""

import dataclasses
import sys
from pathlib import Path

import pytest

from kerasbench.plan import catalog
from kerasbench.processes import questions
from kerasbench.protocol.columns import Options
from kerasbench.protocol.requests import CountRequest
from kerasbench.scenario import content_hash
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_executions_of_several_steps_are_whole_in_a_slice_compiled_once_and_taken_apart(
    faults: Path, backend: str
) -> None:
    protocol = dataclasses.replace(trials.SHORTEST, parts=True)
    outcome = trials.run(faults / "fine.py", backend, Options(steps_per_execution=2), protocol=protocol)
    trials.was_taken_apart(outcome)
    measurement = trials.measured(outcome)
    assert measurement.resolved.steps_per_execution == 2
    assert {slice_.count % 2 for slice_ in made.trained(measurement).slices} == {0}
    assert made.known(measurement.compiler).while_measured == 0


def test_torch_counts_the_products_of_a_training_step() -> None:
    file = catalog.builtin_folder() / "mnist_dense.py"
    operations = questions.count(CountRequest(str(file), content_hash(file), "default"), sys.executable)
    forward = 784 * 300 + 300 * 100 + 100 * 10
    backward = 2 * forward - 784 * 300  # by weights and by inputs, but for the pictures
    assert operations == 2 * (forward + backward)
