"""Runs that go on with one that was interrupted: nothing is measured twice, and nothing is left out."""

import dataclasses
from pathlib import Path

import pytest

from kerasbench.quiet.signals import Severity, Signal
from kerasbench.results import asked
from kerasbench.results.asked import Effort
from kerasbench.results.store import Store, load
from kerasbench.runs import rounds
from tests import made
from tests.scripted import CELLS, FakeWorker, Quiet, Silent, execute, noisy


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, "2026-01-02T03:04:05Z")


@pytest.mark.parametrize("done", range(10))
def test_a_resumed_run_measures_what_is_missing_and_nothing_twice(store: Store, done: int) -> None:
    planned = made.plan(*CELLS, effort=asked.exactly(4))
    whole = execute(planned, store, FakeWorker(torch=noisy(1), jax=noisy(2)), Silent()).trials
    worker, observer = FakeWorker(torch=noisy(1), jax=noisy(2)), Silent()
    resumed = execute(planned, store, worker, observer, carried=whole[:done])
    assert [(trial.round, trial.cell) for trial in resumed.trials] == [(trial.round, trial.cell) for trial in whole]
    assert len(worker.requests) == len(observer.ended) == max(0, len(whole) - done)
    assert load(store.journal).trials == resumed.trials


def test_a_resumed_run_began_when_it_was_begun(store: Store) -> None:
    signal, again = Signal("load", Severity.WARN, "20%"), "2026-01-02T09:00:00Z"
    earlier = dataclasses.replace(made.record(made.trial(1)), resumed=[again], parent_cpu_ns=7, noise=[signal])
    planned = made.plan(CELLS[0], effort=asked.exactly(2))
    run = rounds.Run(planned, store, FakeWorker(torch=noisy(1)), Quiet(), Silent(), made.state(), earlier)
    record = run.execute()
    assert (record.started, record.resumed, record.noise) == (earlier.started, [again], [signal])
    assert record.parent_cpu_ns >= 7
    assert load(store.journal).started == earlier.started


def test_a_resumed_run_is_calibrated_by_what_was_carried_over(store: Store) -> None:
    planned = made.plan(CELLS[0], effort=asked.exactly(2))
    first = execute(made.plan(CELLS[0], effort=asked.exactly(1)), store, FakeWorker(torch=noisy(1)), Silent()).trials
    worker = FakeWorker(torch=noisy(1))
    execute(planned, store, worker, Silent(), carried=first)
    assert [request.protocol.steps_per_block for request in worker.requests] == [50]


def test_a_cell_that_had_failed_stays_failed_when_a_run_is_resumed(store: Store) -> None:
    planned = made.plan(*CELLS, effort=asked.exactly(2))
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    failed = made.trial(1, backend="torch", failure=made.FAILURE)
    resumed = execute(planned, store, worker, Silent(), carried=[failed])
    assert {request.backend for request in worker.requests} == {"jax"}
    assert len(resumed.trials) == 3


def test_a_resumed_run_goes_on_with_the_round_that_was_interrupted(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1, 3, 1, 3, 1), jax=noisy(2, 3, 2, 3, 2))
    whole = execute(made.plan(*CELLS), store, worker, Silent())
    assert whole.rounds_completed == 5
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    resumed = execute(made.plan(*CELLS), store, worker, Silent(), carried=whole.trials[:9])
    assert (resumed.rounds_completed, len(resumed.trials)) == (5, 10)


def test_a_resumed_run_stops_where_it_would_have_stopped(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1, 1.001), jax=noisy(2, 2.001))
    whole = execute(made.plan(*CELLS), store, worker, Silent())
    resumed = execute(made.plan(*CELLS), store, FakeWorker(), Silent(), carried=whole.trials)
    assert (resumed.rounds_completed, resumed.stopped_because) == (3, whole.stopped_because)


def test_a_resumed_run_s_budget_counts_what_was_spent_before(store: Store) -> None:
    planned = made.plan(*CELLS, effort=Effort(budget_s=30.0))
    carried = [made.trial(1, backend=cell.backend) for cell in CELLS]  # each took 9 s
    resumed = execute(planned, store, FakeWorker(), Silent(), carried=carried)
    assert resumed.stopped_because == "another round would not have fitted into --budget 30 s"
