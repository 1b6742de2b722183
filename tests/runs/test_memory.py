"""Memory: of a machine where it runs out beside others, at a size or at a limit, and of a parent of many trials."""

import io
import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from kerasbench.analysis.summary import summarize
from kerasbench.processes import block
from kerasbench.processes.block import BlockMember
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import ModelConfig
from kerasbench.report.progress import ConsoleProgress
from kerasbench.results.run import SWEEP, exactly
from kerasbench.results.store import Store, load
from kerasbench.runs import launcher
from kerasbench.runs.machine import MachineMonitor
from tests import made, stand_in
from tests.scripted import CASES, FakeWorker, run

SWEPT = exactly(2, SWEEP)
OOM = Failure(Code.OOM, "no memory", "less of it")
SERIES = [made.case(options=Options(batch=batch)) for batch in (1, 2, 4, 8)]


def small(*batches: int) -> FakeWorker:
    return FakeWorker(fails=lambda request: OOM if request.options.get("batch") in batches else None)


def test_a_series_is_not_tried_at_larger_sizes_than_it_ran_out_of_memory_at(store: Store) -> None:
    four = Options(batch=4)
    others = [made.case("conv", options=four), made.case(backend="jax", options=four), made.case()]
    others.append(made.case(options=Options(batch=4, jit=True)))
    record = run(store, small(2), *SERIES, *others, effort=SWEPT)
    not_tried = made.changed(OOM, cause="not tried: out of memory at batch 2")
    failures = {trial.case: trial.failure for trial in record.trials if trial.failure}
    assert failures == {SERIES[1].key: OOM, SERIES[2].key: not_tried, SERIES[3].key: not_tried}
    assert {trial.case for trial in record.trials if not trial.block} == {case.key for case in SERIES[2:]}
    measured = Counter(trial.case for trial in record.trials if trial.measurement)
    assert measured == {case.key: 2 for case in (SERIES[0], *others)}
    assert load(store.journal).trials == record.trials


def test_a_size_that_was_measured_goes_on_where_a_smaller_one_ran_out_of_memory(store: Store) -> None:
    record = run(store, small(8, 2), *SERIES[::-1], effort=SWEPT)
    assert [trial.options.get("batch") for trial in record.trials if trial.failure] == [8, 2]
    assert [trial.options.get("batch") for trial in record.trials if trial.measurement] == [4, 1, 4, 1]


def test_another_failure_does_not_end_a_series(store: Store) -> None:
    record = run(store, FakeWorker(torch=[made.FAILURE, made.measurement()]), *SERIES, effort=SWEPT)
    assert [trial.options.get("batch") for trial in record.trials if trial.failure] == [1]


def test_a_run_goes_on_with_more_sizes_where_all_others_are_carried_over(store: Store) -> None:
    first = run(store, FakeWorker(), *SERIES[:2], effort=SWEPT)
    record = run(store, FakeWorker(), *SERIES, effort=SWEPT, carried=first.trials)
    assert [(trial.options.get("batch"), trial.round) for trial in record.trials] == [
        *[(1, 1), (2, 1), (1, 2), (2, 2)],
        *[(4, 1), (8, 1), (4, 2), (8, 2)],
    ]
    assert load(store.journal).trials == record.trials


class Crowded(FakeWorker):
    """JAX runs out of memory where another column is alive."""

    def answer(self, entrant: BlockMember) -> Outcome:
        answer = super().answer(entrant)
        dies = len(self.entrants) > 1 and entrant.request.backend == "jax"
        return Outcome([], 10**9, failure=OOM) if dies else answer


def test_what_runs_out_of_memory_beside_others_is_measured_by_itself_and_larger_sizes_too(store: Store) -> None:
    backends = ("torch", "jax", "tensorflow")
    worker = Crowded()
    cases = [made.case(backend=backend, options=Options(batch=batch)) for batch in (1, 2) for backend in backends]
    record = run(store, worker, *cases, effort=SWEPT)
    in_company, alone, later = ["torch", "jax", "tensorflow"], ["jax"], ["torch", "tensorflow"]
    assert worker.blocks == [in_company, alone] * 2 + [later, alone] * 2
    tried = [trial for trial in record.trials if trial.backend == "jax"]
    assert [(trial.options.get("batch"), trial.round, trial.crowded) for trial in tried] == [
        *[(1, 1, True), (1, 1, False), (2, 1, True), (2, 1, False)],
        *[(1, 2, False), (2, 2, False)],
    ]
    assert all((trial.failure == OOM) is trial.crowded for trial in tried)
    rows = summarize(record).rows[:2]
    assert all(case.failure is None and len(case.trials) == 2 for row in rows for case in row.cases.values())
    assert load(store.journal).rounds_completed == 2


def test_what_fails_by_itself_too_has_failed_whether_by_its_own_limit_or_for_want_of_memory(store: Store) -> None:
    worker = FakeWorker(jax=[made.changed(OOM, own_limit=True)])
    record = run(store, worker)
    assert worker.blocks == [["torch", "jax"], ["torch"]]
    assert not any(trial.crowded for trial in record.trials)
    worker = Crowded(jax=[OOM])
    record = run(store, worker)
    assert worker.blocks == [["torch", "jax"], ["jax"], ["torch"]]
    assert summarize(record).rows[0].cases[Column("jax", "cpu")].failure == OOM


@pytest.mark.parametrize(("done", "rounds_left"), [(2, 2), (3, 1)])
def test_a_round_of_which_a_crowded_column_is_missing_begins_again(store: Store, done: int, rounds_left: int) -> None:
    worker = Crowded()
    run(store, worker, carried=run(store, Crowded()).trials[:done])
    assert worker.blocks == [["torch"], ["jax"]] * rounds_left


@pytest.mark.parametrize(
    ("file", "trusted", "asked_gib", "allowed_gib"),
    [
        ("net.keras", False, 0, 3),  # of four that are free
        ("net.keras", False, 1, 1),
        ("net.keras", True, 0, 0),
        ("net.py", False, 0, 0),
        ("keras.applications.ResNet50", False, 0, 0),
    ],
)
def test_a_saved_model_may_not_hold_all_memory(
    file: str, trusted: bool, asked_gib: int, allowed_gib: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "available_bytes", lambda: 4 << 30)
    config = ModelConfig(trust=trusted)
    case = made.changed(CASES[0], selected={"entry": {"file": Path(file), "model_config": config}})
    worker = FakeWorker()
    run(store, worker, case, effort=exactly(1), config={"memory_limit_bytes": asked_gib << 30 or None})
    assert worker.limits[0].memory_bytes == (allowed_gib << 30 or None)
    assert worker.requests[0].model_config == config


SETTLED = 0.2  # of the trials: by then everything that is imported late has been
TRIAL_BYTES = 64 << 10  # what is kept of a trial takes about 10 KiB; the rest is the allocator's


@pytest.mark.processes
@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.weekly)])
def test_trials_leave_no_descriptor_no_thread_and_no_memory_behind(store: Store, tmp_path: Path, count: int) -> None:
    held: list[tuple[int, int]] = []  # by this process before each block: descriptors, threads
    memory_bytes: list[int] = []

    def launch(entrants: Sequence[BlockMember], *rest: Any) -> list[Outcome | None]:
        here = psutil.Process()
        held.append((here.num_fds(), threading.active_count()))
        memory_bytes.append(here.memory_info().rss)
        return partial(block.measure, kept={})(entrants, *rest)

    stand_in.furnish(tmp_path)
    cases = [made.case(f"s{number}", backend) for number in range(5) for backend in stand_in.BACKENDS]
    record = run(
        store,
        launch,
        *cases,
        effort=exactly(count // len(cases)),
        events=ConsoleProgress(Console(file=io.StringIO())),
        monitor=MachineMonitor(look=lambda sample_s: made.state()),
        interpreter=lambda backend, runtime: str(tmp_path / "python"),
    )
    assert [trial.failure for trial in record.trials] == [None] * count
    settled = int(SETTLED * len(held))
    assert set(held[settled:]) == {held[settled]}
    assert memory_bytes[-1] - memory_bytes[settled] < TRIAL_BYTES * (1 - SETTLED) * count
