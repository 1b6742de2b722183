"""Two versions of Keras in one block, one of them really installed on top of the other's environment."""

import sys
from pathlib import Path

import pytest

from kerasbench.environments import sides
from kerasbench.protocol.columns import Column, Options
from tests.real import trials

pytestmark = pytest.mark.real

BACKEND, LABELS = "jax", ("other", "own")


def test_a_version_on_top_is_measured_beside_the_one_below_and_computes_the_same(faults: Path) -> None:
    other = sides.overlay(sys.executable, [trials.OTHER_KERAS], print)
    options = [Options(environment=label) for label in LABELS]
    entrants = [
        trials.member(faults / "fine.py", BACKEND, python, options=chosen)
        for python, chosen in zip((other, sys.executable), options, strict=True)
    ]
    measured = [trials.measured(outcome) for outcome in trials.together(entrants)]
    of_other, of_own = (measurement.resolved.versions for measurement in measured)
    assert f"keras=={of_other['keras']}" == trials.OTHER_KERAS != f"keras=={of_own['keras']}"
    assert of_other[BACKEND] == of_own[BACKEND]

    columns = [Column(BACKEND, "cpu", chosen) for chosen in options]
    assert trials.disagreements(dict(zip(columns, measured, strict=True))) == {}
