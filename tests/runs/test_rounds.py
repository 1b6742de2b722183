"""Runs by a worker that answers at once: rounds, blocks, memory, and what goes on after an interruption."""

import dataclasses
import io
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kerasbench.analysis.cases import Measured
from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError
from kerasbench.events import (
    BlockStarted,
    CycleEnded,
    Event,
    Notice,
    PhaseStarted,
    RoundEnded,
    RowEnded,
    RunEnded,
    RunStarted,
    StepsKnown,
    Tick,
    TrialEnded,
    TrialStarted,
    Waiting,
)
from kerasbench.host.load import LoadLimit
from kerasbench.host.noise import Severity, Signal
from kerasbench.plan.cases import Case
from kerasbench.plan.duration import History
from kerasbench.processes.block import BlockMember, OnBlockEvent
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.protocol.measurement import Latency, Measurement, Parity, Samples, Slice
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import ModelConfig
from kerasbench.report.progress import ConsoleProgress
from kerasbench.results.run import QUICK, SWEEP, Effort, RaceConfig, Run, SoakConfig, Trial, exactly
from kerasbench.results.store import Store, load
from kerasbench.runs import machine, rounds, rows, turns
from kerasbench.runs.machine import processors
from kerasbench.runs.schedule import order_cases
from tests import made
from tests.scripted import CASES, Events, FakeWorker, Quiet, execute, noisy, with_config

THREE = [*CASES, made.case(backend="tensorflow")]
PRECISE = "the session's own noise is below ±2 % for every ratio"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, "2026-01-02T03:04:05Z")


def run(store: Store, worker: FakeWorker, *cases: Case, count: int = 2, **different: Any) -> Run:
    """Execute so many rounds of these cases, of a scenario on two backends if none are given."""
    return execute(made.plan(*(cases or CASES), effort=exactly(count)), store, worker, **different)


def test_a_row_that_is_decided_takes_no_further_block_and_the_others_go_on(store: Store) -> None:
    quiet, loud = made.case("quiet"), [made.case("loud"), made.case("loud", "jax")]
    worker, events = FakeWorker(jax=noisy(2, 3)), Events()
    record = execute(made.plan(quiet, *loud, effort=Effort(3, 5)), store, worker, events=events)
    had = Counter(trial.case for trial in record.trials)
    assert (had[quiet.key], had[loud[0].key], record.rounds_completed) == (3, 5, 5)
    assert record.stopped_because == f"1 workload: {PRECISE}; 1 workload: all 5 rounds are done"
    assert events.of(RowEnded) == [
        RowEnded([quiet], "the session's own noise is below ±2 % for every time"),
        RowEnded(loud, "all 5 rounds are done"),
    ]


def test_only_a_row_s_first_blocks_are_started_one_after_another(store: Store) -> None:
    worker = FakeWorker()
    record = run(store, worker, count=5)
    assert worker.alone == [True] * 3 + [False] * 2
    assert [trial.started_alone for trial in record.trials] == [True] * 6 + [False] * 4


@pytest.mark.parametrize(("free_gib", "alone"), [(64, False), (3, True)])
def test_a_quick_look_starts_all_at_once_where_memory_is_ample(
    store: Store, monkeypatch: pytest.MonkeyPatch, free_gib: int, alone: bool
) -> None:
    monkeypatch.setattr(machine, "available_bytes", lambda: free_gib << 30)
    worker = FakeWorker()
    execute(made.plan(*CASES, effort=QUICK), store, worker)
    assert worker.alone == [alone]


def test_no_column_always_starts_first_unless_not_all_fit_into_memory_and_the_same_ones_meet(store: Store) -> None:
    worker = FakeWorker()
    run(store, worker, *THREE, count=8, in_order=order_cases)
    first, last = ({block[place] for block in worker.blocks} for place in (0, 2))
    assert first == last == {"torch", "jax", "tensorflow"}
    worker, resumed = FakeWorker(2), FakeWorker(2)
    whole = run(store, worker, *THREE, count=4, in_order=order_cases).trials
    assert worker.blocks == worker.blocks[:2] * 4
    run(store, resumed, *THREE, count=4, in_order=order_cases, carried=whole[:4])
    assert resumed.blocks == worker.blocks[2:]


@pytest.mark.parametrize(
    ("room", "blocks"),
    [
        (2, [["torch", "jax"], ["torch", "tensorflow"]]),  # beside the first column again
        (1, [["torch"], ["jax"], ["tensorflow"]]),
    ],
)
def test_what_does_not_fit_is_measured_in_further_blocks_of_the_round(
    store: Store, room: int, blocks: list[list[str]]
) -> None:
    worker = FakeWorker(room)
    record = run(store, worker, *THREE, count=1)
    assert worker.blocks == blocks
    assert [(one.backend, one.round, one.block) for one in record.trials] == [
        (backend, 1, number) for number, block in enumerate(blocks, start=1) for backend in block
    ]


def test_one_column_that_is_too_large_takes_no_other_from_the_side_of_the_first(store: Store) -> None:
    class OneIsLarge(FakeWorker):
        """TensorFlow fits beside nothing else."""

        def fitting(self, backends: Sequence[str]) -> list[bool]:
            return [index == 0 or backend != "tensorflow" for index, backend in enumerate(backends)]

    worker = OneIsLarge()
    record = run(store, worker, THREE[0], THREE[2], THREE[1], made.case(backend="native"))
    assert worker.blocks == [["torch", "jax", "native"], ["torch"], ["tensorflow"]] * 2
    assert {one.round for one in record.trials if one.backend == "tensorflow"} == {1, 2}


@pytest.mark.parametrize(("failing", "had"), [(0, 1), (1, 1), (2, 3)])
def test_versions_are_not_measured_on_when_one_of_them_has_failed(store: Store, failing: int, had: int) -> None:
    versions = [Options(environment="old"), Options(environment="new"), Options(environment="old", control=True)]

    class OneFails(FakeWorker):
        def answer(self, entrant: BlockMember) -> Outcome:
            answer = super().answer(entrant)
            return Outcome([], 10**9, failure=made.FAILURE) if entrant.request.options == versions[failing] else answer

    worker, events = OneFails(torch=noisy(1, 3, 2)), Events()
    cases = [dataclasses.replace(made.case(options=options), paired=True) for options in versions]
    record = run(store, worker, *cases, count=3, events=events)
    assert len(worker.blocks) == record.rounds_completed == had
    if had == 1:
        assert record.stopped_because == "base or head failed, so nothing is left to compare"
        (ended,) = events.of(RowEnded)
        assert (ended.cases[0].row_label, ended.reason) == ("dense torch cpu", record.stopped_because)


def test_a_column_that_was_found_to_differ_takes_no_other_with_it_in_later_rounds(store: Store) -> None:
    def computing(*losses: float) -> list[Measurement | Failure]:
        normalised = Parity([*losses], [], sensitive=["BatchNormalization"])
        return [dataclasses.replace(made.measurement(losses=losses), parity=normalised)]

    worker = FakeWorker(torch=computing(1.0, 1.08), jax=computing(1.0, 0.92), tensorflow=computing(1.05, 1.0))
    record = run(store, worker, *THREE)
    assert [sorted(block) for block in worker.blocks] == [["jax", "tensorflow", "torch"], ["jax", "torch"]]
    failed = [column.backend for column, case in summarize(record).rows[0].cases.items() if case.failure]
    assert failed == ["tensorflow"]
    known = load(store.journal).trials
    again = run(store, worker, *THREE, carried=known[:3])
    assert [one.failure is not None for one in again.trials] == [one.failure is not None for one in record.trials]


@pytest.mark.parametrize("room", [None, 2])
def test_a_column_that_computes_something_else_is_measured_once_and_decides_nothing(
    store: Store, room: int | None
) -> None:
    odd = [made.measurement(step, losses=(9.0, 8.0, 7.0, 6.0, 5.0, 4.0)) for step in (3, 9, 4)]
    worker = FakeWorker(room, torch=noisy(1, 1.001), jax=noisy(2, 2.001), tensorflow=[*odd])
    record = execute(made.plan(*THREE), store, worker)
    assert (record.rounds_completed, record.stopped_because) == (3, PRECISE)
    measured, failed = [one for one in record.trials if one.backend == "tensorflow"]
    assert measured.measurement == odd[0]
    assert failed.failure is not None and failed.failure.code is Code.PARITY
    assert load(store.journal).trials == record.trials
    row = summarize(record).rows[0]
    assert row.rounds == 3 and row.cases[measured.column].failure == failed.failure
    assert [len(case.trials) for case in row.cases.values()] == [3, 1, 3 if room is None else 4]


def test_a_first_trial_calibrates_and_later_ones_leave_out_what_is_known_or_what_no_row_waits_for(store: Store) -> None:
    worker = FakeWorker()
    run(store, worker, count=6)
    asked = [one.protocol for one in worker.requests if one.backend == "torch"]
    assert [(one.steps_per_slice, one.warmup_slices) for one in asked] == [(None, None), *[(50, 1)] * 5]
    assert [(one.repeats, one.epochs, one.predicts) for one in asked] == [
        *[(True, True, True)] * 3,
        *[(False, False, False)] * 2,
        (False, True, True),
    ]


def test_another_round_is_expected_to_take_what_the_last_ones_took_with_those_that_are_left() -> None:
    row = rows.OpenRow([made.case()], had=6)
    for index in range(1, 7):
        taken_s = 100 if index < 4 else 30
        row.take(dataclasses.replace(made.in_block(index, made.measurement()), wall_ns=taken_s * 10**9))
    assert row.block_s == 30
    cases = [made.case(backend=backend) for backend in ("jax", "torch")]
    row = rows.OpenRow(cases, had=1)
    for case in cases:
        row.take(dataclasses.replace(made.in_block(1, made.measurement(), backend=case.backend), wall_ns=100 * 10**9))
    assert row.block_s == 100
    row.alive.pop()
    assert row.block_s == 50
    row.take(dataclasses.replace(made.in_block(2, made.measurement(), backend="jax"), wall_ns=50 * 10**9))
    row.had = 2
    assert row.block_s == 50
    assert rows.OpenRow(cases, trials=[made.trial(1, failure=made.FAILURE)]).block_s == 0  # not tried: no block


def test_a_baseline_is_asked_for_by_the_hash_of_its_file_and_the_record_keeps_it(store: Store) -> None:
    chosen = made.selected()
    chosen = dataclasses.replace(
        chosen, entry=dataclasses.replace(chosen.entry, baselines={"torch": "hash of its baseline"})
    )
    worker = FakeWorker()
    record = run(store, worker, *(Case(chosen, "torch", made.CPU, Options(native=one)) for one in (False, True)))
    asked = {one.options.native: one.baseline_hash for one in worker.requests}
    assert asked == {False: "", True: "hash of its baseline"}
    assert record.scenarios[0].twins == {"torch": "hash of its baseline"}


def test_a_run_of_which_everything_failed_ends(store: Store) -> None:
    record = run(store, FakeWorker(torch=[made.FAILURE], jax=[made.FAILURE]))
    assert (len(record.trials), record.stopped_because) == (2, "every case has failed")


def test_what_is_absent_is_recorded_without_being_tried(store: Store) -> None:
    planned = made.plan(CASES[0], effort=exactly(1), absent=((CASES[1], made.FAILURE),))
    record = execute(planned, store, FakeWorker())
    assert [(trial.backend, trial.round) for trial in record.trials] == [("jax", 0), ("torch", 1)]


def test_ctrl_c_keeps_what_was_measured(store: Store) -> None:
    class InTheSecondBlock(FakeWorker):
        def answer(self, entrant: BlockMember) -> Outcome:
            if len(self.requests) == 3:
                raise KeyboardInterrupt
            return super().answer(entrant)

    events = Events()
    record = run(store, InTheSecondBlock(), events=events)
    assert (record.stopped_because, record.rounds_completed, len(record.trials)) == ("interrupted", 1, 2)
    assert load(store.journal).trials == record.trials
    assert [event.is_first for event in events.of(BlockStarted)] == [True, False]
    assert events[-1] == RunEnded(interrupted=True)


def test_a_disk_that_takes_no_more_ends_the_run_and_loses_nothing_that_was_measured(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, added = store.add, [0]

    def until_it_is_full(trials: Sequence[Trial]) -> None:
        added[0] += 1
        if added[0] == 2:
            raise ResultsError("no space left")
        add(trials)

    monkeypatch.setattr(store, "add", until_it_is_full)
    events = Events()
    record = run(store, FakeWorker(), count=3, events=events)
    assert (record.stopped_because, len(record.trials)) == ("results could not be written", 4)
    assert len(load(store.journal).trials) == 2
    assert [notice.text for notice in events.of(Notice)] == ["no space left"]


def test_a_child_is_told_who_was_on_its_card_before_the_block(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"gpu": ("GPU-1", [7]), "cpu": ("", None)}
    monkeypatch.setattr("kerasbench.runs.rounds.card_now", lambda device: told[device.kind])
    on_card = dataclasses.replace(CASES[0], device=Device("cuda"))
    worker = FakeWorker()
    run(store, worker, on_card, CASES[1])
    assert all((request.card, request.neighbours) == told[request.device.kind] for request in worker.requests)
    assert {request.device.kind for request in worker.requests} == told.keys()


def test_a_disturbed_block_is_kept_and_marked_and_nothing_is_repeated(store: Store) -> None:
    record = run(store, FakeWorker(), monitor=Quiet(1))
    assert [(trial.round, trial.disturbed) for trial in record.trials] == [(1, True)] * 2 + [(2, False)] * 2
    assert record.trials[0].noise[0].reason == "thermal pressure level 2"


def test_later_trials_of_a_case_are_limited_by_its_first_unless_a_limit_was_asked_for(store: Store) -> None:
    worker, planned = FakeWorker(), made.plan(CASES[0], effort=exactly(3))
    execute(planned, store, worker)
    execute(with_config(planned, timeout_s=90.0), store, worker)
    assert [one.timeout_s for one in worker.limits] == [300.0, 60.0, 60.0, 90.0, 90.0, 90.0]  # a trial takes one second


OOM = Failure(Code.OOM, "no memory", "less of it")
SERIES = [made.case(options=Options(batch=batch)) for batch in (1, 2, 4, 8)]


def ascending(cases: Sequence[Case], seed: int, round_index: int) -> list[Case]:
    return sorted(cases, key=lambda case: case.options.batch or 0)


class SmallMemory(FakeWorker):
    """Runs out of memory from a batch on; in the rounds after the first one as well."""

    def __init__(self, from_batch: int) -> None:
        super().__init__()
        self.from_batch = from_batch

    def answer(self, entrant: BlockMember) -> Outcome:
        answer = super().answer(entrant)
        return answer if (entrant.request.options.batch or 0) < self.from_batch else Outcome([], 0, failure=OOM)


def sweep(store: Store, worker: FakeWorker, order: Any, *cases: Case, carried: Sequence[Trial] = ()) -> Run:
    return execute(made.plan(*cases, effort=exactly(2, SWEEP)), store, worker, in_order=order, carried=carried)


def test_a_series_is_not_tried_at_larger_sizes_than_it_ran_out_of_memory_at(store: Store) -> None:
    worker = SmallMemory(from_batch=2)
    record = sweep(store, worker, ascending, *SERIES, made.case("conv", options=Options(batch=1)))
    tried = [(request.scenario, request.options.batch) for request in worker.requests]
    assert sorted(tried) == [("conv", 1), ("conv", 1), ("dense", 1), ("dense", 1), ("dense", 2)]
    not_tried = dataclasses.replace(OOM, cause="not tried: out of memory at batch 2")
    failures = {one.options.batch: one.failure for one in record.trials if one.failure}
    assert failures == {2: OOM, 4: not_tried, 8: not_tried}
    assert {one.options.batch for one in record.trials if not one.block} == {4, 8}
    assert load(store.journal).trials == record.trials


class Crowded(FakeWorker):
    """JAX runs out of memory where another column is alive."""

    def answer(self, entrant: BlockMember) -> Outcome:
        answer = super().answer(entrant)
        dies = len(self.entrants) > 1 and entrant.request.backend == "jax"
        return Outcome([], 10**9, failure=OOM) if dies else answer


def test_what_runs_out_of_memory_beside_others_is_measured_by_itself_and_larger_sizes_too(store: Store) -> None:
    backends = ("torch", "jax", "tensorflow")
    cases = [made.case(backend=one, options=Options(batch=batch)) for batch in (1, 2) for one in backends]
    worker = Crowded()
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


def test_what_fails_by_itself_too_has_failed_whether_by_its_own_limit_or_for_want_of_memory(store: Store) -> None:
    worker = FakeWorker(jax=[dataclasses.replace(OOM, own_limit=True)])
    record = run(store, worker)
    assert worker.blocks == [["torch", "jax"], ["torch"]]
    assert not any(one.crowded for one in record.trials)
    worker = Crowded(jax=[OOM])
    record = run(store, worker)
    assert worker.blocks == [["torch", "jax"], ["jax"], ["torch"]]
    assert summarize(record).rows[0].cases[Column("jax", "cpu")].failure == OOM


@pytest.mark.parametrize(("done", "rounds_left"), [(2, 2), (3, 1)])
def test_a_run_that_is_interrupted_before_a_column_was_measured_by_itself_begins_that_round_again(
    store: Store, done: int, rounds_left: int
) -> None:
    whole = run(store, Crowded()).trials
    worker = Crowded()
    run(store, worker, carried=whole[:done])
    assert worker.blocks == [["torch"], ["jax"]] * rounds_left


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
    record = sweep(store, FakeWorker(torch=[made.FAILURE, made.measurement()]), ascending, *SERIES)
    assert [one.options.batch for one in record.trials if one.failure] == [1]


def test_a_run_goes_on_with_more_sizes_where_all_others_are_carried_over(store: Store) -> None:
    first = sweep(store, FakeWorker(), ascending, *SERIES[:2])
    record = sweep(store, FakeWorker(), ascending, *SERIES, carried=first.trials)
    assert [one.options.batch for one in record.trials[:4]] == [1, 2, 1, 2]
    assert sorted((one.options.batch, one.round) for one in record.trials[4:]) == [(4, 1), (4, 2), (8, 1), (8, 2)]
    assert load(store.journal).trials == record.trials


@pytest.mark.parametrize(("quota_cores", "rest_s"), [(None, 0.0), (0.5, turns.QUOTA_PERIOD_S), (1e6, 0.0)])
def test_a_quota_recovers_between_turns(store: Store, quota_cores: float | None, rest_s: float) -> None:
    worker = FakeWorker()
    run(store, worker, count=1, state=made.state(quota_cores=quota_cores))
    assert worker.rules.rest_s == rest_s


def test_a_block_has_its_interpreters_and_rules(store: Store) -> None:
    worker = FakeWorker()
    run(store, worker, count=1, interpreter=lambda backend: f"/{backend}/python")
    assert [one.python for one in worker.entrants] == ["/torch/python", "/jax/python"]
    assert all(sorted(order) == [0, 1] for order in islice(worker.rules.orders(2), 9))
    same = [Slice(1, 100 * made.MS)] * 6
    assert worker.rules.enough("train", {0: same, 1: same})
    assert not worker.rules.enough("train", {0: same[:5], 1: same[:5]})


def test_a_block_is_judged_by_what_others_took_live_and_in_its_record(store: Store) -> None:
    slices = [Slice(50, 100 * made.MS, cycle, 0, others_ns=12 * made.MS + cycle % 2) for cycle in range(10)]
    measured = made.changed(made.measurement(), training={"slices": Samples.of(slices)})
    worker = FakeWorker(torch=[measured], jax=[measured])
    plain = made.plan(*CASES, effort=exactly(1))
    planned = dataclasses.replace(plain, machine=dataclasses.replace(plain.machine, cores=processors()))
    record = execute(planned, store, worker)
    for trial in record.trials:
        assert made.trained(made.known(trial.measurement)).slices.disturbed == [False, True] * 5
    assert not worker.rules.enough("train", {0: slices[:10], 1: slices[:10]})  # five of ten are left
    assert worker.rules.enough("train", {0: slices[:10:2] * 2, 1: slices[:10:2] * 2})
    assert record.load == LoadLimit(0.0, 0.12, 1)
    busier = execute(planned, store, worker, state=made.state(busy_share=0.005))
    assert busier.load == LoadLimit(0.005 * processors(), 0.12, 1)
    assert not any(made.trained(made.known(trial.measurement)).slices.disturbed for trial in busier.trials)


def test_the_order_of_turns_is_drawn_from_the_run_s_seed_and_differs_from_block_to_block(store: Store) -> None:
    def of_block(number: int) -> list[list[int]]:
        worker = FakeWorker()
        run(store, worker, count=number)
        return [list(order) for order in islice(worker.rules.orders(5), 10)]

    assert of_block(1) == of_block(1) != of_block(2)


@pytest.mark.parametrize(
    ("file", "config", "asked_bytes", "allowed_bytes"),
    [
        ("net.keras", ModelConfig(), None, 3 << 30),  # of four GiB that are free
        ("net.keras", ModelConfig(), 1 << 30, 1 << 30),
        ("net.keras", ModelConfig(trust=True), None, None),
        ("net.py", ModelConfig(), None, None),
        ("keras.applications.ResNet50", ModelConfig(), None, None),
    ],
)
def test_a_saved_model_may_not_hold_all_memory(
    store: Store,
    file: str,
    config: ModelConfig,
    asked_bytes: int | None,
    allowed_bytes: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "available_bytes", lambda: 4 << 30)
    entry = dataclasses.replace(CASES[0].selected.entry, file=Path(file), model_config=config)
    case = dataclasses.replace(CASES[0], selected=dataclasses.replace(CASES[0].selected, entry=entry))
    worker = FakeWorker()
    execute(with_config(made.plan(case, effort=exactly(1)), memory_limit_bytes=asked_bytes), store, worker)
    assert worker.limits[0].memory_bytes == allowed_bytes
    assert worker.requests[0].model_config == config


def test_a_run_tells_in_order_what_happens(store: Store) -> None:
    planned, events = made.plan(*CASES, effort=exactly(1)), Events()
    record = execute(planned, store, FakeWorker(), events=events, monitor=Quiet(hot=True))
    torch, jax = CASES[0].label, CASES[1].label
    assert events == [
        RunStarted(planned, record, History()),
        BlockStarted(planned.cases, is_first=True),
        Waiting("dense", "hot"),
        TrialStarted(torch),
        PhaseStarted(torch, "train"),
        TrialStarted(jax),
        PhaseStarted(jax, "train"),
        Tick(),
        TrialEnded(planned.cases[0], record.trials[0]),
        TrialEnded(planned.cases[1], record.trials[1]),
        RowEnded(planned.cases, "one round was asked for"),
        RoundEnded(record),
        RunEnded(),
    ]


@pytest.mark.parametrize("blocks", range(6))
def test_every_round_has_every_case_once_and_a_resumed_run_measures_what_is_missing(store: Store, blocks: int) -> None:
    done = 2 * blocks
    whole = run(store, FakeWorker(), count=4).trials
    tried = [(one.round, one.block, one.case) for one in whole]
    assert sorted((index, case.column.backend) for index, _, case in tried) == [
        (index, backend) for index in (1, 2, 3, 4) for backend in ("jax", "torch")
    ]
    worker, events = FakeWorker(), Events()
    resumed = run(store, worker, count=4, events=events, carried=whole[:done])
    assert [(one.round, one.block, one.case) for one in resumed.trials] == tried
    assert (resumed.rounds_completed, resumed.stopped_because) == (4, "all 4 rounds are done")
    assert resumed.finished
    assert len(worker.requests) == len(events.of(TrialEnded)) == max(0, len(whole) - done)
    assert load(store.journal).trials == resumed.trials


def test_a_resumed_run_began_when_it_was_begun(store: Store) -> None:
    signal, again = Signal("load", Severity.WARN, "20%"), "2026-01-02T09:00:00Z"
    earlier = dataclasses.replace(made.record(made.trial(1)), resumed=[again], parent_cpu_ns=7, noise=[signal])
    record = run(store, FakeWorker(), CASES[0], earlier=earlier)
    assert (record.started, record.resumed, record.noise) == (earlier.started, [again], [signal])
    assert record.parent_cpu_ns >= 7
    assert load(store.journal).started == earlier.started


def test_what_was_given_up_in_a_round_that_its_row_has_not_had_stays_given_up(store: Store) -> None:
    whole = run(store, FakeWorker()).trials
    given_up = dataclasses.replace(made.trial(2, failure=made.FAILURE), block=0)
    worker = FakeWorker()
    resumed = run(store, worker, carried=[*whole[:2], given_up])
    assert worker.blocks == [["jax"]]
    assert resumed.rounds_completed == 2


def test_a_resumed_run_goes_on_with_the_round_that_was_interrupted(store: Store) -> None:
    cases = [*CASES, made.case("conv"), made.case("quiet")]
    whole = run(store, FakeWorker(), *cases, count=3).trials
    before = [one for one in whole if one.block <= 4]  # of three rows
    resumed = run(store, FakeWorker(), *cases, count=3, carried=before).trials
    assert [(one.round, one.case) for one in resumed] == [(one.round, one.case) for one in whole]


def test_all_rows_of_a_round_are_decided_by_the_same_knowledge(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[list[int]] = []

    def count_trials(rows: Sequence[Iterable[Measured]]) -> None:
        known.append([max(len(case.trials) for case in row) for row in rows])

    monkeypatch.setattr("kerasbench.analysis.ratios.priors_of", count_trials)
    whole = run(store, FakeWorker(), *CASES, made.case("conv"), count=2)
    assert known == [[1, 1], [2, 2]]
    run(store, FakeWorker(), *CASES, made.case("conv"), count=3, carried=whole.trials)
    assert known == [[1, 1], [2, 2], [1, 1], [2, 2], [3, 3]]  # the same again


def test_a_round_sums_each_case_up_once_for_all_who_ask(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sum_up, progress, summed_up = Measured.__init__, ConsoleProgress(Console(file=io.StringIO())), [0]

    def count(measured: Measured, *given: Any) -> None:
        summed_up[-1] += 1
        sum_up(measured, *given)

    def draw(event: Event) -> None:
        progress(event)
        if isinstance(event, RoundEnded):
            summed_up.append(0)

    monkeypatch.setattr(Measured, "__init__", count)
    run(store, FakeWorker(), *THREE, made.case("conv"), count=4, events=draw)
    assert summed_up == [4, 4, 4, 4, 0]


def test_a_row_that_was_decided_stays_decided_when_a_run_is_resumed(store: Store) -> None:
    planned = made.plan(*CASES, made.case("loud"), effort=Effort(3, 5))
    quiet = [made.in_block(index, made.measurement(), backend=case.backend) for index in (1, 2, 3) for case in CASES]
    loud = [
        made.in_block(10 + index, made.measurement(step), name="loud", round_index=index)
        for index, step in enumerate((1, 3, 2), start=1)
    ]
    resumed = execute(planned, store, FakeWorker(torch=noisy(1, 3)), carried=[*quiet, *loud])
    assert {(one.scenario, one.round) for one in resumed.trials[9:]} <= {("loud", 4), ("loud", 5)}
    assert resumed.rounds_completed > 3


def test_a_resumed_run_s_budget_counts_what_was_spent_before(store: Store) -> None:
    planned = made.plan(*CASES, effort=Effort(budget_s=15.0))
    carried = [made.in_block(1, made.measurement(), backend=case.backend) for case in CASES]  # 9 s, side by side
    resumed = execute(planned, store, FakeWorker(), carried=carried)
    assert resumed.stopped_because == "another round of about 9 s does not fit into the 6 s that --budget leaves"


def test_a_row_is_sized_by_its_first_steps_once_for_all_its_columns_and_blocks(store: Store) -> None:
    sized = dataclasses.replace(made.measurement(), sizes=dataclasses.replace(made.SIZES, learn_steps=9))

    class Sizing(FakeWorker):
        def meanwhile(self, on_event: OnBlockEvent) -> None:
            if self.entrants[0].request.protocol.sizes is None:
                assert self.rules.sizes({0: [10**8], 1: [10**9 // 2]}) is None  # a hiccup, perhaps
                assert self.rules.sizes({0: [10**8], 1: [2 * 10**9]})

    worker, events = Sizing(torch=[sized], jax=[made.FAILURE, sized]), Events()
    run(store, worker, events=events)
    assert [one.protocol.sizes for one in worker.requests] == [None, None, sized.sizes]
    (known,) = events.of(StepsKnown)
    assert known.steps_ns == [(CASES[0], 10**8), (CASES[1], 2 * 10**9)]
    assert known.left_s > 12 * 2  # six slices of the slower one and what comes before


def race(store: Store, worker: FakeWorker, baseline: str, most: int, *cases: Case) -> Run:
    planned = with_config(made.plan(*cases, effort=Effort(1, most)), race=RaceConfig(baseline=baseline))
    return execute(planned, store, worker)


def sliced(*steps_ms: float) -> list[Measurement | Failure]:
    """Return a measurement by turns for each of these steps."""
    return [made.sliced([ms * (1 + 0.01 * cycle) for cycle in range(6)]) for ms in steps_ms]


def test_a_race_measures_those_alone_that_may_win_and_keras_without_settings(store: Store) -> None:
    worker = FakeWorker(torch=sliced(9.0), jax=sliced(1.0), tensorflow=sliced(4.0))
    race(store, worker, "tensorflow", 2, *THREE, made.case(backend="jax", options=Options(threads=1)))
    assert worker.blocks == [["torch", "jax", "tensorflow", "jax"], ["jax", "tensorflow", "jax"]]


def test_a_race_ends_when_no_other_can_be_faster_and_else_goes_on_with_those_that_are_left(store: Store) -> None:
    worker = FakeWorker(torch=sliced(9.0), jax=sliced(1.0), tensorflow=sliced(4.0))
    record = race(store, worker, "tensorflow", 4, *THREE)
    assert worker.blocks == [["torch", "jax", "tensorflow"]]
    assert record.stopped_because == "no other setting can beat the leader by more than the margin"
    worker = FakeWorker(torch=sliced(9.0), jax=sliced(1.0, 1.02), tensorflow=sliced(1.02, 1.0))
    record = race(store, worker, "torch", 3, *THREE)
    assert worker.blocks == [["torch", "jax", "tensorflow"]] * 3
    assert record.stopped_because == "all 3 rounds are done"


def test_a_race_for_predictions_measures_them_in_each_round(store: Store) -> None:
    planned = made.plan(*(made.case(backend=one) for one in ("jax", "torch")), effort=Effort(1, 5))
    of_batches = [[Latency(1, [1]), Latency(32, [int(ms * made.MS)] * 200)] for ms in (1.9, 2.1, 1.9, 2.1, 1.9)]
    scattered = [dataclasses.replace(made.sliced([1.0] * 6), prediction=one) for one in of_batches]
    worker = FakeWorker(torch=[*scattered], jax=sliced(1.0))
    execute(with_config(planned, race=RaceConfig("predict", baseline="jax")), store, worker)
    assert len(worker.blocks) > 3  # only later rounds could leave them out
    assert {one.protocol.predicts for one in worker.requests} == {True}


WARM = made.case(backend="jax", options=Options(warm_cache=True))


def test_a_first_process_fills_the_caches_that_a_case_s_trials_find_and_they_go_with_the_run(store: Store) -> None:
    class Folders(FakeWorker):
        def answer(self, entrant: BlockMember) -> Outcome:
            assert not entrant.request.caches or Path(entrant.request.caches).is_dir()
            return super().answer(entrant)

    worker = Folders()
    record = run(store, worker, WARM, *CASES)
    assert worker.blocks[0] == ["jax"]
    assert [one.fills_caches for one in worker.requests] == [True] + [False] * 6
    assert worker.requests[0].protocol.warmup_max_ns == 0
    (folder,) = {one.caches for one in worker.requests if one.options.warm_cache}
    assert folder and not Path(folder).exists()
    assert {one.caches for one in worker.requests if not one.options.warm_cache} == {""}
    assert len(record.trials) == 6


def test_a_case_whose_caches_cannot_be_filled_has_failed_and_the_others_go_on(store: Store) -> None:
    record = run(store, FakeWorker(jax=[made.FAILURE]), WARM, CASES[0])
    assert [(trial.backend, trial.failure is None) for trial in record.trials] == [
        ("jax", False),
        ("torch", True),
        ("torch", True),
    ]


class Interrupted(FakeWorker):
    """Somebody presses Ctrl-C so often once a cycle of the first block has been measured, or before."""

    def __init__(self, times: int, first: bool = False) -> None:
        super().__init__()
        self.times, self.first = times, first

    def meanwhile(self, on_event: OnBlockEvent) -> None:
        assert not self.rules.enough("train", {0: [Slice(1, 1)], 1: [Slice(1, 1)]})
        if not self.first:
            on_event(CycleEnded("train", {one.label: [] for one in self.entrants}, False))
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
        assert self.rules.enough("train", {0: [Slice(1, 1)], 1: [Slice(1, 1)]})


def soak(store: Store, worker: FakeWorker, *cases: Case, events: Events | None = None) -> Run:
    protocol = dataclasses.replace(Effort().protocol, soaks=True)
    planned = made.plan(*cases, effort=Effort(1, 1, cold=False, protocol=protocol))
    return execute(with_config(planned, soak=SoakConfig()), store, worker, events=events)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have Ctrl-C raise as it does in a process of one's own: pytest's helpers ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_soak_with_what_its_column_has_measured(store: Store) -> None:
    events, before = Events(), signal.getsignal(signal.SIGINT)
    record = soak(store, Interrupted(1), *CASES, made.case("conv"), events=events)
    assert record.stopped_because == "interrupted"
    assert [trial.backend for trial in record.trials if trial.measurement] == ["torch", "jax"]
    assert [one.text for one in events.of(Notice)] == [
        "ending after this turn; what was measured is kept. Ctrl-C again discards it"
    ]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(("times", "first"), [(2, False), (1, True)])
def test_ctrl_c_again_or_before_anything_was_measured_ends_a_soak_at_once(
    store: Store, times: int, first: bool
) -> None:
    record = soak(store, Interrupted(times, first), *CASES, made.case("conv"))
    assert (record.stopped_because, record.trials) == ("interrupted", [])


@pytest.mark.parametrize("measure", [soak, run])
def test_a_block_is_over_once_its_control_is_left_alone_if_it_is_a_soak_s(store: Store, measure: Any) -> None:
    class Leaving(FakeWorker):
        """Both columns are left after a cycle, then the one that goes on, then its control."""

        def meanwhile(self, on_event: OnBlockEvent) -> None:
            own, control = (one.label for one in self.entrants)
            for left, is_over in (([own, control], False), ([own], False), ([control], measure is soak)):
                on_event(CycleEnded("train", {label: [] for label in left}, False))
                assert self.rules.enough("train", {index: [Slice(1, 1)] for index in range(len(left))}) is is_over

    worker = Leaving()
    measure(store, worker, CASES[0], made.case(options=Options(control=True)))
    assert all(block == ["torch", "torch"] for block in worker.blocks)


@pytest.mark.parametrize("had_turn", [True, False])
def test_memory_that_a_soak_has_used_up_was_taken_by_no_other(store: Store, had_turn: bool) -> None:
    class Leaking(FakeWorker):
        def answer(self, entrant: BlockMember) -> Outcome:
            return dataclasses.replace(super().answer(entrant), had_turn=had_turn)

    worker = Leaking(jax=[OOM])
    record = soak(store, worker, *CASES)
    assert worker.blocks == [["torch", "jax"]] + ([] if had_turn else [["jax"]])
    assert any(one.crowded for one in record.trials) is not had_turn
