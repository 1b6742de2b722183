"""Folders of result files, and several runs as one: what is taken from which, and what is said of its origin."""

import dataclasses
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.errors import ResultsError
from kerasbench.host.noise import WarningKind
from kerasbench.modes import explain, fastest, soak, versus
from kerasbench.modes import run as plain
from kerasbench.modes.mode import Mode
from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.results import run as saved
from kerasbench.results.merge import distinct, merge, merge_by_machine
from kerasbench.results.run import OperationCount, Run, RunConfig
from kerasbench.results.store import Store, load, records
from tests import made
from tests.made import TORCH


def run(
    step_ms: float,
    name: str = "dense",
    rounds: int = 3,
    options: Options = DEFAULT,
    day: int = 1,
    mode: Mode[Any] = plain.MODE,
    own: object = None,
    **asked: Any,
) -> Run:
    """Two columns whose steps take so long, and twice as long."""
    trials = [
        trial
        for backend, ms in (("torch", step_ms), ("jax", 2 * step_ms))
        for trial in made.in_rounds(
            *(ms * (1 + index / 1000) for index in range(rounds)), name=name, backend=backend, options=options
        )
    ]
    config = mode.configured(RunConfig(**asked), own)
    return made.changed(made.record(*trials, rounds=rounds), config=config, started=f"2026-01-{day:02}")


def rows(*records: Run) -> dict[str, Row]:
    return {row.label: row for row in summarize(merge(records)).rows}


def step_ms(row: Row) -> float:
    return round(made.estimated(row.cases[TORCH].estimate(row.headline)).value, 1)


BATCH = Options(batch=128)
SWEPT = run(9.0, options=BATCH, effort=saved.Effort(plan=saved.SWEEP))
EXPLAINED = run(7.0, options=BATCH, mode=explain.MODE, day=2)
PUBLISHED = run(5.0, "conv", 1, effort=saved.PUBLISHED, day=3)


@pytest.mark.parametrize(
    ("runs", "steps_ms"),
    [
        ([run(1.0), run(2.0, day=2)], {"dense": 2.0}),  # the newer
        ([run(1.0), run(2.0, day=2, mode=versus.MODE)], {"dense": 1.0}),
        ([run(1.0), run(2.0, day=2, mode=fastest.MODE)], {"dense": 1.0}),
        ([run(1.0), run(2.0, day=2, mode=soak.MODE)], {"dense": 1.0}),
        ([run(1.0), run(2.0, day=2, mode=explain.MODE)], {"dense": 1.0}),
        ([run(1.0), run(2.0, day=2, options=Options(jit=False))], {"dense": 1.0}),  # not the default columns
        ([run(1.0), PUBLISHED], {"dense": 1.0, "conv": 5.0}),
        ([run(1.0), SWEPT], {"dense": 1.0, "dense batch=128": 9.0}),
        ([SWEPT, EXPLAINED], {"dense batch=128": 9.0}),
        ([EXPLAINED], {"dense batch=128": 7.0}),
    ],
)
def test_a_row_is_of_the_run_that_measured_it_best(runs: list[Run], steps_ms: dict[str, float]) -> None:
    assert {label: step_ms(row) for label, row in rows(*runs).items()} == steps_ms


def test_a_row_tells_the_run_that_it_comes_from_and_keeps_what_was_counted_there() -> None:
    origins = {label: row.origin.agenda.name for label, row in rows(run(1.0), PUBLISHED).items()}
    assert origins == {"dense": "steady", "conv": "published"}
    counted = [OperationCount("dense", "default", 1e6), OperationCount("conv", "default", 2e6)]
    explained = dataclasses.replace(run(7.0, mode=explain.MODE), flops=counted)
    assert merge([run(1.0, "conv", day=2), explained]).flops == counted[:1]


def test_each_machine_has_a_record_of_its_own_and_a_run_that_is_outranked_is_let_go() -> None:
    other = made.changed(run(4.0, day=3), machine={"chip": "another"})
    old = run(1.0)
    is_let_go = weakref.ref(old)
    runs = [old, run(2.0, day=2), other]
    del old

    def in_turn() -> Iterator[Run]:
        yield runs.pop(0)
        yield runs.pop(0)
        gc.collect()
        assert is_let_go() is None
        yield runs.pop(0)

    assert [record.started for record in merge_by_machine(in_turn())] == ["2026-01-02", "2026-01-03"]


def test_a_copy_of_a_run_and_what_was_superseded_when_it_was_resumed_are_that_run() -> None:
    superseded, other = run(1.0), run(1.0, day=2)
    resumed = dataclasses.replace(superseded, resumed=["2026-01-03"], trials=superseded.trials[:2])
    assert list(map(id, distinct([superseded, resumed, superseded, other]))) == [id(resumed), id(other)]


def test_of_runs_without_trials_the_newest_stands() -> None:
    empty = [dataclasses.replace(made.record(), started=day) for day in ("2026-01", "2026-02")]
    assert (merge(empty).trials, merge(empty).started) == ([], "2026-02")


def test_what_has_too_few_rounds_is_not_called_faster_because_others_have_enough() -> None:
    summary = summarize(merge([run(1.0), run(1.0, "conv", 1)]))
    assert {row.label: place.winner for row, place in summary.ranked} == {"conv": None, "dense": TORCH}
    assert [concern.row for concern in concerns(summary) if concern.what is WarningKind.FEW] == ["conv"]
    (alone,) = summarize(merge([run(1.0, "conv", 1)])).rankings
    assert (alone.fastest, alone.winner) == (TORCH, None)


def test_a_round_that_was_left_open_stays_left_out() -> None:
    interrupted = dataclasses.replace(run(1.0, "conv", 2), rounds_completed=1)
    assert len(rows(run(1.0, rounds=5), interrupted)["conv"].cases[TORCH].trials) == 1


def sized(workload: str, day: int, batch: int = 32) -> Run:
    """A run of a model that describes the one size that it measured."""
    record = made.described(run(float(day), day=day), name=workload, batch=batch)
    return dataclasses.replace(record, trials=[made.changed(trial, workload=workload) for trial in record.trials])


def test_each_size_of_a_model_has_its_row_whichever_run_measured_it() -> None:
    sizes = rows(sized("batch-8", 1, 8), sized("batch-64", 2, 64), sized("default", 3)).values()
    assert {row.workload.name: step_ms(row) for row in sizes} == {"batch-8": 1.0, "batch-64": 2.0, "default": 3.0}


def test_a_row_is_described_by_the_run_that_it_is_taken_of() -> None:
    newer = sized("default", 2)  # it lists the other workload too, which it did not measure
    listed = {"workloads": [made.workload("tiny"), made.workload("default")]}
    newer.scenarios[0] = made.changed(newer.scenarios[0], description=listed)
    described = [row.workload for row in summarize(merge([sized("tiny", 1, 8), newer])).rows]
    assert [(workload.name, workload.batch) for workload in described] == [("tiny", 8), ("default", 32)]


STARTS = ["2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z", "2026-01-04T03:04:05Z"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for start in STARTS:
        made.stored(tmp_path, dataclasses.replace(made.record(made.trial()), started=start))
    return tmp_path


def test_a_folder_is_read_from_the_oldest_on_or_from_the_newest(folder: Path) -> None:
    for newest_first in (False, True):
        started = [record.started for _, record in records(folder, newest_first=newest_first)]
        assert started == sorted(STARTS, reverse=newest_first)


@pytest.mark.parametrize(
    ("name", "is_damaged"),
    [("2026-01-05T030405.json", True), ("2026-01-03T030405-2.jsonl", True), ("notes.json", False)],
)
def test_a_damaged_result_ends_the_reading_unless_somebody_takes_it(folder: Path, name: str, is_damaged: bool) -> None:
    """What others have written is passed over: it goes by the names that runs give."""
    (folder / name).write_text("{")
    told: list[Path] = []
    assert [record.started for _, record in records(folder, lambda file, why: told.append(file))] == STARTS
    assert told == [folder / name]
    if is_damaged:
        with pytest.raises(ResultsError, match=f"move it out of {folder} to go on without it"):
            list(records(folder))
    else:
        assert len(list(records(folder))) == len(STARTS)


def test_a_run_that_ends_while_its_folder_is_read_is_read_from_its_data_file(folder: Path) -> None:
    data = folder / "2026-01-04T030405.json"
    store = Store(data.with_suffix(".jsonl"))
    store.begin(dataclasses.replace(made.record(made.trial()), started=STARTS[-1]))
    reading = records(folder)
    next(reading)  # one file at a time is read: this one was listed, and then is over
    store.finish(load(store.journal))
    assert [file for file, _ in reading][-1] == data
