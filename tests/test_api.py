import dataclasses
import inspect
import random
import runpy
import sys
from contextlib import nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import kerasbench
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.table import NAMES
from kerasbench.api import Explanation, Fastest, SoakResults, Versions, keywords
from kerasbench.api.results import BisectResult, Machines, Results
from kerasbench.errors import ResultsError, Undecided, UsageError
from kerasbench.modes import explain, fastest, soak, sweep, versus
from kerasbench.modes.fastest.plan import default_backend
from kerasbench.modes.mode import Mode
from kerasbench.modes.run import RunSettings
from kerasbench.modes.versus import tell as report_versus
from kerasbench.modes.versus.bisect import Bisection, Probe, SearchOutcome
from kerasbench.pages.files import SavedReport
from kerasbench.plan import configure
from kerasbench.protocol.columns import Column
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.results.run import DEFAULT, INTERRUPTED, PUBLISHED, SWEEP, Run, RunConfig, exactly
from kerasbench.runs.run import FinishedRun
from kerasbench.settings import Settings
from tests import made
from tests.made import JAX, TENSORFLOW
from tests.records import ALIKE, SLOWER, contrast, of_versions, raced, soaked, stored_by_turns, versions


def stored(folder: Path, *step_ms: float, record: Run | None = None) -> Path:
    run = record or made.record(*made.in_rounds(*step_ms, overhead_ms=10.0), rounds=len(step_ms))
    return made.stored(folder, run).data


def test_loaded_results_show_the_answer_first(tmp_path: Path) -> None:
    results = kerasbench.load(stored(tmp_path, 2.0, 2.01, 1.99))
    assert repr(results) == "dense: PyTorch takes 2.10 ms."
    assert str(results).startswith("# A training step of dense takes 2.10 ms on PyTorch\n")
    html = results._repr_html_()
    answer, table, details = (html.index(part) for part in ("takes 2.10 ms on PyTorch", "<table", "<details>"))
    assert answer < table < details
    (row,) = results.summary.rows
    estimate = row.cases[Column("torch", "cpu")].estimate("train_step_ms")
    assert estimate is not None and estimate.trials == 3


def test_a_folder_or_several_files_are_one_machine_s_results(tmp_path: Path) -> None:
    first, second = stored(tmp_path, 2.0), stored(tmp_path, 3.0)
    assert len(kerasbench.load(tmp_path).records) == len(kerasbench.load(first, str(second)).records) == 2
    other = dataclasses.replace(made.record(made.trial()), machine=dataclasses.replace(made.MACHINE, chip="M1"))
    stored(tmp_path, record=other)
    with pytest.raises(UsageError, match=rf"^{tmp_path}: results of 2 machines \(Chip 9, .*; M1, .*\)"):
        kerasbench.load(tmp_path)


def test_comparing_gives_verdicts_and_regressions(tmp_path: Path) -> None:
    old = stored_by_turns(tmp_path / "old", 1, 2.0, 2.01, 1.99)
    new = stored_by_turns(tmp_path / "new", 2, 3.0, 3.01, 2.99)
    comparison = kerasbench.compare(old, kerasbench.load(new))
    assert comparison.regressions == ["dense torch cpu"]
    assert "1 of 1 case clearly slower" in str(comparison)
    assert repr(comparison) == (
        "1 case measured on both sides: 1 slower, 0 faster, 0 tied, 0 undecided.\n"
        "dense on PyTorch takes 1.50× as long as before."
    )
    failed = stored(tmp_path / "failed", record=made.record(made.trial(failure=made.FAILURE)))
    assert "dense on PyTorch fails now: died from SIGSEGV in phase 'train'" in repr(kerasbench.compare(old, failed))


def test_results_become_a_picture_that_a_notebook_shows_and_a_file_keeps(tmp_path: Path) -> None:
    several = made.record(made.trial(backend="jax"), made.trial(backend="torch"))
    picture = kerasbench.load(stored(tmp_path / "several", record=several)).plot()
    assert ">dense</text>" in picture._repr_svg_()
    picture.save(tmp_path / "ratios.svg")
    assert (tmp_path / "ratios.svg").read_text("utf-8") == picture.svg
    with pytest.raises(UsageError, match="nothing to plot: no two configurations were compared"):
        kerasbench.load(stored(tmp_path, 2.0, 2.01, 1.99)).plot()


def test_dataframes_are_made_by_pandas_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_frames: list[tuple[list[dict[str, Any]], list[str]]] = []  # rows and columns of each
    pandas = SimpleNamespace(DataFrame=lambda rows, columns: data_frames.append((rows, columns)))
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    old, new = stored(tmp_path / "old", 2.0, 2.01, 1.99), stored(tmp_path / "new", 3.0, 3.01, 2.99)
    kerasbench.load(old).to_dataframe()
    kerasbench.compare(old, new).to_dataframe()
    Versions([of_versions(*versions(SLOWER))]).to_dataframe()
    (rows, columns), (changed, names), (pairs, of_pairs) = data_frames
    assert rows == kerasbench.load(old).to_dicts()
    assert columns == list(rows[0]) == list(NAMES)
    assert names == list(changed[0])
    assert (changed[0]["ratio"], changed[0]["verdict"]) == (pytest.approx(1.48, abs=0.01), None)
    assert str(changed[0]["why"]).startswith("a verdict needs three runs of each side")
    assert of_pairs == list(pairs[0]) == list(report_versus.COLUMNS)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        kerasbench.load(old).to_dataframe()


def test_a_folder_without_a_history_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path / "results", 2.0)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"^results: no ratio was measured in two runs"):
        kerasbench.history()


class Runs:
    """In place of whole runs: what each was asked for, and whether it would wait; all measure the same."""

    def __init__(self, folder: Path) -> None:
        trials = [made.trial(index, found=made.with_parts()) for index in (1, 2, 3)]
        self.record = made.record(*trials, rounds=3)
        self.folder, self.unsaved = folder, ""
        self.config: list[RunConfig] = []
        self.waits: list[bool] = []

    def __call__(self, asked: RunConfig, *others: Any) -> object:
        self.config.append(asked)
        self.waits.append(others[-1])
        return nullcontext(FinishedRun(self.record, made.stored(self.folder, self.record), self.unsaved))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs(tmp_path)
    monkeypatch.setattr("kerasbench.runs.run.measured", runs)
    return runs


def test_a_run_is_asked_for_in_the_words_of_the_command_line(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    kerasbench.run("dense", "jax", jit="on", dtype=["float32", "float64"], threads=1, native=True, protocol="published")
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    results = kerasbench.run(threads=(1, 2), data="real", wait=True, keep_env="OMP_PROC_BIND")
    first, second = runs.config
    assert (first.scenarios, first.backends) == (["dense"], ["jax"])
    assert (first.keep_env, second.keep_env) == ({}, {"OMP_PROC_BIND": "true"})
    assert runs.waits == [False, True]
    asked = RunSettings(choices={"jit": ["on"], "dtype": ["float32", "float64"], "threads": ["1"], "native": [""]})
    assert first.options == configure.options_of(asked)
    assert (first.effort, first.data) == (PUBLISHED, "synthetic")
    assert second.options == configure.options_of(Settings(choices={"threads": ["1", "2"]}))
    assert (second.effort, second.data) == (DEFAULT, "real")
    assert results.records == [runs.record]
    assert "# dense: the largest part of an epoch is computation" in (runs.folder / "2026-01-02T030405.md").read_text()
    with pytest.raises(UsageError, match="unknown value of --jit"):
        kerasbench.run(jit="maybe")


def test_the_types_of_options_are_those_that_are_declared() -> None:
    file = Path(__file__).parents[1] / "docs" / "tools" / "keywords.py"
    declared = "".join(runpy.run_path(str(file))["text"]())
    updates = "python docs/tools/keywords.py > kerasbench/api/keywords.py updates it"
    assert Path(keywords.__file__).read_text("utf-8") == declared, updates


def test_whoever_checks_types_is_told_before_the_call_what_the_call_refuses() -> None:
    """Mypy says where there is nothing to ignore."""
    with pytest.raises(UsageError, match="unknown value of --jit '3'"):
        kerasbench.run(jit=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^run\(\) got an unexpected keyword argument 'jti'; did you mean 'jit'\?$"):
        kerasbench.run(jti="on")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="--quick takes True or False, not 'yes'"):
        kerasbench.sweep("dense", [1, 8], quick="yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'protocol'$"):
        kerasbench.explain("dense", protocol="calls")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="--threshold takes text or a number, not list"):
        kerasbench.versus("old", "new", threshold=[5])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'hosts'"):
        kerasbench.bisect(["old", "new"], hosts="m1")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"run measures on this machine: on_machines\('run', hosts=...\) does so on"):
        kerasbench.run("dense", hosts="m1")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"--rounds takes a whole number, not 2\.5"):
        kerasbench.fastest("dense", rounds=2.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="--minutes takes a number, not 'long'"):
        kerasbench.soak("dense", minutes="long")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a file or a folder is text or a Path, not NoneType"):
        kerasbench.load(None)  # type: ignore[arg-type]


def test_the_signature_of_a_function_has_its_options() -> None:
    parameters = inspect.signature(kerasbench.run).parameters
    assert list(parameters)[:4] == ["scenarios", "backends", "devices", "data"]
    assert (parameters["jit"].default, parameters["rounds"].annotation) == ((), int | None)
    assert "jit (--jit): Compile the step: on, off, or default" in (kerasbench.run.__doc__ or "")


def test_what_goes_on_is_of_the_kind_that_it_was(runs: Runs) -> None:
    plain = runs.record
    asked: dict[type[Results], tuple[Mode[Any], object]] = {
        Explanation: (explain.MODE, None),
        Versions: (versus.MODE, versus.VersusConfig("old", ["new"], 0.03)),
        Fastest: (fastest.MODE, fastest.RaceConfig()),
        SoakResults: (soak.MODE, soak.SoakConfig("train", 1.0)),
        Results: (sweep.MODE, sweep.SweepConfig()),
    }
    for kind, (mode, own) in asked.items():
        runs.record = dataclasses.replace(plain, config=mode.configured(plain.config, own))
        assert type(kerasbench.run(resume=True)) is kind


def test_a_live_model_is_asked_for_by_a_file_of_its_own(runs: Runs) -> None:
    model: Any = SimpleNamespace(save=lambda place: Path(place).touch(), predict=len, name="net")
    kerasbench.run(model, data=(np.ones(3), np.ones(3)), batch_size=2, trust=True)
    (asked,) = runs.config
    assert [Path(file).name for file in asked.scenarios] == ["net.keras"]
    said = asked.model_config
    assert (said.samples, said.batch, said.trust, asked.data) == (3, 2, True, "synthetic")
    assert not Path(asked.scenarios[0]).exists()  # the run is over


def test_a_sweep_is_asked_for_by_its_sizes(runs: Runs) -> None:
    results = kerasbench.sweep("dense", [1, 8, 64], 0.5, "jax", devices="cpu", rounds=4, budget=60)
    (asked,) = runs.config
    assert [(options.get("batch"), options.get("width")) for options in asked.options] == [
        (1, 0.5),
        (8, 0.5),
        (64, 0.5),
    ]
    assert (asked.scenarios, asked.backends, asked.devices) == (["dense"], ["jax"], ["cpu"])
    assert sweep.MODE.settings_of(asked).refine
    assert asked.effort == dataclasses.replace(exactly(4, SWEEP), budget_s=60)
    assert results.records == [runs.record]
    kerasbench.sweep("dense", "1..4", inputs=["a=3", "b=4"])
    assert runs.config[-1].model_config == ModelConfig([Input("a", [3]), Input("b", [4])])
    assert [options.get("batch") for options in runs.config[-1].options] == [1, 2, 4]


def test_an_explanation_is_text_and_data(runs: Runs) -> None:
    config = RunConfig(["dense"], ["jax", "torch"], effort=exactly(3), timeout_s=90)
    asked = explain.MODE.configured(config, explain.ExplainConfig(causes=True))
    runs.record = dataclasses.replace(runs.record, config=asked)
    explained = kerasbench.explain("dense", ["jax", "torch"], rounds=3, timeout=90)
    assert runs.config == [asked]
    assert str(explained).startswith("# dense: the largest part of an epoch is computation on PyTorch (48 %)")
    assert repr(explained).startswith("dense")
    data, (breakdown,) = explained.to_data(), explained.breakdowns
    (part,) = [result["value"] for result in data["results"] if result["metric"] == "input_pipeline_ms"]
    assert part == pytest.approx(breakdown.input_pipeline_ms.value) == pytest.approx(0.5)
    runs.record = made.changed(made.record(made.trial(failure=made.FAILURE)), config=asked)
    failed = kerasbench.explain("dense")
    assert (failed.to_data()["results"], failed.breakdowns) == ([], [])
    assert str(failed).startswith("# Nothing was measured: 1 case failed")


def test_a_race_is_text_data_and_a_picture(runs: Runs) -> None:
    runs.record = raced({JAX: 1.0, TENSORFLOW: 4.0}, baseline="jax")
    results = kerasbench.fastest("dense", tries="jit", margin=0.1)
    assert fastest.MODE.settings_of(runs.config[0]) == fastest.RaceConfig("train", 0.1, ["jit"], default_backend())
    assert repr(results) == "dense trains fastest on JAX with Keras' default settings."
    (race,), (data,) = results.races, results.to_data()["fastest"]
    assert data["configuration"]["backend"] == race.leader.backend == "jax"
    assert results.plot().svg.startswith("<svg")


def test_a_soak_is_text_and_a_picture(runs: Runs, rng: random.Random) -> None:
    runs.record = soaked(0, 64 << 10, rng)
    soaking = kerasbench.soak("dense", minutes=1)
    assert soak.MODE.settings_of(runs.config[0]) == soak.SoakConfig("train", 1.0)
    assert [soak.memory_grows for soak in soaking.soaks] == [True]
    assert repr(soaking).startswith("dense on PyTorch: memory grows by ")
    assert "dense: memory" in soaking.plot().svg


def test_a_page_that_a_machine_s_run_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = SimpleNamespace(host="m1", store=made.stored(tmp_path), unfinished=False, cause="")
    monkeypatch.setattr("kerasbench.machines.ask", lambda *asked: [remote])
    monkeypatch.setattr("kerasbench.pages.files.replace", Mock(side_effect=ResultsError("no space left")))
    machines = kerasbench.on_machines("run", "dense", hosts="m1")
    assert machines.failed == {"m1": "no space left"}


def test_what_could_not_be_saved_is_an_error(runs: Runs) -> None:
    runs.unsaved = "no space left"
    for ask in (kerasbench.run, kerasbench.sweep, kerasbench.explain):
        with pytest.raises(ResultsError, match="no space left"):
            ask("dense")


def test_a_file_may_be_a_path_and_a_model_object_is_for_run_and_fastest(runs: Runs) -> None:
    runs.record = dataclasses.replace(runs.record, config=explain.MODE.configured(RunConfig()))
    kerasbench.explain(Path("mine.py"))
    kerasbench.sweep(Path("mine.py"), [1, 8])
    kerasbench.explain([Path("mine.py"), "dense"])
    assert [asked.scenarios for asked in runs.config] == [["mine.py"], ["mine.py"], ["mine.py", "dense"]]
    model: Any = SimpleNamespace(save=print, predict=print)
    for call in (kerasbench.explain, kerasbench.sweep, partial(kerasbench.versus, "keras==3.14", "keras==3.15")):
        with pytest.raises(UsageError, match=r"only run\(\) and fastest\(\) take a model object: save it"):
            call(model)


def test_where_a_scenario_is_needed_none_is_not_a_whole_suite(runs: Runs) -> None:
    nothings: list[Any] = ["", [], None, set()]  # a filter that came out empty
    models: list[Any] = [SimpleNamespace(save=print, predict=print)]
    needing: list[Any] = [kerasbench.explain, kerasbench.soak, kerasbench.fastest]
    calls = [*product([*needing, kerasbench.run], nothings), *((call, ()) for call in needing)]  # () is run's default
    for call, nothing in calls:
        with pytest.raises(UsageError, match=r"needs a scenario|scenarios is empty: give a n|--scenario is empty"):
            call(nothing)
    with pytest.raises(UsageError, match="one model object at a time"):
        kerasbench.run(models)
    with pytest.raises(UsageError, match="--insecure is for --cluster"):
        kerasbench.run("dense", insecure=True)  # type: ignore[call-arg]
    assert runs.config == []


def test_versions_have_regressions_for_a_test_to_look_at() -> None:
    compared = Versions([of_versions(*versions(SLOWER), *versions(ALIKE, "jax"))])
    (line,) = compared.regressions
    assert line.startswith("dense on PyTorch: a training step takes 1.096× (")
    assert compared.versus[0].head == "new"
    assert Versions([of_versions(*versions(ALIKE))]).regressions == []
    with pytest.raises(Undecided, match=r"^everything is undecided, so nothing has passed: \d numbers, all undecided$"):
        print(Versions([of_versions(*versions(SLOWER)[:2])]).regressions)
    assert repr(Results(compared.records)) == repr(compared)  # loaded from a file it says the same


def test_a_search_for_a_version_prints_its_answer_and_names_the_version() -> None:
    step = contrast(made.estimate(1.3, 1.4, trials=3), Verdict.SLOWER)
    probe = Probe(1, step)
    search = BisectResult(Bisection(SearchOutcome.FOUND, [probe], fast=0, slow=1), ["old", "new"])
    assert search.version == "new"
    assert repr(search).startswith("new is the first slow version: a step takes 1.30× (1.21–1.40) as long as with old.")
    assert str(search).startswith("# dense torch cpu: new is the first slow version: a step takes 1.30×")
    none = BisectResult(Bisection(SearchOutcome.NONE, [probe], fast=0, slow=1), ["old", "new"])
    assert none.version is None
    with pytest.raises(UsageError, match="bisect takes two versions or more"):
        kerasbench.bisect(["keras==3.15.0"])


def test_ctrl_c_ends_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    run = dataclasses.replace(of_versions(), stopped_because=INTERRUPTED)  # before a trial was kept
    files = SavedReport(summarize(run), Path("run.json"), Path("run.md"))
    monkeypatch.setattr("kerasbench.api.measure", lambda *asked, **named: Versions([run], files))
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        kerasbench.bisect(["old", "between", "new"], say=said.append)
    assert said[-1] == "bisect: interrupted while it measured new (run.md)"


def test_results_of_several_machines_are_those_of_each(tmp_path: Path) -> None:
    data = {"m1": stored(tmp_path, record=of_versions(*versions(SLOWER)))}
    several = Machines(Settings(), data, failed={"m2": "no connection"})
    results = several["m1"]
    assert isinstance(results, Versions) and several.to_data() == {"m1": results.to_data()}
    with pytest.raises(UsageError, match="no results of m2: no connection"):
        several["m2"]
    with pytest.raises(UsageError, match="no results of m3: there are results of m1"):
        several["m3"]
    with pytest.raises(UsageError, match="a file or a folder is text or a Path, not Machines"):
        kerasbench.compare(Results([]), several)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "options", "error"),
    [
        ("speed", {"hosts": "m1"}, "unknown command 'speed'"),
        ("run", {}, "on_machines takes hosts"),
        ("versus", {"hosts": "m1", "base": "old", "head": "new", "thresold": 3}, "did you mean 'threshold'"),
        ("soak", {"hosts": "m1"}, r"soak\(\) got an unexpected keyword argument 'hosts'"),
        ("explain", {"hosts": "m1"}, "explain needs a scenario"),
    ],
)
def test_what_other_machines_cannot_measure_is_refused(command: str, options: dict[str, Any], error: str) -> None:
    with pytest.raises((UsageError, TypeError), match=error):
        kerasbench.on_machines(command, **options)


def test_a_script_that_is_measured_does_not_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERASBENCH_CHILD", "1")
    with pytest.raises(UsageError, match="calls kerasbench itself: leave that call out"):
        kerasbench.run("mnist_dense")
