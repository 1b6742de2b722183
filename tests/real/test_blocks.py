"""Three backends side by side, in real children, with all that a trial can measure."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.protocol.measurement import Measurement, Samples
from kerasbench.runs.turns import LEAST_CYCLES
from tests import made
from tests.real import trials

pytestmark = [pytest.mark.real, pytest.mark.traced]

CYCLES = 6


def stages(measurement: Measurement) -> list[Samples]:
    training, throughput = made.trained(measurement), made.known(measurement.throughput)
    parts = made.known(training.parts)
    predicted = [latency.slices for latency in measurement.prediction]
    return [training.slices, training.epochs, *predicted, throughput.slices, parts.arrays, parts.ready, parts.bare]


def test_every_stage_is_measured_in_turn_and_a_step_is_taken_apart_last(faults: Path) -> None:
    protocol = dataclasses.replace(trials.SHORTEST, min_cycles=CYCLES, parts=True)
    entrants = [trials.member(faults / "fine.py", backend, protocol=protocol) for backend in backends.names()]
    outcomes = trials.together(entrants, alone=False)
    assert not any(outcome.started_alone for outcome in outcomes)
    measurements = [trials.measured(outcome) for outcome in outcomes]
    for columns in zip(*map(stages, measurements), strict=True):
        took_turns(columns)
    for outcome, measurement in zip(outcomes, measurements, strict=True):
        assert len(made.trained(measurement).slices) >= CYCLES
        assert all(phase.waited_ns > 0 for phase in outcome.phases if phase.name == "train")
        trials.was_taken_apart(outcome)


def took_turns(columns: Sequence[Samples]) -> None:
    """Check that in each cycle each column has one slice, at a place of its own."""
    cycles = list(zip(*columns, strict=True))
    assert len(cycles) >= LEAST_CYCLES
    for number, cycle in enumerate(cycles):
        assert {slice_.cycle for slice_ in cycle} == {number}
        assert sorted(slice_.position or 0 for slice_ in cycle) == list(range(len(columns)))
