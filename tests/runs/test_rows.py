"""Rows, and the records of trials."""

import dataclasses

import pytest

from kerasbench import text
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.messages import Code, Failure, Phase
from kerasbench.results.run import PUBLISHED
from kerasbench.runs import records, rows
from tests import made
from tests.scripted import CASES

CONV = made.case("conv")
SIZED = [made.case(backend=backend, options=Options(batch=8)) for backend in ("torch", "jax")]


def test_a_row_is_what_is_compared_and_comes_in_the_order_of_its_cases() -> None:
    found = rows.rows_of(made.plan(*CASES, CONV, *SIZED))
    assert [[case.label for case in row.cases] for row in found] == [
        ["dense torch cpu", "dense jax cpu"],
        ["conv torch cpu"],
        ["dense torch cpu batch=8", "dense jax cpu batch=8"],
    ]
    assert len(rows.rows_of(made.plan(*CASES, effort=PUBLISHED))) == 2
    found = rows.rows_of(made.plan(*CASES, CONV, *SIZED))
    drawn = [SIZED[1], CONV, CASES[0], SIZED[0], CASES[1]]
    assert [row.cases[0].label for row in rows.ordered(found, drawn)] == [
        "dense torch cpu batch=8",
        "conv torch cpu",
        "dense torch cpu",
    ]


def test_a_row_learns_what_its_cases_take_and_how_long_without_the_others() -> None:
    (row,) = rows.rows_of(made.plan(*CASES))
    waited = dataclasses.replace(made.trial(), phases=[Phase("train", 0, 9 * 10**9, 6 * 10**9)])
    row.take(waited)
    row.take(made.trial(2))
    known = row.known[CASES[0].key]
    assert (known.first_s, known.peak_bytes, known.protocol.steps_per_slice) == (3.0, 512 << 20, 50)
    row.take(made.trial(backend="jax", failure=made.FAILURE))
    assert [case.backend for case in row.alive] == ["torch"]
    row.take(made.trial(failure=made.FAILURE))
    assert row.over


def test_a_block_took_as_long_as_its_longest_trial_and_what_it_waited_for_heat() -> None:
    long, short = made.trial(), dataclasses.replace(made.trial(backend="jax"), wall_ns=10**9)
    assert rows.seconds([long, short]) == 10
    assert rows.seconds([dataclasses.replace(one, block=1) for one in (long, short)]) == 9
    waited = dataclasses.replace(long, surroundings=dataclasses.replace(made.surroundings(), waited_s=30.0))
    assert rows.seconds([waited]) == 39
    assert rows.seconds([dataclasses.replace(waited, block=1)] * 2) == 39


CARD = Device("cuda", 0, "NVIDIA H200")


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
    assert records.trial_record(case, 1, outcome, 1, beside).crowded is crowded


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
    assert records.sitting(made.record(*trials), NOON_S + later_s, booted_s) == sitting


def test_a_pause_is_told_by_trials_that_were_tried_and_else_by_when_the_run_ended() -> None:
    failed = dataclasses.replace(made.trial(1, failure=made.FAILURE), ended=NOON)
    long_ago = dataclasses.replace(made.trial(1), ended="2026-01-02T09:00:00Z")
    absent = dataclasses.replace(made.trial(0, failure=made.FAILURE), ended="2026-01-02T19:00:00Z")
    assert records.sitting(made.record(long_ago, failed, absent), NOON_S + 60, 0) == 1
    assert records.sitting(made.record(long_ago, absent), NOON_S + 60, 0) == 2
    record = dataclasses.replace(made.record(made.trial(1)), finished=NOON)
    assert records.sitting(record, NOON_S + 10, 0) == 1
    assert records.sitting(record, NOON_S + 4_000, 0) == 2
    assert records.sitting(made.record(made.trial(0, failure=made.FAILURE)), NOON_S, NOON_S) == 1
