import dataclasses

from kerasbench.children.trial import Outcome
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.options import Options
from kerasbench.runs import begun
from tests import made


def test_a_trial_s_record_says_in_which_bout_it_was_and_how_it_was_started() -> None:
    outcome = dataclasses.replace(Outcome([], 7, measurement=made.measurement()), started_alone=False)
    found = begun.record_of(made.cell(), 2, outcome, 5)
    assert (found.round, found.bout, found.started_alone, found.wall_ns) == (2, 5, False, 7)
    assert found.cell == made.cell().key


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
