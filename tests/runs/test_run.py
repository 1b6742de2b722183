"""The steps of a whole run, one by one; a whole run is tried with real children."""

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench import host
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import MachineBusy, ResultsError, UnusableScenario, UsageError
from kerasbench.events import Notice, StepEnded, StepStarted
from kerasbench.host.lock import machine_lock
from kerasbench.host.noise import MachineState
from kerasbench.modes import registry
from kerasbench.plan import catalog
from kerasbench.plan.cases import Case
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from kerasbench.results.code import measuring_code
from kerasbench.results.run import ResumeConfig, RunConfig
from kerasbench.results.store import Store, load
from kerasbench.runs import run
from tests import made
from tests.scripted import Events

OLD_AND_NEW = Interpreters(made.by_environment({"torch@old": "/old/python", "torch@new": "/new/python"}))


@pytest.mark.parametrize(
    ("begun", "complaint"),
    [
        (RunConfig(keep_env={"OMP_PROC_BIND": "true"}), "had OMP_PROC_BIND=true, which is 'false' here"),
        (RunConfig(scenarios=["mine.py"]), "only if you name them again: --resume --scenario mine.py"),
        (RunConfig(environments=["torch", "torch@other"]), "name its interpreter again, --python torch@other=PATH"),
    ],
)
def test_what_resuming_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: RunConfig, complaint: str) -> None:
    different = {"config": begun, "machine": host.fingerprint(), "stopped_because": "interrupted"}
    made.stored(tmp_path, made.changed(made.record(made.trial()), **different))
    monkeypatch.setenv("OMP_PROC_BIND", "false")
    resumed = run.measured(ResumeConfig(), tmp_path, OLD_AND_NEW, registry.planner, Events())
    with pytest.raises(UsageError, match=complaint), resumed:
        pytest.fail("it measured")


def test_what_is_asked_for_says_whom_its_columns_are_for_where_interpreters_have_labels() -> None:
    asked = RunConfig(backends=["torch", "jax"])
    assert run.with_environments(asked, Interpreters({Environment("torch"): "/python"})) == asked
    labelled = run.with_environments(asked, OLD_AND_NEW)
    assert labelled.environments == ["torch@old", "torch@new", "jax"]
    assert run.with_environments(labelled, Interpreters({Environment("jax", "other"): "/python"})) == labelled


def test_the_machine_is_held_until_all_is_drawn(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_measure", lambda *_: run.FinishedRun(made.record(made.trial()), store))
    config = RunConfig(scenarios=["mnist_dense"])
    measured = run.measured(config, tmp_path, Interpreters(), registry.planner, Events())
    with measured, pytest.raises(MachineBusy), machine_lock():
        pytest.fail("another run measures meanwhile")
    with machine_lock():
        pass


def test_interpreters_that_a_file_names_are_said(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_measure", lambda *_: run.FinishedRun(made.record(made.trial()), store))
    named = made.by_environment({"torch": sys.executable, "jax": sys.executable, "tensorflow": sys.executable})
    sources = made.by_environment({"torch": "/a/kerasbench.toml", "jax": "--python", "tensorflow": "/unused.toml"})
    config, events = RunConfig(scenarios=["mnist_dense"], backends=["torch", "jax"]), Events()
    with run.measured(config, tmp_path, Interpreters(named, sources), registry.planner, events):
        pass
    assert events == [Notice(f"interpreters by /a/kerasbench.toml: torch={sys.executable}")]


def test_what_the_disk_refuses_is_kept_to_be_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = made.record(made.trial())
    assert run.save(store, record) == run.FinishedRun(record, store)
    monkeypatch.setattr(store, "finish", Mock(side_effect=ResultsError("no space left")))
    assert run.save(store, record) == run.FinishedRun(record, store, "no space left")


def test_trials_of_other_code_go_to_a_file_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = measuring_code(made.trial().column)
    left = made.record(made.trial(code=code), made.trial(code="other"))
    run.keep_superseded(tmp_path, left)
    (file,) = tmp_path.glob("*.json")
    assert load(file).trials == left.trials
    said = "2 trials no longer counted, 1 of them because other code of kerasbench measured them"
    assert f"{said}; kept in {file}" in capsys.readouterr().err


def test_the_machine_is_looked_at_first_and_what_answers_describes_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    went: list[str] = []
    report = ProbeReport("torch", "/new/python", {}, [made.CPU])

    def observe(sample_s: float) -> MachineState:
        went.append("machine")
        return made.state()

    def probe(backend: str, python: str, *rest: object) -> ProbeReport | Failure:
        went.append(python)
        return made.FAILURE if python == "/old/python" else report

    def select(names: list[str], python: str, describer: str | None, *rest: object) -> list[catalog.Selected]:
        *_, suite, others = rest
        went.append(f"{suite} described by {describer} of {python}, else by {others}")
        return [made.selected()]

    monkeypatch.setattr(run, "observe", observe)
    monkeypatch.setattr(questions, "probe", probe)
    monkeypatch.setattr(catalog, "select", select)
    config, events = RunConfig(environments=["torch@old", "torch@new"]), Events()
    _, probes, selected = run.survey(config, OLD_AND_NEW, events)
    assert (went[0], sorted(went[1:3])) == ("machine", ["/new/python", "/old/python"])
    assert went[3:] == ["published described by torch of /new/python, else by [('/old/python', 'torch')]"]
    assert probes == made.by_environment({"torch@old": made.FAILURE, "torch@new": report})
    assert selected == [made.selected()]
    assert events == [StepStarted("asking torch@old, torch@new what they see"), StepEnded()]


def with_rows(title: str, real: bool = True) -> Case:
    return made.changed(made.case(title.lower()), selected={"workload": {"data": title, "has_real_data": real}})


def test_each_download_is_said_before_it_begins_and_all_failures_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    events, seen = Events(), list[int]()

    def fetch(file: str, *rest: str) -> str | Failure:
        seen.append(len(events.of(StepStarted)))
        return "Iris" if "iris" in file else Failure(Code.UNAVAILABLE, "no network", "")

    monkeypatch.setattr(questions, "fetch", fetch)
    with pytest.raises(UnusableScenario, match=r"^mnist: no network$"):
        run.with_real_rows(made.plan(*map(with_rows, ("Iris", "MNIST", "MNIST"))), Interpreters(), events)
    assert seen == [1, 2]
    assert [event.text.partition(":")[0] for event in events.of(StepStarted)] == ["Iris", "MNIST"]


def test_what_has_no_real_rows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "fetch", lambda *given: "MNIST")
    mine = with_rows("Mine", real=False)
    planned = made.plan(with_rows("MNIST"), mine, made.changed(mine, backend="jax"))
    (warning,) = run.with_real_rows(planned, Interpreters(), Events()).warnings
    assert warning == "--data real changes nothing for mine: their data are always the same"
