"""Runs that go on with one that was interrupted: nothing is measured twice, and nothing is left out."""

import dataclasses
from pathlib import Path

import pytest

from kerasbench.host.noise import Severity, Signal
from kerasbench.results.record import Effort, exactly
from kerasbench.results.store import Store, load
from kerasbench.runs import rounds
from tests import made
from tests.scripted import CASES, FakeWorker, Quiet, Silent, by_round, execute, noisy


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, "2026-01-02T03:04:05Z")


@pytest.mark.parametrize("blocks", range(6))
def test_a_resumed_run_measures_what_is_missing_and_nothing_twice(store: Store, blocks: int) -> None:
    planned, done = made.plan(*CASES, effort=exactly(4)), 2 * blocks
    whole = execute(planned, store, FakeWorker(torch=noisy(1), jax=noisy(2)), Silent()).trials
    worker, observer = FakeWorker(torch=noisy(1), jax=noisy(2)), Silent()
    resumed = execute(planned, store, worker, observer, carried=whole[:done])
    assert [(one.round, one.block, one.case) for one in resumed.trials] == [
        (one.round, one.block, one.case) for one in whole
    ]
    assert resumed.rounds_completed == 4
    assert len(worker.requests) == len(observer.ended) == max(0, len(whole) - done)
    assert load(store.journal).trials == resumed.trials


def test_a_resumed_run_began_when_it_was_begun(store: Store) -> None:
    signal, again = Signal("load", Severity.WARN, "20%"), "2026-01-02T09:00:00Z"
    earlier = dataclasses.replace(made.record(made.trial(1)), resumed=[again], parent_cpu_ns=7, noise=[signal])
    planned = made.plan(CASES[0], effort=exactly(2))
    run = rounds.Run(
        planned, store, FakeWorker(torch=noisy(1)), Quiet(), Silent(), made.state(), earlier, between=by_round
    )
    record = run.execute()
    assert (record.started, record.resumed, record.noise) == (earlier.started, [again], [signal])
    assert record.parent_cpu_ns >= 7
    assert load(store.journal).started == earlier.started


def test_a_resumed_run_is_calibrated_by_what_was_carried_over(store: Store) -> None:
    planned = made.plan(CASES[0], effort=exactly(2))
    first = execute(made.plan(CASES[0], effort=exactly(1)), store, FakeWorker(torch=noisy(1)), Silent()).trials
    worker = FakeWorker(torch=noisy(1))
    execute(planned, store, worker, Silent(), carried=first)
    assert [request.protocol.steps_per_slice for request in worker.requests] == [50]


def test_a_case_that_had_failed_stays_failed_when_a_run_is_resumed(store: Store) -> None:
    planned = made.plan(*CASES, effort=exactly(2))
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    failed = made.trial(1, backend="torch", failure=made.FAILURE)
    resumed = execute(planned, store, worker, Silent(), carried=[failed])
    assert {request.backend for request in worker.requests} == {"jax"}
    assert len(resumed.trials) == 3


def test_what_was_given_up_in_a_round_that_its_row_has_not_had_stays_given_up(store: Store) -> None:
    planned = made.plan(*CASES, effort=exactly(2))
    whole = execute(planned, store, FakeWorker(torch=noisy(1), jax=noisy(2)), Silent()).trials
    given_up = dataclasses.replace(made.trial(2, failure=made.FAILURE), block=0)
    worker = FakeWorker(jax=noisy(2))
    resumed = execute(planned, store, worker, Silent(), carried=[*whole[:2], given_up])
    assert worker.blocks == [["jax"]]
    assert resumed.rounds_completed == 2


def test_a_resumed_run_goes_on_with_the_round_that_was_interrupted(store: Store) -> None:
    planned = made.plan(*CASES, made.case("conv"), made.case("quiet"), effort=exactly(3))
    whole = execute(planned, store, FakeWorker(torch=noisy(1), jax=noisy(2)), Silent())
    before = [one for one in whole.trials if one.block <= 4]  # of three rows
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    resumed = execute(planned, store, worker, Silent(), carried=before)
    assert [(one.round, one.case) for one in resumed.trials] == [(one.round, one.case) for one in whole.trials]


def test_a_row_that_was_decided_stays_decided_when_a_run_is_resumed(store: Store) -> None:
    planned = made.plan(*CASES, made.case("loud"), effort=Effort(3, 5))
    quiet = [
        dataclasses.replace(made.trial(index, backend=case.backend), block=index)
        for index in (1, 2, 3)
        for case in CASES
    ]
    loud = [
        dataclasses.replace(made.trial(index, "loud", found=made.measurement(step)), block=10 + index)
        for index, step in enumerate((1, 3, 2), start=1)
    ]
    worker = FakeWorker(torch=noisy(1, 3))
    resumed = execute(planned, store, worker, Silent(), carried=[*quiet, *loud])
    assert {(one.scenario, one.round) for one in resumed.trials[9:]} <= {("loud", 4), ("loud", 5)}
    assert resumed.rounds_completed > 3


def test_a_resumed_run_stops_where_it_would_have_stopped(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1, 1.001), jax=noisy(2, 2.001))
    whole = execute(made.plan(*CASES), store, worker, Silent())
    resumed = execute(made.plan(*CASES), store, FakeWorker(), Silent(), carried=whole.trials)
    assert (resumed.rounds_completed, resumed.stopped_because) == (3, whole.stopped_because)


def test_a_resumed_run_s_budget_counts_what_was_spent_before(store: Store) -> None:
    planned = made.plan(*CASES, effort=Effort(budget_s=15.0))
    carried = [dataclasses.replace(made.trial(backend=case.backend), block=1) for case in CASES]  # 9 s, side by side
    resumed = execute(planned, store, FakeWorker(), Silent(), carried=carried)
    assert resumed.stopped_because == "another round of about 9 s does not fit into the 6 s that --budget leaves"
