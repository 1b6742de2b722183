import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError
from kerasbench.plan.cases import Case
from kerasbench.processes.block import BlockMember
from kerasbench.processes.outcome import Limits, Outcome
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Measurement, Parity
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Protocol
from kerasbench.results.record import PUBLISHED, SWEEP, Effort, TrialRecord, exactly
from kerasbench.results.store import Store, load
from kerasbench.runs import rows
from kerasbench.runs.schedule import order_cases
from tests import made
from tests.scripted import CASES, FakeWorker, Quiet, Silent, execute, noisy


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, "2026-01-02T03:04:05Z")


def test_every_round_has_every_case_once(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    record = execute(made.plan(*CASES, effort=exactly(4)), store, worker, Silent())
    tried = [(trial.round, trial.backend) for trial in record.trials]
    assert sorted(tried) == [(index, backend) for index in (1, 2, 3, 4) for backend in ("jax", "torch")]
    assert record.stopped_because == "all 4 rounds are done"
    assert record.finished


def test_precise_intervals_end_a_run_after_three_rounds(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1, 1.001), jax=noisy(2, 2.001))
    record = execute(made.plan(*CASES), store, worker, Silent())
    assert (record.rounds_completed, record.stopped_because) == (3, "every ratio is within ±2 %")


def test_one_wide_interval_keeps_a_run_going(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2, 3))
    record = execute(made.plan(*CASES, effort=Effort(3, 5)), store, worker, Silent())
    assert (record.rounds_completed, record.stopped_because) == (5, "all 5 rounds are done")


def test_a_row_that_is_decided_takes_no_further_block_and_the_others_go_on(store: Store) -> None:
    quiet, loud = made.case("quiet"), [made.case("loud"), made.case("loud", "jax")]
    worker = FakeWorker(torch=noisy(1), jax=noisy(2, 3))
    observer = Silent()
    record = execute(made.plan(quiet, *loud, effort=Effort(3, 5)), store, worker, observer)
    had = Counter(trial.case for trial in record.trials)
    assert (had[quiet.key], had[loud[0].key], record.rounds_completed) == (3, 5, 5)
    assert record.stopped_because == "1 row: every ratio is within ±2 %; 1 row: all 5 rounds are done"
    assert observer.decided == [("quiet", "every interval is within ±2 %"), ("loud", "all 5 rounds are done")]


def test_the_columns_of_a_row_are_alive_together_and_rows_one_after_another(store: Store) -> None:
    other = made.case("conv")
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    record = execute(made.plan(*CASES, other, effort=exactly(2)), store, worker, Silent())
    assert sorted(worker.blocks) == [["torch"], ["torch"], ["torch", "jax"], ["torch", "jax"]]
    assert sorted({trial.block for trial in record.trials}) == [1, 2, 3, 4]
    assert all(
        len({(one.scenario, one.round) for one in record.trials if one.block == block}) == 1 for block in (1, 2, 3)
    )


def test_only_a_row_s_first_blocks_are_started_one_after_another(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    record = execute(made.plan(*CASES, effort=exactly(5)), store, worker, Silent())
    assert worker.alone == [True] * 3 + [False] * 2
    assert [trial.started_alone for trial in record.trials] == [True] * 6 + [False] * 4


def test_no_column_always_starts_first(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2), tensorflow=noisy(3))
    execute(made.plan(*THREE, effort=exactly(8)), store, worker, Silent(), in_order=order_cases)
    assert (
        {block[0] for block in worker.blocks} == {block[2] for block in worker.blocks} == {"torch", "jax", "tensorflow"}
    )
    assert all(len(block) == 3 for block in worker.blocks)


def test_the_same_columns_meet_in_each_round_where_not_all_fit_into_memory(store: Store) -> None:
    planned = made.plan(*THREE, effort=exactly(4))
    worker = FakeWorker(2, torch=noisy(1), jax=noisy(2), tensorflow=noisy(3))
    whole = execute(planned, store, worker, Silent(), in_order=order_cases).trials
    assert worker.blocks == worker.blocks[:2] * 4
    resumed = FakeWorker(2, torch=noisy(1), jax=noisy(2), tensorflow=noisy(3))
    execute(planned, store, resumed, Silent(), carried=whole[:4], in_order=order_cases)
    assert resumed.blocks == worker.blocks[2:]


def test_published_cases_are_blocks_of_their_own(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    record = execute(made.plan(*CASES, effort=PUBLISHED), store, worker, Silent())
    assert sorted(worker.blocks) == [["jax"], ["torch"]]
    assert record.stopped_because == "one round was asked for"


THREE = [*CASES, made.case(backend="tensorflow")]


def test_what_does_not_fit_is_measured_beside_the_first_column_again(store: Store) -> None:
    worker = FakeWorker(2, torch=noisy(1), jax=noisy(2), tensorflow=noisy(3))
    record = execute(made.plan(*THREE, effort=exactly(1)), store, worker, Silent())
    assert worker.blocks == [["torch", "jax"], ["torch", "tensorflow"]]
    assert [(one.backend, one.round, one.block) for one in record.trials] == [
        ("torch", 1, 1),
        ("jax", 1, 1),
        ("torch", 1, 2),
        ("tensorflow", 1, 2),
    ]


class OneIsLarge(FakeWorker):
    """TensorFlow fits beside nothing else."""

    def fitting(self, backends: Sequence[str]) -> list[bool]:
        return [index == 0 or backend != "tensorflow" for index, backend in enumerate(backends)]


def test_one_column_that_is_too_large_takes_no_other_from_the_side_of_the_first(store: Store) -> None:
    cases = [THREE[0], THREE[2], THREE[1], made.case(backend="native")]
    worker = OneIsLarge(torch=noisy(1), jax=noisy(2), tensorflow=noisy(3), native=noisy(4))
    record = execute(made.plan(*cases, effort=exactly(2)), store, worker, Silent())
    assert worker.blocks == [["torch", "jax", "native"], ["torch"], ["tensorflow"]] * 2
    assert {one.round for one in record.trials if one.backend == "tensorflow"} == {1, 2}


def test_where_not_even_two_fit_they_are_measured_one_by_one(store: Store) -> None:
    worker = FakeWorker(1, torch=noisy(1), jax=noisy(2), tensorflow=noisy(3))
    execute(made.plan(*THREE, effort=exactly(1)), store, worker, Silent())
    assert worker.blocks == [["torch"], ["jax"], ["tensorflow"]]


def test_a_column_that_fails_leaves_its_row(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=[made.measurement(2), made.FAILURE])
    execute(made.plan(*CASES, effort=exactly(3)), store, worker, Silent())
    assert worker.blocks == [["torch", "jax"], ["torch", "jax"], ["torch"]]


VERSIONS = [
    dataclasses.replace(made.case(backend="torch", options=options), paired=True)
    for options in (Options(environment="old"), Options(environment="new"), Options(environment="old", control=True))
]


class OneFails(FakeWorker):
    """The one of these options fails."""

    def __init__(self, failing: Options) -> None:
        super().__init__(torch=noisy(1, 3, 2))
        self.failing = failing

    def answer(self, entrant: BlockMember) -> Outcome:
        answer = super().answer(entrant)
        return Outcome([], 10**9, failure=made.FAILURE) if entrant.request.options == self.failing else answer


@pytest.mark.parametrize(("failing", "had"), [(0, 1), (1, 1), (2, 3)])
def test_versions_are_not_measured_on_when_one_of_them_has_failed(store: Store, failing: int, had: int) -> None:
    worker, observer = OneFails(VERSIONS[failing].options), Silent()
    record = execute(made.plan(*VERSIONS, effort=exactly(3)), store, worker, observer)
    assert len(worker.blocks) == record.rounds_completed == had
    if had == 1:
        assert record.stopped_because == "base or head has failed, so that nothing is left to compare"
        assert observer.decided == [("dense torch cpu", record.stopped_because)]


def test_a_column_that_was_found_to_differ_takes_no_other_with_it_in_later_rounds(store: Store) -> None:
    def computing(*losses: float) -> list[Measurement | Failure]:
        found = made.measurement(losses=losses)
        normalised = Parity([*losses], [], sensitive=["BatchNormalization"])
        return [dataclasses.replace(found, parity=normalised)] * 3

    worker = FakeWorker(torch=computing(1.0, 1.08), jax=computing(1.0, 0.92), tensorflow=computing(1.05, 1.0))
    record = execute(made.plan(*THREE, effort=exactly(2)), store, worker, Silent())
    assert [sorted(block) for block in worker.blocks] == [["jax", "tensorflow", "torch"], ["jax", "torch"]]
    failed = [column.backend for column, case in summarize(record).rows[0].cases.items() if case.failure]
    assert failed == ["tensorflow"]
    known = load(store.journal).trials
    again = execute(made.plan(*THREE, effort=exactly(2)), store, worker, Silent(), carried=known[:3])
    assert [one.failure is not None for one in again.trials] == [one.failure is not None for one in record.trials]


@pytest.mark.parametrize("room", [None, 2])
def test_a_column_that_computes_something_else_is_measured_once_and_decides_nothing(
    store: Store, room: int | None
) -> None:
    odd = [made.measurement(step, losses=(9.0, 8.0, 7.0, 6.0, 5.0, 4.0)) for step in (3, 9, 4)]
    worker = FakeWorker(room, torch=noisy(1, 1.001), jax=noisy(2, 2.001), tensorflow=[*odd])
    record = execute(made.plan(*THREE), store, worker, Silent())
    assert (record.rounds_completed, record.stopped_because) == (3, "every ratio is within ±2 %")
    measured, failed = [one for one in record.trials if one.backend == "tensorflow"]
    assert measured.measurement == odd[0]
    assert failed.failure is not None and failed.failure.code is Code.PARITY
    assert load(store.journal).trials == record.trials
    row = summarize(record).rows[0]
    assert row.rounds == 3 and row.cases[measured.column].failure == failed.failure
    assert [len(case.trials) for case in row.cases.values()] == [3, 1, 3 if room is None else 4]


def test_the_first_trial_calibrates_and_later_ones_are_frozen(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    execute(made.plan(*CASES, effort=exactly(3)), store, worker, Silent())
    asked = [request.protocol for request in worker.requests if request.backend == "torch"]
    assert [(protocol.steps_per_slice, protocol.warmup_slices) for protocol in asked] == [
        (None, None),
        (50, 3),
        (50, 3),
    ]


def test_a_twin_is_asked_for_by_the_hash_of_its_file_and_the_record_keeps_it(store: Store) -> None:
    chosen = made.selected()
    chosen = dataclasses.replace(chosen, entry=dataclasses.replace(chosen.entry, twins={"torch": "hash of its twin"}))
    cases = [Case(chosen, "torch", made.CPU, Options(native=native)) for native in (False, True)]
    worker = FakeWorker(torch=noisy(1))
    record = execute(made.plan(*cases, effort=exactly(1)), store, worker, Silent())
    assert {request.options.native: request.twin_hash for request in worker.requests} == {
        False: "",
        True: "hash of its twin",
    }
    assert record.scenarios[0].twins == {"torch": "hash of its twin"}


def test_the_record_keeps_what_each_trial_was_asked_to_measure(store: Store) -> None:
    steady, sized = (
        dataclasses.replace(made.case(options=Options(batch=batch)), protocol=protocol)
        for batch, protocol in ((None, Protocol(parts=True)), (64, SWEEP))
    )
    planned = dataclasses.replace(made.plan(effort=exactly(2)), cases=[steady, sized], absent=[(sized, made.FAILURE)])
    worker = FakeWorker(torch=noisy(1))
    record = execute(planned, store, worker, Silent())
    assert {(one.options.batch, one.protocol.kind, one.protocol.parts) for one in worker.requests} == {
        (None, "steady", True),
        (64, "sweep", False),
    }
    assert {(one.options.batch, one.protocol) for one in record.trials} == {(None, "steady"), (64, "sweep")}
    assert load(store.journal).trials == record.trials


def test_a_case_that_fails_is_not_tried_again_and_the_others_go_on(store: Store) -> None:
    worker = FakeWorker(torch=[made.FAILURE], jax=noisy(2))
    observer = Silent()
    record = execute(made.plan(*CASES, effort=exactly(3)), store, worker, observer)
    assert sorted(observer.ended) == ["jax", "jax", "jax", "torch"]
    assert [trial.failure for trial in record.trials if trial.backend == "torch"] == [made.FAILURE]


def test_a_run_of_which_everything_failed_ends(store: Store) -> None:
    worker = FakeWorker(torch=[made.FAILURE], jax=[made.FAILURE])
    record = execute(made.plan(*CASES, effort=exactly(3)), store, worker, Silent())
    assert len(record.trials) == 2
    assert record.stopped_because == "every case has failed"


def test_what_is_absent_is_recorded_without_being_tried(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1))
    planned = made.plan(CASES[0], effort=exactly(1), absent=((CASES[1], made.FAILURE),))
    record = execute(planned, store, worker, Silent())
    assert [(trial.backend, trial.round) for trial in record.trials] == [("jax", 0), ("torch", 1)]


def test_every_block_is_on_disk_before_the_next_begins(store: Store) -> None:
    on_disk: list[int] = []

    class Looking(FakeWorker):
        def __call__(self, *asked: Any) -> list[Outcome | None]:
            on_disk.append(len(load(store.journal).trials))
            return super().__call__(*asked)

    worker = Looking(torch=noisy(1), jax=noisy(2))
    execute(made.plan(*CASES, effort=exactly(2)), store, worker, Silent())
    assert on_disk == [0, 2]


def test_ctrl_c_keeps_what_was_measured(store: Store) -> None:
    class Interrupted(FakeWorker):
        def answer(self, entrant: BlockMember) -> Outcome:
            if len(self.requests) == 3:
                raise KeyboardInterrupt
            return super().answer(entrant)

    worker = Interrupted(torch=noisy(1), jax=noisy(2))
    record = execute(made.plan(*CASES, effort=exactly(3)), store, worker, Silent())
    assert (record.stopped_because, record.rounds_completed, len(record.trials)) == ("interrupted", 1, 2)
    assert load(store.journal).trials == record.trials


def test_a_disk_that_takes_no_more_ends_the_run_and_loses_nothing_that_was_measured(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    add, added = store.add, [0]

    def until_it_is_full(trials: Sequence[TrialRecord]) -> None:
        added[0] += 1
        if added[0] == 2:
            raise ResultsError("no space left")
        add(trials)

    monkeypatch.setattr(store, "add", until_it_is_full)
    record = execute(made.plan(*CASES, effort=exactly(3)), store, worker, Silent())
    assert (record.stopped_because, len(record.trials)) == ("results could not be written", 4)
    assert len(load(store.journal).trials) == 2


def test_a_disturbed_block_is_kept_and_marked_and_nothing_is_repeated(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    record = execute(made.plan(*CASES, effort=exactly(2)), store, worker, Silent(), Quiet(1))
    assert [(trial.round, trial.disturbed) for trial in record.trials] == [(1, True)] * 2 + [(2, False)] * 2
    assert "other processes used" in record.trials[0].noise[0].reason
    assert [one.protocol.steps_per_slice for one in worker.requests] == [None, None, 50, 50]


def test_a_budget_counts_blocks_by_their_longest_trial(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    planned = made.plan(*CASES, effort=Effort(3, 5, budget_s=2.5))  # each block says that it took a second
    record = execute(planned, store, worker, Silent())
    assert record.rounds_completed == 3 and record.stopped_because == "every ratio is within ±2 %"


def test_a_budget_that_is_too_small_leaves_one_complete_round(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1), jax=noisy(2))
    record = execute(made.plan(*CASES, effort=Effort(budget_s=1e-9)), store, worker, Silent())
    assert (record.rounds_completed, len(record.trials)) == (1, 2)


def test_later_trials_of_a_case_are_limited_by_its_first(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1))
    execute(made.plan(CASES[0], effort=exactly(3)), store, worker, Silent())
    assert [one.timeout_s for one in worker.limits] == [300.0, 60.0, 60.0]  # a fake trial takes one second


def test_what_was_asked_for_limits_every_trial(store: Store) -> None:
    worker = FakeWorker(torch=noisy(1))
    planned = made.plan(CASES[0], effort=exactly(2))
    asked = dataclasses.replace(planned.config, timeout_s=90.0, memory_limit_bytes=4 << 30)
    execute(dataclasses.replace(planned, config=asked), store, worker, Silent())
    assert worker.limits == [Limits(90.0, "--timeout 90 s", 4 << 30)] * 2
    assert load(store.journal).config == asked  # which is what --resume goes on with


def test_a_frozen_protocol_stays_as_it_is() -> None:
    frozen = Protocol(steps_per_slice=8, warmup_slices=4)
    assert rows.freeze(frozen, made.measurement()) == frozen
