"""A whole run is tried with real children; here are its steps, one by one."""

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from kerasbench import host
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import MachineBusy, ResultsError, UsageError
from kerasbench.host.lock import machine_lock
from kerasbench.plan.cases import Plan
from kerasbench.protocol.columns import Environment
from kerasbench.report.progress import ConsoleAudience
from kerasbench.results import record
from kerasbench.results.record import Effort, Record, ResumeConfig, RunConfig
from kerasbench.results.store import Store, load
from kerasbench.runs import run
from kerasbench.runs.rows import seconds
from tests import made
from tests.runs.test_crossings import crossing, swept_plan


def never(planned: Plan, earlier: Record | None) -> Record:
    raise AssertionError("nothing was asked for")


def test_a_run_that_wants_no_further_sizes_stays_as_it_is() -> None:
    record = crossing(planted=1e9)
    assert run._refined(swept_plan(), record, 0.0, never) is record
    assert run._refined(made.plan(made.case()), record, 0.0, never) is record


def test_further_sizes_begin_with_what_was_measured_and_end_in_one_record() -> None:
    def execute(planned: Plan, earlier: Record | None) -> Record:
        assert earlier is not None
        added = [made.trial(1, options=case.options) for case in planned.cases[12:]]
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


def test_a_run_is_not_resumed_where_a_variable_that_it_let_in_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = RunConfig(keep_env={"OMP_PROC_BIND": "true"})
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    begun = dataclasses.replace(made.record(made.trial()), config=asked, machine=host.fingerprint())
    store.finish(dataclasses.replace(begun, stopped_because="interrupted"))
    monkeypatch.setenv("OMP_PROC_BIND", "false")
    audience = ConsoleAudience(Console(file=io.StringIO()))
    with (
        pytest.raises(UsageError, match="let in OMP_PROC_BIND=true, which is 'false' here"),
        run.measured(ResumeConfig(), tmp_path, Interpreters(), audience),
    ):
        pytest.fail("it measured")


def test_more_time_is_added_to_what_the_trials_took_that_count() -> None:
    planned = made.plan(made.case(), effort=Effort(budget_s=60.0))
    earlier = made.record(*(dataclasses.replace(made.trial(index), block=index) for index in (1, 2)))
    assert seconds(earlier.trials) == 18
    assert run._with_more_time(planned, earlier, 600.0).effort == Effort(budget_s=618.0)
    assert run._with_more_time(planned, made.record(), 600.0).effort == Effort(budget_s=600.0)


def test_a_run_with_labels_is_not_resumed_without_their_interpreters(tmp_path: Path) -> None:
    asked = RunConfig(environments=["torch", "torch@old"])
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    begun = dataclasses.replace(made.record(made.trial()), config=asked, machine=host.fingerprint())
    store.finish(dataclasses.replace(begun, stopped_because="interrupted"))
    audience = ConsoleAudience(Console(file=io.StringIO()))
    with (
        pytest.raises(UsageError, match=r"measured torch@old: name its interpreter again, --python torch@old=PATH"),
        run.measured(ResumeConfig(), tmp_path, Interpreters({Environment("torch", "new"): "/python"}), audience),
    ):
        pytest.fail("it measured")


def test_what_is_asked_for_says_whom_its_columns_are_for_where_interpreters_have_labels() -> None:
    asked = RunConfig(backends=["torch", "jax"])
    assert run.with_columns(asked, Interpreters({Environment("torch"): "/python"})) == asked
    found = run.with_columns(
        asked, Interpreters(made.by_environment({"torch@old": "/old/python", "torch@new": "/new/python"}))
    )
    assert found.environments == ["torch@old", "torch@new", "jax"]
    assert run.with_columns(found, Interpreters({Environment("jax", "other"): "/python"})) == found


def test_the_machine_is_held_until_what_was_measured_has_been_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audience = ConsoleAudience(Console(file=io.StringIO()))
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    monkeypatch.setattr(run, "_measured", lambda *_: run.FinishedRun(made.record(made.trial()), store))
    with (
        run.measured(RunConfig(scenarios=["mnist_dense"]), tmp_path, Interpreters(), audience),
        pytest.raises(MachineBusy),
        machine_lock(),
    ):
        pytest.fail("another run measures meanwhile")
    with machine_lock():
        pass


def test_what_the_disk_refuses_is_kept_to_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(record: Record) -> None:
        raise ResultsError("no space left")

    store, record = Store.create(tmp_path, "2026-01-02T03:04:05Z"), made.record(made.trial())
    assert run._saved(store, record) == run.FinishedRun(record, store)
    monkeypatch.setattr(store, "finish", full)
    assert run._saved(store, record) == run.FinishedRun(record, store, "no space left")


def test_trials_of_other_code_go_to_a_file_of_their_own_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = (dataclasses.replace(made.trial(1), code=one) for one in (record.measuring_code(), "other"))
    run._keep_superseded(tmp_path, made.record(own, other))
    (file,) = tmp_path.glob("*.json")
    assert load(file).trials == [own, other]
    said = "2 trials measured again: not counted any more; other code of kerasbench measured 1 of them"
    assert f"{said}; kept in {file}" in capsys.readouterr().err
