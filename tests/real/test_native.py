"""A twin that is wrong is found. (That those of the built-in scenarios are right, test_scenarios says.)"""

from pathlib import Path

import pytest

from kerasbench.analysis import cases
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.messages import Code
from tests.real import trials

pytestmark = [pytest.mark.real, pytest.mark.traced]

TWIN = Options(native=True)
KERAS, NATIVE = Column("jax", "cpu"), Column("jax", "cpu", Options(native=True))


def test_a_twin_that_computes_something_else_is_a_parity_failure(faults: Path) -> None:
    file = faults / "learns_faster_without_keras.py"
    keras, hasty = (
        trials.measured(trials.run(file, "jax", options=one, protocol=trials.STEPS_ALONE)) for one in (Options(), TWIN)
    )
    found = cases.judge_parity({KERAS: ("cpu", keras), NATIVE: ("cpu", hasty)})
    assert {column: failure.code for column, failure in found.items()} == {NATIVE: Code.PARITY}
    assert found[NATIVE].cause.startswith("the loss of step 2 ")
