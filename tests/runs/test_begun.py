import dataclasses

import pytest

from kerasbench.children.trial import Outcome
from kerasbench.exchange.devices import Device
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.options import Options
from kerasbench.runs import begun
from tests import made

CARD = Device("cuda", 0, "NVIDIA H200")


def test_a_trial_s_record_says_in_which_bout_it_was_and_how_it_was_started() -> None:
    outcome = dataclasses.replace(Outcome([], 7, measurement=made.measurement()), started_alone=False)
    found = begun.record_of(made.cell(), 2, outcome, 5)
    assert (found.round, found.bout, found.started_alone, found.wall_ns) == (2, 5, False, 7)
    assert found.cell == made.cell().key


@pytest.mark.parametrize(
    ("code", "device", "had_turn", "beside", "crowded"),
    [
        (Code.OOM, made.CPU, True, True, True),
        (Code.OOM, made.CPU, False, False, False),
        (Code.ERROR, made.CPU, False, True, False),
        (Code.ERROR, CARD, False, True, True),
        (Code.UNAVAILABLE, CARD, False, True, True),
        (Code.ERROR, CARD, True, True, False),
        (Code.ERROR, CARD, False, False, False),
    ],
)
def test_what_fails_on_a_card_beside_others_before_it_was_measured_may_not_by_itself(
    code: Code, device: Device, had_turn: bool, beside: bool, crowded: bool
) -> None:
    outcome = Outcome([], 7, failure=Failure(code, "busy", "none"), had_turn=had_turn)
    cell = dataclasses.replace(made.cell(), device=device)
    assert begun.record_of(cell, 1, outcome, 1, beside).crowded is crowded


def test_a_limit_of_its_own_is_no_crowd() -> None:
    failure = Failure(Code.OOM, "over its limit", "none", own_limit=True)
    assert not begun.record_of(made.cell(), 1, Outcome([], 7, failure=failure), 1, True).crowded


def test_what_is_not_tried_says_at_which_size_memory_ran_out() -> None:
    smaller, larger = (made.cell(options=Options(batch=batch)) for batch in (8, 16))
    found = begun.not_tried(smaller, larger, Failure(Code.OOM, "no memory", "less"), 1)
    assert found.failure == Failure(Code.OOM, "not tried: out of memory at batch 8", "less")
    assert (found.cell, found.bout) == (larger.key, 0)


def test_a_control_is_asked_for_as_such() -> None:
    planned = made.plan(made.cell(options=Options(control=True)))
    (cell,) = planned.cells
    request = begun.request_of(cell, cell.protocol, planned)
    assert request.options == Options(control=True)
