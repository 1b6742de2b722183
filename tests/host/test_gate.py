import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.host.noise import (
    CANARY_MIN_READINGS,
    HEAT_PATIENCE_S,
    PATIENCE_S,
    Gate,
    State,
    product_canary,
    refusals,
)
from tests import made

MS = made.MS
USUAL = [200 * MS] * CANARY_MIN_READINGS
QUIET, BUSY, HOT = made.state(), made.state(busy_share=0.4), made.state(thermal_level=1)


class Machine:
    """A clock that only sleeping moves, and what the gate sees, one after another, the last over again."""

    def __init__(self, states: list[State], canary_ms: list[int]) -> None:
        self.states, self.canary_ms = states, canary_ms
        self.now_s = 0.0
        self.waits: list[str] = []
        self.gate = Gate(self.canary, look=self.look, sleep=self.sleep, clock_s=lambda: self.now_s)

    def look(self) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def canary(self) -> int:
        return (self.canary_ms.pop(0) if len(self.canary_ms) > 1 else self.canary_ms[0]) * MS

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_a_quiet_machine_is_not_waited_for() -> None:
    passage = Machine([QUIET], [200]).gate.wait()
    assert (passage.waited_s, passage.refused, passage.canary_ns) == (0.0, "", 200 * MS)


def test_a_busy_machine_is_waited_for_until_it_is_quiet() -> None:
    machine = Machine([BUSY, BUSY, QUIET], [200])
    passage = machine.gate.wait(machine.waits.append)
    assert (passage.waited_s, passage.refused) == (2.0, "")
    assert machine.waits == ["40% of the CPU in use"] * 2


def test_a_machine_that_stays_busy_is_given_up_and_it_is_said_why() -> None:
    passage = Machine([BUSY], [200]).gate.wait()
    assert (passage.waited_s, passage.refused) == (PATIENCE_S, "40% of the CPU in use")


def test_once_waiting_has_not_helped_for_long_enough_a_run_waits_no_more() -> None:
    machine = Machine([BUSY], [200])
    machine.gate.patience_s = 4.0
    assert [machine.gate.wait().waited_s for _ in range(5)] == [4.0, 4.0, 2.0, 0.0, 0.0]


def test_waiting_that_helped_is_not_held_against_a_run_nor_is_heat() -> None:
    for states in ([*[BUSY] * 8, QUIET], [HOT]):
        machine = Machine(list(states), [200])
        machine.gate.wait()
        machine.states = [BUSY]
        assert machine.gate.wait().waited_s == PATIENCE_S


def test_a_hot_machine_gets_more_time_to_cool_down() -> None:
    passage = Machine([HOT], [200]).gate.wait()
    assert (passage.waited_s, passage.refused) == (HEAT_PATIENCE_S, "thermal pressure level 1")


def test_a_slow_canary_holds_a_trial_back_once_there_is_a_usual_one() -> None:
    machine = Machine([QUIET], [200, 230, 200, 220, 205])
    passages = [machine.gate.wait() for _ in range(4)]
    assert [passage.waited_s for passage in passages] == [0.0, 0.0, 0.0, 1.0]
    assert passages[-1].canary_ns == 205 * MS


@pytest.mark.parametrize(
    ("state", "canary_ms", "earlier_ns", "reasons"),
    [
        (QUIET, 200, USUAL, 0),
        (made.state(busy_share=0.15), 200, USUAL, 0),
        (BUSY, 200, USUAL, 1),
        (QUIET, 209, USUAL, 0),
        (QUIET, 211, USUAL, 1),
        (QUIET, 189, USUAL, 1),  # faster than usual: what came before was slow
        (QUIET, 900, USUAL[:-1], 0),  # two readings make no usual one
        (made.state(busy_share=0.9, thermal_level=2), 300, USUAL, 3),
    ],
)
def test_what_speaks_against_a_trial(state: State, canary_ms: int, earlier_ns: list[int], reasons: int) -> None:
    assert len(refusals(state, canary_ms * MS, earlier_ns)) == reasons


def test_the_product_canary_really_computes() -> None:
    assert product_canary()() > 0


# What the environment holds when NumPy, and OpenBLAS with it, is loaded: it is not read again.
AT_IMPORT = """
import os, sys
import kerasbench.runs.run
class Note:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
sys.meta_path.insert(0, Note())
from kerasbench.host.noise import product_canary
before = dict(os.environ)
product_canary()
assert os.environ == before
"""


@pytest.mark.processes
@pytest.mark.parametrize(("theirs", "seen"), [({}, "4"), ({"OPENBLAS_THREAD_TIMEOUT": "9"}, "9")])
def test_openblas_is_told_not_to_spin_before_it_is_loaded_unless_the_user_has(
    theirs: dict[str, str], seen: str
) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    environment = inherited | theirs
    command = [sys.executable, "-c", AT_IMPORT]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert printed == f"{seen}\n"


def test_the_openblas_that_numpy_brings_knows_the_variable() -> None:
    import numpy as np

    brought = [*Path(np.__file__).parents[1].glob("numpy.libs/*openblas*")]
    if not brought:
        pytest.skip("this NumPy computes with another library")
    assert all(b"OPENBLAS_THREAD_TIMEOUT" in library.read_bytes() for library in brought)
