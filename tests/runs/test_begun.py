import dataclasses

import pytest

from kerasbench import text
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.messages import Code, Failure
from kerasbench.runs import rows
from tests import made

CARD = Device("cuda", 0, "NVIDIA H200")


def test_a_trial_s_record_says_in_which_block_it_was_and_how_it_was_started() -> None:
    outcome = dataclasses.replace(Outcome([], 7, measurement=made.measurement()), started_alone=False)
    found = rows.trial_record(made.case(), 2, outcome, 5)
    assert (found.round, found.block, found.started_alone, found.wall_ns) == (2, 5, False, 7)
    assert found.case == made.case().key


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
    case = dataclasses.replace(made.case(), device=device)
    assert rows.trial_record(case, 1, outcome, 1, beside).crowded is crowded


def test_a_limit_of_its_own_is_no_crowd() -> None:
    failure = Failure(Code.OOM, "over its limit", "none", own_limit=True)
    assert not rows.trial_record(made.case(), 1, Outcome([], 7, failure=failure), 1, True).crowded


def test_what_is_not_tried_says_at_which_size_memory_ran_out() -> None:
    smaller, larger = (made.case(options=Options(batch=batch)) for batch in (8, 16))
    found = rows.not_tried(smaller, larger, Failure(Code.OOM, "no memory", "less"), 1)
    assert found.failure == Failure(Code.OOM, "not tried: out of memory at batch 8", "less")
    assert (found.case, found.block) == (larger.key, 0)


def test_a_control_is_asked_for_as_such() -> None:
    planned = made.plan(made.case(options=Options(control=True)))
    (case,) = planned.cases
    request = rows.trial_request(case, case.protocol, planned)
    assert request.options == Options(control=True)


NOON = "2026-01-02T12:00:00Z"
NOON_S = text.seconds(NOON)


@pytest.mark.parametrize(
    ("later_s", "booted_s", "sitting"),
    [(60, 0, 2), (3_600, 0, 2), (3_601, 0, 3), (60, NOON_S - 1, 2), (60, NOON_S + 30, 3)],
    ids=["soon", "within an hour", "after more", "started before", "started again"],
)
def test_a_run_that_goes_on_later_or_after_a_restart_is_in_another_sitting(
    later_s: float, booted_s: float, sitting: int
) -> None:
    trials = [dataclasses.replace(made.trial(1), ended=NOON, sitting=2), dataclasses.replace(made.trial(1), sitting=1)]
    assert rows.sitting(made.record(*trials), NOON_S + later_s, booted_s) == sitting


def test_what_does_not_say_when_it_ended_counts_as_its_run() -> None:
    record = dataclasses.replace(made.record(made.trial(1)), finished=NOON)
    assert rows.sitting(record, NOON_S + 10, 0) == 1
    assert rows.sitting(record, NOON_S + 4_000, 0) == 2


def test_a_run_of_which_nothing_counts_is_in_its_first_sitting() -> None:
    assert rows.sitting(None, NOON_S, NOON_S) == 1
    assert rows.sitting(made.record(made.trial(0, failure=made.FAILURE)), NOON_S, NOON_S) == 1
