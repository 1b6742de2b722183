"""Series of sizes, and columns that run out of memory: beside others, or by themselves."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.plan.cases import Case
from kerasbench.processes.block import BlockMember, BlockPolicy, Ear
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.record import SWEEP, Record, completed_rounds, exactly
from kerasbench.results.store import Store, load
from kerasbench.runs import rounds, rows
from tests import made
from tests.scripted import CASES, FakeWorker, Quiet, Silent, by_round, execute, noisy


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, "2026-01-02T03:04:05Z")


OOM = Failure(Code.OOM, "no memory", "less of it")
SERIES = [made.case(options=Options(batch=batch)) for batch in (1, 2, 4, 8)]


def ascending(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
    return sorted(cases, key=lambda case: case.options.batch or 0)


class SmallMemory(FakeWorker):
    """Runs out of memory from a batch on; in the rounds after the first one as well."""

    def __init__(self, from_batch: int) -> None:
        super().__init__(torch=noisy(1))
        self.from_batch = from_batch

    def answer(self, entrant: BlockMember) -> Outcome:
        answer = super().answer(entrant)
        return answer if (entrant.request.options.batch or 0) < self.from_batch else Outcome([], 0, failure=OOM)


def sweep(store: Store, worker: FakeWorker, order: Any, *cases: Case) -> Record:
    planned = made.plan(*cases, effort=exactly(2, SWEEP))
    return rounds.Run(
        planned, store, worker, Quiet(), Silent(), made.state(), in_order=order, between=by_round
    ).execute()


def test_a_series_is_not_tried_at_larger_sizes_than_it_ran_out_of_memory_at(store: Store) -> None:
    other = made.case("conv", options=Options(batch=1))
    worker = SmallMemory(from_batch=2)
    record = sweep(store, worker, ascending, *SERIES, other)
    tried = [(request.scenario, request.options.batch) for request in worker.requests]
    assert sorted(tried) == [("conv", 1), ("conv", 1), ("dense", 1), ("dense", 1), ("dense", 2)]
    failures = {one.options.batch: one.failure for one in record.trials if one.failure}
    assert {batch: (failure.code, failure.cause) for batch, failure in failures.items()} == {
        2: (Code.OOM, "no memory"),
        4: (Code.OOM, "not tried: out of memory at batch 2"),
        8: (Code.OOM, "not tried: out of memory at batch 2"),
    }
    assert load(store.journal).trials == record.trials


class Crowded(FakeWorker):
    """JAX runs out of memory where another column is alive."""

    def __call__(
        self, entrants: Sequence[BlockMember], rules: BlockPolicy, ear: Ear, alone: bool, /
    ) -> list[Outcome | None]:
        outcomes = super().__call__(entrants, rules, ear, alone)
        dies = [len(entrants) > 1 and one.request.backend == "jax" for one in entrants]
        return [Outcome([], 10**9, failure=OOM) if it else one for it, one in zip(dies, outcomes, strict=True)]


def test_what_runs_out_of_memory_beside_others_is_measured_by_itself_and_larger_sizes_too(store: Store) -> None:
    backends = ("torch", "jax", "tensorflow")
    cases = [made.case(backend=one, options=Options(batch=batch)) for batch in (1, 2) for one in backends]
    worker = Crowded(torch=noisy(1), jax=noisy(2), tensorflow=noisy(3))
    record = sweep(store, worker, ascending, *cases)
    in_company, alone, later = ["torch", "jax", "tensorflow"], ["jax"], ["torch", "tensorflow"]
    assert worker.blocks == [in_company, alone] * 2 + [later, alone] * 2
    found = [one for one in record.trials if one.backend == "jax"]
    assert [(one.options.batch, one.round, one.crowded) for one in found] == [
        *[(1, 1, True), (1, 1, False), (2, 1, True), (2, 1, False)],
        *[(1, 2, False), (2, 2, False)],
    ]
    assert all((one.failure == OOM) is one.crowded for one in found)
    rows = summarize(record).rows[:2]
    assert all(case.failure is None and len(case.trials) == 2 for row in rows for case in row.cases.values())
    assert load(store.journal).rounds_completed == 2


def test_a_limit_of_its_own_is_passed_by_itself_too(store: Store) -> None:
    limited = dataclasses.replace(OOM, own_limit=True)
    worker = FakeWorker(torch=noisy(1), jax=[limited])
    record = execute(made.plan(*CASES, effort=exactly(2)), store, worker, Silent())
    assert worker.blocks == [["torch", "jax"], ["torch"]]
    assert not any(one.crowded for one in record.trials)


def test_what_runs_out_of_memory_by_itself_too_has_failed(store: Store) -> None:
    worker = Crowded(torch=noisy(1), jax=[OOM])
    record = execute(made.plan(*CASES, effort=exactly(2)), store, worker, Silent())
    assert worker.blocks == [["torch", "jax"], ["jax"], ["torch"]]
    assert summarize(record).rows[0].cases[Column("jax", "cpu")].failure == OOM


def test_a_run_that_is_interrupted_before_a_column_was_measured_by_itself_begins_that_round_again(
    store: Store,
) -> None:
    planned = made.plan(*CASES, effort=exactly(2))
    whole = execute(planned, store, Crowded(torch=noisy(1), jax=noisy(2)), Silent()).trials
    (row,) = rows.rows_of(planned)
    keys = [case.key for case in row.cases]
    assert [completed_rounds(keys, whole[:done]) for done in (2, 3, 4, 5)] == [0, 1, 1, 2]
    worker = Crowded(torch=noisy(1), jax=noisy(2))
    execute(planned, store, worker, Silent(), carried=whole[:3])
    assert worker.blocks == [["torch"], ["jax"]]


def test_a_size_that_was_measured_goes_on_where_a_smaller_one_ran_out_of_memory(store: Store) -> None:
    class Once(SmallMemory):
        def answer(self, entrant: BlockMember) -> Outcome:
            answer = super().answer(entrant)
            return Outcome([], 0, failure=OOM) if entrant.request.options.batch == 2 else answer

    def descending(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
        return ascending(cases, seed, round_index)[::-1]

    record = sweep(store, Once(from_batch=8), descending, *SERIES)
    assert [one.options.batch for one in record.trials if one.failure] == [8, 2]
    assert sorted(one.options.batch or 0 for one in record.trials if one.measurement) == [1, 1, 4, 4]


def test_another_failure_does_not_end_a_series(store: Store) -> None:
    worker = FakeWorker(torch=[made.FAILURE, made.measurement()])
    record = sweep(store, worker, ascending, *SERIES)
    assert [one.options.batch for one in record.trials if one.failure] == [1]


def test_a_run_goes_on_with_more_sizes_where_all_others_are_carried_over(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1))
    first = sweep(store, worker, ascending, *SERIES[:2])
    planned = made.plan(*SERIES, effort=exactly(2, SWEEP))
    record = execute(planned, store, worker, Silent(), carried=first.trials)
    assert [one.options.batch for one in record.trials[:4]] == [1, 2, 1, 2]
    assert sorted((one.options.batch, one.round) for one in record.trials[4:]) == [(4, 1), (4, 2), (8, 1), (8, 2)]
    assert load(store.journal).trials == record.trials


@pytest.mark.parametrize(("quota_cores", "rest_s"), [(None, 0.0), (0.5, rounds.QUOTA_PERIOD_S), (1e6, 0.0)])
def test_a_quota_recovers_between_turns(store: Store, quota_cores: float | None, rest_s: float) -> None:
    seen: list[float] = []

    class Noting(FakeWorker):
        def __call__(
            self, entrants: Sequence[BlockMember], rules: BlockPolicy, ear: Ear, alone: bool, /
        ) -> list[Outcome | None]:
            seen.append(rules.rest_s)
            return super().__call__(entrants, rules, ear, alone)

    worker = Noting(torch=noisy(1), jax=noisy(2))
    state, planned = made.state(quota_cores=quota_cores), made.plan(*CASES, effort=exactly(1))
    rounds.Run(planned, store, worker, Quiet(), Silent(), state, between=by_round).execute()
    assert seen == [rest_s]
