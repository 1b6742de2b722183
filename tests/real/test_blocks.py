"""Three backends side by side, in real children, with all that a trial can measure, and what a step is made of."""

import dataclasses
import sys
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.plan import catalog
from kerasbench.processes import questions
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.protocol.measurement import Measurement, Samples
from kerasbench.protocol.requests import CountRequest
from kerasbench.protocol.stages import EPOCH, PARTS_OF_STEP, PREDICTIONS, TRAIN
from kerasbench.runs.turns import LEAST_CYCLES
from kerasbench.scenario import file_hash
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

CYCLES = 6


def stages(measurement: Measurement) -> list[Samples]:
    return [measurement.samples[stage] for stage in (TRAIN, EPOCH, *PREDICTIONS, *PARTS_OF_STEP)]


def was_taken_apart(outcome: Outcome) -> None:
    """Check that a step was taken apart when all else had been measured."""
    measurement = trials.measured(outcome)
    for slices in (measurement.samples[stage] for stage in PARTS_OF_STEP):
        assert len(slices) >= trials.SHORTEST.min_cycles  # more, where something else disturbed them
        assert [slice_.cycle for slice_ in slices] == list(range(len(slices)))
        assert {slice_.count for slice_ in slices} == {made.trained(measurement).steps_per_slice}
    assert made.known(measurement.peak_flops) > 0
    # Its large products come after the peaks of memory have been read.
    assert [phase.name for phase in outcome.phases][-4:] == ["finish", "parts", "facts", "exit"]


def ran_two_steps_at_once(outcome: Outcome) -> None:
    measurement = trials.measured(outcome)
    assert measurement.resolved.steps_per_execution == 2
    assert {slice_.count % 2 for slice_ in measurement.samples[TRAIN]} == {0}
    assert made.known(measurement.compiler).while_measured == 0


def test_every_stage_is_measured_in_turn_and_a_step_is_taken_apart_last(faults: Path) -> None:
    plan = dataclasses.replace(trials.TAKEN_APART, min_cycles=CYCLES)
    options = {"tensorflow": Options(steps_per_execution=2)}
    entrants = [
        trials.member(faults / "fine.py", backend, plan=plan, options=options.get(backend, DEFAULT))
        for backend in backends.built_in()
    ]
    outcomes = trials.together(entrants, at_once=len(entrants))
    ran_two_steps_at_once(outcomes[backends.built_in().index("tensorflow")])
    assert not any(outcome.started_alone for outcome in outcomes)
    measurements = [trials.measured(outcome) for outcome in outcomes]
    for columns in zip(*map(stages, measurements), strict=True):
        cycles = list(zip(*columns, strict=True))
        assert len(cycles) >= LEAST_CYCLES
        for number, cycle in enumerate(cycles):  # in each, each column has one slice, at a place of its own
            assert {slice_.cycle for slice_ in cycle} == {number}
            assert sorted(slice_.position or 0 for slice_ in cycle) == list(range(len(columns)))
    for outcome, measurement in zip(outcomes, measurements, strict=True):
        assert len(measurement.samples[TRAIN]) >= CYCLES
        assert all(phase.waited_ns > 0 for phase in outcome.phases if phase.name == "train")
        was_taken_apart(outcome)


@pytest.mark.traced  # all of the worker, on the backend that it slows down least
def test_executions_of_several_steps_are_whole_in_a_slice_compiled_once_and_taken_apart(faults: Path) -> None:
    """On JAX; above they are on TensorFlow."""
    outcome = trials.run(faults / "fine.py", "jax", Options(steps_per_execution=2), plan=trials.TAKEN_APART)
    ran_two_steps_at_once(outcome)
    was_taken_apart(outcome)


def test_torch_counts_the_products_of_a_training_step() -> None:
    file = catalog.builtin_folder() / "mnist_dense.py"
    operations = questions.count(CountRequest(str(file), file_hash(file), "default"), sys.executable)
    forward = 784 * 300 + 300 * 100 + 100 * 10
    backward = 2 * forward - 784 * 300  # by weights and by inputs, but for the pictures
    assert operations == 2 * (forward + backward)
