"""A whole run is tried with real children; here is what it does when a sweep wants further sizes."""

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from kerasbench import machine
from kerasbench.children import questions
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import ResultsError, UnusableScenario, UsageError
from kerasbench.exchange.messages import Code, Failure
from kerasbench.plan.cells import Cell, Plan
from kerasbench.report.preparation import Preparation
from kerasbench.results.asked import Asked
from kerasbench.results.record import Record
from kerasbench.results.store import Store
from kerasbench.runs import run
from tests import made
from tests.runs.test_crossings import crossing, swept_plan


def never(planned: Plan, earlier: Record | None) -> Record:
    raise AssertionError("nothing was asked for")


def test_a_run_that_wants_no_further_sizes_stays_as_it_is() -> None:
    record = crossing(planted=1e9)
    assert run._refined(swept_plan(), record, 0.0, never) is record
    assert run._refined(made.plan(made.cell()), record, 0.0, never) is record


def test_further_sizes_begin_with_what_was_measured_and_end_in_one_record() -> None:
    def execute(planned: Plan, earlier: Record | None) -> Record:
        assert earlier is not None
        added = [made.trial(1, options=cell.options) for cell in planned.cells[12:]]
        return dataclasses.replace(earlier, trials=[*earlier.trials, *added])

    first = crossing()
    record = run._refined(swept_plan(), first, 0.0, execute)
    assert record.started == first.started
    assert {trial.options.batch for trial in record.trials} == {1, 8, 16, 32, 64, 512}


def test_a_disk_that_takes_no_further_sizes_leaves_what_was_measured() -> None:
    def execute(planned: Plan, earlier: Record | None) -> Record:
        raise ResultsError("full")

    first = crossing()
    assert run._refined(swept_plan(), first, 0.0, execute) is first


def with_real_rows(title: str) -> Cell:
    cell = made.cell(name=title.lower())
    regime = dataclasses.replace(cell.selected.regime, data=title, has_real_data=True)
    return dataclasses.replace(cell, selected=dataclasses.replace(cell.selected, regime=regime))


def test_each_download_is_said_before_it_begins_and_all_that_fail_are_told_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = io.StringIO()
    seen: list[int] = []

    def fetch(file: str, *rest: str) -> str | Failure:
        seen.append(out.getvalue().count("\n"))
        return "Iris" if "iris" in file else Failure(Code.UNAVAILABLE, "no network", "")

    monkeypatch.setattr(questions, "fetch", fetch)
    planned = made.plan(*map(with_real_rows, ("Iris", "MNIST", "MNIST")))
    with pytest.raises(UnusableScenario, match=r"^mnist: no network$"):
        run.fetch_all(planned, Interpreters(), Preparation(Console(file=out, width=200)))
    assert seen == [1, 2]
    assert [line.partition(":")[0] for line in out.getvalue().splitlines()] == ["Iris", "MNIST"]


def test_a_run_is_not_resumed_where_a_variable_that_it_let_in_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(keep_env={"OMP_PROC_BIND": "true"})
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    begun = dataclasses.replace(made.record(made.trial()), asked=asked, machine=machine.fingerprint())
    store.finish(dataclasses.replace(begun, stopped_because="interrupted"))
    monkeypatch.setenv("OMP_PROC_BIND", "false")
    with pytest.raises(UsageError, match="let in OMP_PROC_BIND=true, which is 'false' here"):
        run.measure(Asked(), tmp_path, Interpreters(), resumed=True)
