import pytest

from kerasbench import text
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import EpochEnds
from kerasbench.protocol.messages import Code, Failure, Phase
from kerasbench.results.run import PUBLISHED, Trial
from kerasbench.runs import records, rows
from tests import made
from tests.scripted import CASES

CONV = made.case("conv")
SIZED = [made.case(backend=backend, options=Options(batch=8)) for backend in ("torch", "jax")]
S = 10**9


def test_a_row_is_what_is_compared() -> None:
    of_plan = rows.rows_of(made.plan(*CASES, CONV, *SIZED))
    assert [[case.label for case in row.cases] for row in of_plan] == [
        ["dense torch cpu", "dense jax cpu"],
        ["conv torch cpu"],
        ["dense torch cpu batch=8", "dense jax cpu batch=8"],
    ]
    assert len(rows.rows_of(made.plan(*CASES, effort=PUBLISHED))) == 2


def test_a_row_learns_what_its_cases_take_and_how_long_without_the_others() -> None:
    (row,) = rows.rows_of(made.plan(*CASES))
    row.take(made.trial(phases=[Phase("train", 0, 9 * S, 6 * S)]))
    row.take(made.trial(2))
    known = row.calibrations[CASES[0].key]
    assert (known.first_s, known.peak_bytes, known.plan.steps_per_slice) == (3.0, 512 << 20, 50)
    row.take(made.trial(backend="jax", failure=made.FAILURE))
    assert [case.backend for case in row.alive] == ["torch"]
    row.take(made.trial(failure=made.FAILURE))
    assert row.over


def test_a_block_took_as_long_as_its_longest_trial_and_what_it_waited_for_heat() -> None:
    waited = made.changed(made.surroundings(), waited_s=30.0)
    for block, taken_s in ((0, 10), (1, 9)):
        assert rows.seconds([made.trial(block=block), made.trial(backend="jax", wall_ns=S, block=block)]) == taken_s
    assert rows.seconds([made.trial(surroundings=waited)]) == 39
    assert rows.seconds([made.trial(surroundings=waited, block=1)] * 2) == 39


def test_another_round_is_expected_to_take_what_the_last_ones_took_with_those_that_are_left() -> None:
    def taken(number: int, taken_s: int, backend: str = "torch") -> Trial:
        return made.in_block(number, made.measurement(), backend=backend, wall_ns=taken_s * S)

    trials = [taken(number, 100 if number < 4 else 30) for number in range(1, 7)]
    assert rows.RowProgress(CASES[:1], rounds_done=6, trials=trials).block_s == 30
    row = rows.RowProgress(CASES, rounds_done=1, trials=[taken(1, 100), taken(1, 100, "jax")])
    assert row.block_s == 100
    row.alive.pop()
    assert row.block_s == 50
    assert rows.RowProgress(CASES, trials=[made.trial(1, failure=made.FAILURE)]).block_s == 0  # not tried: no block


CARD = Device("cuda", 0, "NVIDIA H200")


@pytest.mark.parametrize(
    ("code", "device", "had_turn", "beside", "crowded"),
    [
        (Code.OOM, made.CPU, True, True, True),
        (Code.OOM, made.CPU, False, False, False),
        (Code.ERROR, made.CPU, False, True, False),
        (Code.ERROR, CARD, False, True, True),
        (Code.ERROR, CARD, True, True, False),
        (Code.ERROR, CARD, False, False, False),
    ],
)
def test_which_failure_was_crowded(code: Code, device: Device, had_turn: bool, beside: bool, crowded: bool) -> None:
    outcome = Outcome([], 7, failure=Failure(code, "busy", "none"), had_turn=had_turn)
    assert records.trial_record(made.case(device=device), 1, outcome, 1, beside).crowded is crowded


def test_numbers_that_would_make_a_file_unreadable_are_a_failure() -> None:
    impossible = made.changed(made.measurement(), training={"first_step_ns": 0})
    trial = records.trial_record(made.case(), 1, Outcome([], 7, measurement=impossible), 1)
    assert trial.measurement is None and trial.failure is not None and trial.failure.code is Code.INVALID
    assert trial.failure.cause == "what it measured cannot be: first_step_ns is out of range"
    less = EpochEnds(count=1, more_ns=-made.MS, steps=9)  # that is possible: a step by chance took less
    fine = made.changed(made.measurement(), training={"epoch_ends": less})
    assert records.trial_record(made.case(), 1, Outcome([], 7, measurement=fine), 1).measurement == fine


NOON = "2026-01-02T12:00:00Z"
NOON_S = text.seconds(NOON)
ENDED = made.trial(1, ended=NOON, session=2)
FAILED = made.trial(1, failure=made.FAILURE, ended=NOON)
LONG_AGO = made.trial(1, ended="2026-01-02T09:00:00Z", session=2)
ABSENT = made.trial(0, failure=made.FAILURE, ended="2026-01-02T19:00:00Z")


@pytest.mark.parametrize(
    ("trials", "later_s", "booted_s", "session"),
    [
        ([], 0, NOON_S, 1),
        ([ABSENT], 0, NOON_S, 1),
        ([ENDED, made.trial(1, session=1)], 3_600, 0, 2),
        ([ENDED], 3_601, 0, 3),
        ([ENDED], 60, NOON_S - 1, 2),  # the machine was started before
        ([ENDED], 60, NOON_S + 30, 3),
        ([LONG_AGO, FAILED, ABSENT], 60, 0, 2),  # a pause is told by trials that were tried
        ([LONG_AGO, ABSENT], 60, 0, 3),
        ([made.trial(1, session=2)], 10, 0, 2),  # and else by when the run ended
        ([made.trial(1, session=2)], 4_000, 0, 3),
    ],
)
def test_when_another_session_begins(trials: list[Trial], later_s: float, booted_s: float, session: int) -> None:
    record = made.changed(made.record(*trials), finished=NOON)
    assert records.session_of(record, NOON_S + later_s, booted_s) == session
