"""What a step is made of, and how many operations it takes, in real children."""

import dataclasses
import sys
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.plan import catalog
from kerasbench.processes import questions
from kerasbench.protocol.columns import Options
from kerasbench.protocol.requests import CountRequest
from kerasbench.scenario import content_hash
from tests import made
from tests.real import trials

pytestmark = [pytest.mark.real, pytest.mark.traced]


@pytest.mark.parametrize(
    ("backend", "several"), [*((name, None) for name in backends.names()), ("tensorflow", 2), ("jax", 2)]
)
def test_a_step_is_taken_apart_when_all_else_is_measured(faults: Path, backend: str, several: int | None) -> None:
    protocol = dataclasses.replace(trials.SHORTEST, parts=True)
    options = Options(steps_per_execution=several)
    outcome = trials.run(faults / "fine.py", backend, options, protocol=protocol)
    training = made.trained(trials.measured(outcome))
    parts = training.parts
    assert parts is not None
    for slices in (parts.arrays, parts.ready, parts.bare):
        assert len(slices) >= protocol.min_cycles  # more, where something else disturbed them
        assert [slice_.cycle for slice_ in slices] == list(range(len(slices)))
        assert {slice_.count for slice_ in slices} == {training.steps_per_slice}
    assert parts.peak_flops > 0
    # Its large products come after the peaks of memory have been read.
    assert [phase.name for phase in outcome.phases][-3:] == ["finish", "parts", "exit"]


def test_torch_counts_the_products_of_a_training_step() -> None:
    file = catalog.builtin_folder() / "mnist_dense.py"
    found = questions.count(CountRequest(str(file), content_hash(file), "default"), sys.executable)
    forward = 784 * 300 + 300 * 100 + 100 * 10
    backward = 2 * forward - 784 * 300  # by weights and by inputs, but for the pictures
    assert found == 2 * (forward + backward)
