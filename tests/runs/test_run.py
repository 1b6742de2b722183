"""The steps of a whole run, one by one; a whole run is tried with real children."""

import dataclasses
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench import host
from kerasbench.environments import sides
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import MachineBusy, ResultsError, UnusableScenario, UsageError
from kerasbench.events import StepEnded, StepStarted
from kerasbench.host.lock import machine_lock
from kerasbench.plan import catalog
from kerasbench.plan.cases import Case
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from kerasbench.results.code import measuring_code
from kerasbench.results.run import ResumeConfig, Run, RunConfig
from kerasbench.results.store import Store, load
from kerasbench.runs import run
from kerasbench.settings import Settings
from tests import made
from tests.scripted import Events


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (RunConfig(keep_env={"OMP_PROC_BIND": "true"}), "let in OMP_PROC_BIND=true, which is 'false' here"),
        (RunConfig(scenarios=["mine.py"]), "only if you name them again: --resume --scenario mine.py"),
        (
            RunConfig(environments=["torch", "torch@old"]),
            "measured torch@old: name its interpreter again, --python torch@old=PATH",
        ),
    ],
)
def test_a_run_is_not_resumed_without_what_it_was_begun_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: RunConfig, complaint: str
) -> None:
    begun = dataclasses.replace(made.record(made.trial()), config=asked, machine=host.fingerprint())
    Store.create(tmp_path, begun.started).finish(dataclasses.replace(begun, stopped_because="interrupted"))
    monkeypatch.setenv("OMP_PROC_BIND", "false")
    interpreters = Interpreters({Environment("torch", "new"): "/python"})
    with pytest.raises(UsageError, match=complaint), run.measured(ResumeConfig(), tmp_path, interpreters, Events()):
        pytest.fail("it measured")


def test_what_is_asked_for_says_whom_its_columns_are_for_where_interpreters_have_labels() -> None:
    asked = RunConfig(backends=["torch", "jax"])
    assert run.with_environments(asked, Interpreters({Environment("torch"): "/python"})) == asked
    found = run.with_environments(
        asked, Interpreters(made.by_environment({"torch@old": "/old/python", "torch@new": "/new/python"}))
    )
    assert found.environments == ["torch@old", "torch@new", "jax"]
    assert run.with_environments(found, Interpreters({Environment("jax", "other"): "/python"})) == found


def test_the_machine_is_held_until_what_was_measured_has_been_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    monkeypatch.setattr(run, "_measure", lambda *_: run.FinishedRun(made.record(made.trial()), store))
    with (
        run.measured(RunConfig(scenarios=["mnist_dense"]), tmp_path, Interpreters(), Events()),
        pytest.raises(MachineBusy),
        machine_lock(),
    ):
        pytest.fail("another run measures meanwhile")
    with machine_lock():
        pass


def test_what_the_disk_refuses_is_kept_to_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(record: Run) -> None:
        raise ResultsError("no space left")

    store, record = Store.create(tmp_path, "2026-01-02T03:04:05Z"), made.record(made.trial())
    assert run.save(store, record) == run.FinishedRun(record, store)
    monkeypatch.setattr(store, "finish", full)
    assert run.save(store, record) == run.FinishedRun(record, store, "no space left")


def test_trials_of_other_code_go_to_a_file_of_their_own_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = made.trial(1)
    own, other = (dataclasses.replace(trial, code=code) for code in (measuring_code(trial.column), "other"))
    run.keep_superseded(tmp_path, made.record(own, other))
    (file,) = tmp_path.glob("*.json")
    assert load(file).trials == [own, other]
    said = "2 trials no longer counted, 1 of them because other code of kerasbench measured them"
    assert f"{said}; kept in {file}" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def _made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(python: str, wanted: Sequence[str], say: object) -> str:
        return "/bin/sh"

    monkeypatch.setattr(sides, "overlay", built)


def asked(base: str, head: str, **said: object) -> list[str]:
    found, chosen = run.versus_config(
        Settings(base=base, head=head, **said),  # type: ignore[arg-type]
        Interpreters(),
        Events(),
    )
    assert (found.control, found.threshold) == (True, 0.05)
    assert all(chosen.of(Environment.parse(one)) == "/bin/sh" for one in found.environments)
    assert found.versus == [whom.partition("@")[2] for whom in found.environments[:2]]
    return found.environments


def test_all_backends_are_compared_unless_the_words_name_some() -> None:
    keras = ("keras==3.14.*", "keras==3.15.*")
    everything = asked(*keras, threshold="5%")
    assert [whom.partition("@")[0] for whom in everything[::2]] == ["jax", "tensorflow", "torch"]
    assert asked(*keras, threshold=0.05, backends=["torch"]) == ["torch@keras-3.14", "torch@keras-3.15"]
    assert asked("jax==0.9", "jax==0.10", threshold="5") == ["jax@jax-0.9", "jax@jax-0.10"]


@pytest.mark.parametrize(
    ("words", "said", "complaint"),
    [
        (("keras==3.14", "gone"), Settings(), "'gone' is neither a label"),
        (("keras==3.14", "keras==3.15"), Settings(["no_such"]), "no_such"),
        (("keras==3.14", "keras==3.15"), Settings(["mnist_dense"], batch_size=8), "a scenario file contains all"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="1%"), "--threshold takes 3 % or more, not 1.00 %"),
        (("keras==3.14", "keras==3.15"), Settings(threshold=0), "--threshold takes 3 % or more, not 0.00 %"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_is_made(
    words: tuple[str, str], said: Settings, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "overlay", lambda *_: pytest.fail("it was made"))
    both = dataclasses.replace(said, base=words[0], head=words[1])
    with pytest.raises(UsageError, match=complaint):
        run.versus_config(both, Interpreters(), Events())


def test_nothing_is_made_while_another_run_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "overlay", lambda *_: pytest.fail("it was made"))
    with machine_lock(), pytest.raises(MachineBusy, match="another kerasbench run is measuring"):
        run.versus_config(Settings(base="keras==3.14", head="keras==3.15"), Interpreters(), Events())


def test_the_machine_is_looked_at_before_the_first_child_and_an_interpreter_that_answers_describes_the_scenarios(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    went: list[str] = []

    def observe(sample_s: float) -> object:
        went.append("machine")
        return made.state()

    def probe(backend: str, python: str, *rest: object) -> ProbeReport | Failure:
        went.append(python)
        return made.FAILURE if python == "/old/python" else ProbeReport(backend, python, {}, [made.CPU])

    def select(
        names: list[str], python: str, describer: str | None, kept: object, given: object, suite: str
    ) -> list[catalog.Selected]:
        went.append(f"{suite} described by {describer} of {python}")
        return [made.selected()]

    monkeypatch.setattr(run, "observe", observe)
    monkeypatch.setattr(questions, "probe", probe)
    monkeypatch.setattr(catalog, "select", select)
    interpreters = Interpreters(made.by_environment({"torch@old": "/old/python", "torch@new": "/new/python"}))
    config, events = RunConfig(environments=["torch@old", "torch@new"]), Events()
    found = run.survey(config, made.MACHINE, interpreters, events)
    assert (went[0], sorted(went[1:3])) == ("machine", ["/new/python", "/old/python"])
    assert went[3:] == ["published described by torch of /new/python"]
    assert found.probes[Environment("torch", "old")] == made.FAILURE
    assert found.probes[Environment("torch", "new")] == ProbeReport("torch", "/new/python", {}, [made.CPU])
    assert (found.here, found.selected) == (made.MACHINE, [made.selected()])
    assert events == [StepStarted("asking torch@old, torch@new what they see"), StepEnded()]


def with_real_rows(title: str) -> Case:
    case = made.case(name=title.lower())
    workload = dataclasses.replace(case.selected.workload, data=title, has_real_data=True)
    return dataclasses.replace(case, selected=dataclasses.replace(case.selected, workload=workload))


def test_each_download_is_said_before_it_begins_and_all_that_fail_are_told_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = Events()
    seen: list[int] = []

    def fetch(file: str, *rest: str) -> str | Failure:
        seen.append(len(events.of(StepStarted)))
        return "Iris" if "iris" in file else Failure(Code.UNAVAILABLE, "no network", "")

    monkeypatch.setattr(questions, "fetch", fetch)
    planned = made.plan(*map(with_real_rows, ("Iris", "MNIST", "MNIST")))
    with pytest.raises(UnusableScenario, match=r"^mnist: no network$"):
        run.fetch_all(planned, Interpreters(), events)
    assert seen == [1, 2]
    assert [event.text.partition(":")[0] for event in events.of(StepStarted)] == ["Iris", "MNIST"]


def test_what_has_no_real_rows_is_named() -> None:
    mine = made.case(name="mine")
    drawn = dataclasses.replace(mine.selected.workload, has_real_data=False)
    mine = dataclasses.replace(mine, selected=dataclasses.replace(mine.selected, workload=drawn))
    planned = made.plan(with_real_rows("MNIST"), mine, dataclasses.replace(mine, backend="jax"))
    assert run._without_real_rows(planned) == ["--data real changes nothing for mine: their data are always the same"]
    assert run._without_real_rows(made.plan(with_real_rows("MNIST"))) == []


@pytest.mark.processes
def test_a_model_that_no_backend_can_load_is_refused_before_any_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, layer = tmp_path / "code.keras", {"class_name": "Lambda", "function": {"class_name": "__lambda__"}}
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("config.json", json.dumps({"class_name": "Sequential", "config": {"layers": [layer]}}))
    monkeypatch.setattr(run, "observe", lambda seconds: made.state())
    monkeypatch.setattr(run, "probe_all", lambda *given: pytest.fail("a backend was asked"))
    asked = RunConfig(scenarios=[str(file)])
    with pytest.raises(UnusableScenario, match=r"a Lambda layer .*; make it a layer of a file .*--trust"):
        run.survey(asked, made.MACHINE, Interpreters(), Events())
