import functools
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kerasbench.errors import ResultsError, UsageError
from kerasbench.plan.cases import Plan, Probes
from kerasbench.protocol.columns import Device, Environment, Options
from kerasbench.protocol.measurement import Samples, Slice
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.code import measuring_code
from kerasbench.results.run import INTERRUPTED, ResumeConfig, Run, RunConfig, Trial, exactly
from kerasbench.results.store import Store
from kerasbench.runs import resume, stopping
from kerasbench.sources import saved_model
from tests import made

JAX, TORCH = made.case(backend="jax"), made.case(backend="torch")
CONV = made.case("conv")
PLANNED = made.plan(JAX, TORCH, effort=exactly(3))
HERE = made.changed(made.MACHINE, identifier="a")
PROBE = ProbeReport("torch", "3.11.7", {"keras": "3.15.1"}, [made.CPU])
NEWER_PROBE = made.changed(PROBE, versions={"keras": "3.16.0"})
PROBES = made.by_environment({"jax": PROBE, "torch": PROBE})
NEWER = made.by_environment({"jax": NEWER_PROBE, "torch": NEWER_PROBE})
NEWER_JAX = made.by_environment({"jax": NEWER_PROBE, "torch": PROBE})


def interrupted(*trials: Trial, **different: Any) -> Run:
    in_turn = [made.changed(trial, block=trial.round, code=measuring_code(trial.column)) for trial in trials]
    run = made.changed(made.record(*in_turn, rounds=0), stopped_because=INTERRUPTED, machine=HERE)
    return made.changed(run, **different)


torch, jax = made.trial, functools.partial(made.trial, backend="jax")
CHANGED = made.changed(TORCH, selected={"entry": {"file_hash": "another"}})
REWRITTEN = made.changed(TORCH, selected={"entry": {"baselines": {"torch": "another"}}})
NATIVE, THREADS = Options(native=True), Options(threads=1)
OLD, NEW = Options(environment="old"), Options(environment="new")
VERSIONS = made.plan(made.case(options=OLD), made.case(options=NEW))
H200, A100 = (Device("cuda", 0, name) for name in ("H200", "A100"))
TOLD_VERSIONS = {"python": PROBE.python, "below": "0.10.2"} | PROBE.versions
TOLD = made.changed(torch(1), measurement={"resolved": {"versions": TOLD_VERSIONS}})


def with_package(version: str) -> ProbeReport:
    return made.changed(PROBE, versions=PROBE.versions | {"below": version})


def of_versions(old: ProbeReport, new: ProbeReport) -> Probes:
    return made.by_environment({"torch@old": old, "torch@new": new})


@pytest.mark.parametrize(
    ("trials", "planned", "probes", "kept"),
    [
        # What is complete counts, up to the last round that all columns have.
        ([torch(1), jax(1), torch(2), jax(2)], PLANNED, PROBES, [True] * 4),
        ([torch(1, failure=made.FAILURE)], made.plan(TORCH), PROBES, [True]),
        ([torch(1), jax(1), torch(2)], PLANNED, PROBES, [True, True, False]),
        ([torch(1), jax(1, failure=made.FAILURE), torch(2)], PLANNED, PROBES, [True] * 3),
        ([torch(1), torch(2)], PLANNED, PROBES, [False, False]),
        # A column that is measured anew takes its row with it and no other.
        ([torch(1), jax(1), torch(1, "conv")], made.plan(JAX, TORCH, CONV), NEWER_JAX, [False, False, True]),
        # A changed scenario, baseline, option or device is measured anew.
        ([torch(1)], made.plan(CHANGED), PROBES, [False]),
        ([torch(1)], made.plan(REWRITTEN), PROBES, [True]),
        ([torch(1, options=NATIVE)], made.plan(made.changed(REWRITTEN, options=NATIVE)), PROBES, [False]),
        ([torch(1, options=THREADS)], PLANNED, PROBES, [False]),
        ([torch(1, device=H200)], made.plan(made.case(device=A100)), PROBES, [False]),
        # A labelled column is known by the versions of its own interpreter.
        ([torch(1, options=OLD), torch(1, options=NEW)], VERSIONS, of_versions(PROBE, PROBE), [True, True]),
        ([torch(1, options=OLD), torch(1, options=NEW)], VERSIONS, of_versions(PROBE, NEWER_PROBE), [False, False]),
        # A package below the backend counts too where the trial tells it.
        ([TOLD], made.plan(TORCH), {Environment("torch"): with_package("0.10.2")}, [True]),
        ([TOLD], made.plan(TORCH), {Environment("torch"): with_package("0.10.3")}, [False]),
        ([torch(1)], made.plan(TORCH), {Environment("torch"): with_package("0.10.2")}, [False]),
    ],
)
def test_which_trials_of_a_run_count(trials: list[Trial], planned: Plan, probes: Probes, kept: list[bool]) -> None:
    record = interrupted(*trials)
    carried, superseded = resume.carry(record, planned, probes)
    assert len(carried) + len(superseded) == len(trials)
    assert [trial in carried for trial in record.trials] == kept


def test_a_column_that_computed_something_else_is_judged_anew_where_its_row_is_measured_anew() -> None:
    said = made.trial(1, backend="jax", failure=Failure(Code.PARITY, "the loss differs", "none"))
    record = interrupted(made.trial(1), made.trial(1, backend="jax"), said, made.trial(2))
    record.trials[2] = made.changed(record.trials[2], block=0)
    assert resume.carry(record, PLANNED, PROBES) == (record.trials, [])
    for probes in (NEWER, NEWER_JAX):
        assert resume.carry(record, PLANNED, probes) == ([], record.trials)


@pytest.mark.parametrize("other", ["", "0123456789ab"])  # a file of an older kerasbench tells no code
def test_what_other_code_measured_is_measured_anew_with_its_row_and_so_is_what_failed_then(other: str) -> None:
    record = interrupted(made.trial(1), made.trial(1, backend="jax"), made.trial(1, "conv", failure=made.FAILURE))
    planned = made.plan(JAX, TORCH, CONV)
    assert resume.carry(record, planned, PROBES) == (record.trials, [])
    for index, again in enumerate((slice(2), slice(2), slice(2, 3))):
        trials = list(record.trials)
        trials[index] = made.changed(trials[index], code=other)
        assert resume.carry(made.changed(record, trials=trials), planned, PROBES)[1] == trials[again]


@pytest.mark.parametrize(("minutes", "kept"), [(1.0, 1), (10.0, 0)])
def test_a_soak_that_was_cut_short_is_measured_anew(minutes: float, kept: int) -> None:
    slices = Samples.of(Slice(1, int(1e9), cycle, 0, 0) for cycle in range(60))  # a minute
    trial = made.trial(1, found=made.with_samples(made.measurement(), train=slices))
    plan = {"fixed_time": True, "slices_max_ns": int(minutes * 60e9)}
    record = interrupted(trial, config={"effort": {"plan": plan}})
    assert len(resume.carry(record, made.plan(TORCH), PROBES)[0]) == kept


def begun(folder: Path, day: int, **different: Any) -> Store:
    store = Store.create(folder, f"2026-01-0{day}T00:00:00Z")
    store.begin(interrupted(made.trial(1), **different))
    return store


def test_the_newest_interrupted_run_is_found_that_no_other_process_measures(tmp_path: Path) -> None:
    older, newest = begun(tmp_path, 1), begun(tmp_path, 2)
    Store.create(tmp_path, "2026-01-03T00:00:00Z").finish(made.record(made.trial(1)))
    Store.create(tmp_path, "2026-01-04T00:00:00Z")  # reserved, and killed before anything was written
    assert resume.find(tmp_path, HERE)[0] == newest.journal
    newest.hold()
    assert resume.find(tmp_path, HERE)[0] == older.journal
    older.hold()
    with pytest.raises(ResultsError, match="another process is still measuring this run; wait until it ends"):
        resume.find(tmp_path, HERE)
    older.release()
    newest.release()


def test_a_run_that_its_budget_ended_goes_on_where_there_is_more_time(tmp_path: Path) -> None:
    ended = Store.create(tmp_path, "2026-01-02T00:00:00Z")
    ended.finish(interrupted(made.trial(1), stopped_because=stopping.out_of_budget(15.0, 9.0, 9.0, 1)))
    Store.create(tmp_path, "2026-01-03T00:00:00Z").finish(made.record(made.trial(1)))
    assert resume.find(tmp_path, HERE, longer=True)[0] == ended.data
    advice = f"leave out --resume to start a new one; {ended.data.name} ran out of time: add --budget TIME"
    with pytest.raises(ResultsError, match=f"no run here was interrupted; {advice}"):
        resume.find(tmp_path, HERE)
    with pytest.raises(ResultsError, match="no run here was interrupted; leave out --resume"):
        resume.find(tmp_path / "gone", HERE)


def test_no_damaged_run_is_passed_over_unsaid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = begun(tmp_path, 1)
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "2025-01-01T000000.json").write_text("{")  # older: the run that is meant is another one
    assert resume.find(tmp_path, HERE)[0] == store.journal
    assert f"{tmp_path / 'package.json'}: not a kerasbench result file" in capsys.readouterr().err
    newer = tmp_path / "2026-01-02T000000.jsonl"
    newer.write_text("{")
    with pytest.raises(ResultsError, match=f"{newer}: not a kerasbench result file: .*; move it out of {tmp_path}"):
        resume.find(tmp_path, HERE)


@pytest.mark.parametrize(
    "different",
    [
        {"machine": made.changed(HERE, identifier="b")},
        {"machine": made.changed(HERE, cores=4)},
        {"machine": made.changed(HERE, gpus=["NVIDIA H200"])},
        {"config": RunConfig([f"/tmp/{saved_model.LIVE_FOLDER}x/net.keras"])},
    ],
)
def test_what_cannot_go_on_here(different: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = begun(tmp_path, 2, **different)
    why, advice = "measured a model object of a Python process that has ended", "; measure it again"
    if "machine" in different:
        why = f"started on another machine ({different['machine'].title})"
        advice = f", and this is {HERE.title}; resume it there, or leave out --resume to start a new run here"
    with pytest.raises(ResultsError, match=re.escape(f"{other.journal}: {why}{advice}")):
        resume.find(tmp_path, HERE)
    mine = begun(tmp_path, 1)
    assert resume.find(tmp_path, HERE)[0] == mine.journal
    assert capsys.readouterr().err == f"kerasbench: {other.journal}: {why}; skipped\n"


PATHS = [Options(env="LD_PRELOAD=a.so"), Options(env="A=1"), Options(threads=1)]
MODEL = RunConfig(scenarios=["mnist_dense", "evil.keras"], model_config=ModelConfig(custom="own layers.py", trust=True))


@pytest.mark.parametrize(
    ("begun", "named", "advice"),
    [
        (MODEL, ResumeConfig(), "--resume --scenario evil.keras --custom 'own layers.py' --trust"),
        (MODEL, ResumeConfig(scenarios=["evil.keras"], model_config=ModelConfig(custom="own layers.py")), "--trust"),
        (MODEL, ResumeConfig(scenarios=["evil.keras"], model_config=ModelConfig(trust=True)), "--custom"),
        (MODEL, ResumeConfig(scenarios=["other.keras"], model_config=MODEL.model_config), "--scenario evil.keras"),
        (RunConfig(scenarios=["mine.py/tiny"]), ResumeConfig(), "--resume --scenario mine.py"),
        (RunConfig(), ResumeConfig(scenarios=["mine.py"]), "this run had none"),
        (RunConfig(options=PATHS), ResumeConfig(), "--resume --env LD_PRELOAD=a.so --env A=1"),
        (RunConfig(options=PATHS), ResumeConfig(options=PATHS[:1]), "--env A=1"),
        (RunConfig(options=PATHS[1:]), ResumeConfig(options=PATHS), ""),
        (RunConfig(scenarios=["\0.py"]), ResumeConfig(), "--resume --scenario"),  # no name of a file
        (MODEL, ResumeConfig(scenarios=[str(Path("evil.keras").absolute())], model_config=MODEL.model_config), ""),
        (RunConfig(scenarios=["mnist_*", "keras.applications.ResNet50"]), ResumeConfig(), ""),  # built in
        (RunConfig(scenarios=["mine.py/tiny", "mine.py/large"]), ResumeConfig(scenarios=["mine.py"]), ""),
    ],
)
def test_what_a_file_alone_names_is_not_executed(begun: RunConfig, named: ResumeConfig, advice: str) -> None:
    config = made.changed(made.record(), config=begun).config
    refusal = rf"some\.json: --resume runs files and sets variables of a run only if.*{re.escape(advice)}"
    with pytest.raises(UsageError, match=refusal) if advice else nullcontext():
        resume.require_named_again(Path("some.json"), config, named)


def test_a_backend_that_was_installed_since_takes_no_part_in_the_rest() -> None:
    record = interrupted(made.trial(backend="jax"), made.trial(backend="torch"), cases=2)
    planned = made.plan(made.case(backend="tensorflow"), JAX, TORCH)
    again = resume.as_started(planned, record, False)
    assert [case.backend for case in again.cases] == ["jax", "torch"]
    assert again.warnings == ["left out, because the run began without them: TensorFlow"]
    assert resume.as_started(PLANNED, record, False) is PLANNED
    absent = made.trial(0, backend="tensorflow", failure=made.FAILURE)  # it was asked for, and is measured now
    assert resume.as_started(planned, made.changed(record, trials=[*record.trials, absent]), False) is planned
    before = made.changed(record, trials=record.trials[:1])  # killed before the second had its turn
    assert resume.as_started(PLANNED, before, False) is PLANNED
