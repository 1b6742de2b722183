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
from tests.real import trials

pytestmark = pytest.mark.real


@pytest.mark.traced  # all of the worker, on the backend that it slows down least
def test_executions_of_several_steps_are_whole_in_a_slice_compiled_once_and_taken_apart(faults: Path) -> None:
    """On JAX; test_blocks.py has them on TensorFlow."""
    protocol = dataclasses.replace(trials.SHORTEST, parts=True)
    outcome = trials.run(faults / "fine.py", "jax", Options(steps_per_execution=2), protocol=protocol)
    trials.ran_two_steps_at_once(outcome)
    trials.was_taken_apart(outcome)


def test_torch_counts_the_products_of_a_training_step() -> None:
    file = catalog.builtin_folder() / "mnist_dense.py"
    operations = questions.count(CountRequest(str(file), content_hash(file), "default"), sys.executable)
    forward = 784 * 300 + 300 * 100 + 100 * 10
    backward = 2 * forward - 784 * 300  # by weights and by inputs, but for the pictures
    assert operations == 2 * (forward + backward)
