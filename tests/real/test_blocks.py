"""Three backends side by side, in real children."""

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


def stages(found: Measurement) -> list[Samples]:
    predicted = [latency.slices for latency in found.prediction]
    assert found.throughput is not None
    return [made.trained(found).slices, made.trained(found).epochs, *predicted, found.throughput.slices]


def test_every_stage_is_measured_in_turn(faults: Path) -> None:
    protocol = dataclasses.replace(trials.SHORTEST, min_cycles=CYCLES)
    entrants = [trials.member(faults / "fine.py", backend, protocol=protocol) for backend in backends.names()]
    outcomes = trials.together(entrants, alone=False)
    assert not any(outcome.started_alone for outcome in outcomes)
    found = [trials.measured(outcome) for outcome in outcomes]
    for columns in zip(*map(stages, found), strict=True):
        took_turns(columns)
    assert all(len(made.trained(one).slices) >= CYCLES for one in found)
    assert all(phase.waited_ns > 0 for outcome in outcomes for phase in outcome.phases if phase.name == "train")


def took_turns(columns: Sequence[Samples]) -> None:
    """Check that in each cycle each column has one slice, at a place of its own."""
    cycles = list(zip(*columns, strict=True))
    assert len(cycles) >= LEAST_CYCLES
    for number, cycle in enumerate(cycles):
        assert {slice_.cycle for slice_ in cycle} == {number}
        assert sorted(slice_.position or 0 for slice_ in cycle) == list(range(len(columns)))
