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
from kerasbench.results import record
from kerasbench.results.record import Effort, Record, ResumeConfig, RunConfig
from kerasbench.results.store import Store, load
from kerasbench.runs import run
from kerasbench.runs.rounds import seconds
from kerasbench.settings import Settings
from tests import made
from tests.scripted import Events


def test_a_run_is_not_resumed_where_a_variable_that_it_let_in_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = RunConfig(keep_env={"OMP_PROC_BIND": "true"})
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    begun = dataclasses.replace(made.record(made.trial()), config=asked, machine=host.fingerprint())
    store.finish(dataclasses.replace(begun, stopped_because="interrupted"))
    monkeypatch.setenv("OMP_PROC_BIND", "false")
    with (
        pytest.raises(UsageError, match="let in OMP_PROC_BIND=true, which is 'false' here"),
        run.measured(ResumeConfig(), tmp_path, Interpreters(), Events()),
    ):
        pytest.fail("it measured")


def test_more_time_is_added_to_what_the_trials_took_that_count() -> None:
    planned = made.plan(made.case(), effort=Effort(budget_s=60.0))
    earlier = made.record(*(dataclasses.replace(made.trial(index), block=index) for index in (1, 2)))
    assert seconds(earlier.trials) == 18
    assert run.with_budget(planned, seconds(earlier.trials) + 600.0).effort == Effort(budget_s=618.0)
    assert run.with_budget(planned, 600.0).effort == Effort(budget_s=600.0)


def test_a_run_with_labels_is_not_resumed_without_their_interpreters(tmp_path: Path) -> None:
    asked = RunConfig(environments=["torch", "torch@old"])
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    begun = dataclasses.replace(made.record(made.trial()), config=asked, machine=host.fingerprint())
    store.finish(dataclasses.replace(begun, stopped_because="interrupted"))
    with (
        pytest.raises(UsageError, match=r"measured torch@old: name its interpreter again, --python torch@old=PATH"),
        run.measured(ResumeConfig(), tmp_path, Interpreters({Environment("torch", "new"): "/python"}), Events()),
    ):
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
    def full(record: Record) -> None:
        raise ResultsError("no space left")

    store, record = Store.create(tmp_path, "2026-01-02T03:04:05Z"), made.record(made.trial())
    assert run.save(store, record) == run.FinishedRun(record, store)
    monkeypatch.setattr(store, "finish", full)
    assert run.save(store, record) == run.FinishedRun(record, store, "no space left")


def test_trials_of_other_code_go_to_a_file_of_their_own_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = (dataclasses.replace(made.trial(1), code=one) for one in (record.measuring_code(), "other"))
    run.keep_superseded(tmp_path, made.record(own, other))
    (file,) = tmp_path.glob("*.json")
    assert load(file).trials == [own, other]
    said = "2 trials measured again: not counted any more; other code of kerasbench measured 1 of them"
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
        (("keras==3.14", "keras==3.15"), Settings(["mnist_dense"], batch_size=8), "a scenario file says all that"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="100%"), "--threshold takes a share of less than 100 %"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="1%"), "--threshold takes 3% or more, not 1.00%"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="0%"), "--threshold takes 3% or more, not 0.00%"),
        (("keras==3.14", "keras==3.15"), Settings(threshold=0), "--threshold takes 3% or more, not 0.00%"),
        (("keras==3.14", "keras==3.15"), Settings(threshold="much"), "--threshold takes .* not 'much'"),
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


def test_the_machine_is_looked_at_before_the_first_child(monkeypatch: pytest.MonkeyPatch) -> None:
    went: list[str] = []

    def observe(sample_s: float) -> object:
        went.append("machine")
        return made.state()

    def probe(name: str, *rest: object) -> ProbeReport | Failure:
        went.append(name)
        return made.FAILURE if name == "jax" else ProbeReport(name, "3.11.7", {}, [made.CPU])

    def select(
        names: list[str], python: str, describer: str | None, kept: object, given: object, suite: str
    ) -> list[catalog.Selected]:
        went.append(f"{suite} described by {describer}")
        return [made.selected()]

    monkeypatch.setattr(run, "observe", observe)
    monkeypatch.setattr(questions, "probe", probe)
    monkeypatch.setattr(catalog, "select", select)
    events = Events()
    config = RunConfig(backends=["jax", "torch"])
    found = run.survey(config, made.MACHINE, Interpreters(), events)
    assert (went[0], sorted(went[1:3]), went[3]) == ("machine", ["jax", "torch"], "published described by torch")
    assert (found.here, found.probes[Environment("jax")], found.selected) == (
        made.MACHINE,
        made.FAILURE,
        [made.selected()],
    )
    assert events == [StepStarted("asking jax, torch what they see"), StepEnded()]


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


def test_each_labelled_interpreter_is_asked_and_a_scenario_is_described_by_one_that_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    described: list[tuple[str, str | None]] = []

    def probe(backend: str, python: str, *rest: object) -> ProbeReport | Failure:
        return made.FAILURE if python == "/old/python" else ProbeReport(backend, python, {}, [made.CPU])

    def select(names: list[str], python: str, describer: str | None, *besides: object) -> list[catalog.Selected]:
        described.append((python, describer))
        return [made.selected()]

    monkeypatch.setattr(run, "observe", lambda sample_s: made.state())
    monkeypatch.setattr(questions, "probe", probe)
    monkeypatch.setattr(catalog, "select", select)
    interpreters = Interpreters(made.by_environment({"torch@old": "/old/python", "torch@new": "/new/python"}))
    asked = RunConfig(environments=["torch@old", "torch@new"])
    found = run.survey(asked, made.MACHINE, interpreters, Events())
    assert found.probes[Environment("torch", "old")] == made.FAILURE
    assert found.probes[Environment("torch", "new")] == ProbeReport("torch", "/new/python", {}, [made.CPU])
    assert described == [("/new/python", "torch")]


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
