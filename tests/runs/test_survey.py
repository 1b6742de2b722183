import dataclasses
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UnusableScenario
from kerasbench.plan import catalog
from kerasbench.plan.cases import Case
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from kerasbench.report.progress import Preparation
from kerasbench.results.record import RunConfig
from kerasbench.runs import run
from tests import made


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
    out = io.StringIO()
    asked = RunConfig(backends=["jax", "torch"])
    found = run.survey(asked, made.MACHINE, Interpreters(), Preparation(Console(file=out, width=80)))
    assert (went[0], sorted(went[1:3]), went[3]) == ("machine", ["jax", "torch"], "published described by torch")
    assert (found.here, found.probes[Environment("jax")], found.selected) == (
        made.MACHINE,
        made.FAILURE,
        [made.selected()],
    )
    assert out.getvalue() == "asking jax, torch what they see\n"


def with_real_rows(title: str) -> Case:
    case = made.case(name=title.lower())
    workload = dataclasses.replace(case.selected.workload, data=title, has_real_data=True)
    return dataclasses.replace(case, selected=dataclasses.replace(case.selected, workload=workload))


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
    found = run.survey(asked, made.MACHINE, interpreters, Preparation(Console(file=io.StringIO())))
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
    telling: Any = None
    with pytest.raises(UnusableScenario, match=r"a Lambda layer .*; make it a layer of a file .*--trust"):
        run.survey(asked, made.MACHINE, Interpreters(), telling)
