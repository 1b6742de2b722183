"""What of an interrupted run still counts, and more sizes where series of a sweep cross."""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError, UsageError
from kerasbench.plan import configure, live
from kerasbench.plan.cases import Case, Plan, Probes, with_controls
from kerasbench.protocol.columns import Device, Environment, Options, Size
from kerasbench.protocol.measurement import Samples, Slice
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from kerasbench.protocol.requests import ModelConfig, Protocol
from kerasbench.results import run as saved
from kerasbench.results.code import measuring_code
from kerasbench.results.run import INTERRUPTED, ResumeConfig, Run, RunConfig, SoakConfig, Trial, exactly
from kerasbench.results.store import Store
from kerasbench.runs import resume, schedule
from kerasbench.settings import Settings
from tests import made
from tests.scripted import with_config

JAX, TORCH = made.case(backend="jax"), made.case(backend="torch")
PLANNED = made.plan(JAX, TORCH, effort=exactly(3))
HERE = dataclasses.replace(made.MACHINE, identifier="a")
PROBE = {name: ProbeReport(name, "3.11.7", {"keras": "3.15.1"}, [made.CPU]) for name in ("jax", "torch")}
PROBES = made.by_environment(PROBE)
NEWER = {name: dataclasses.replace(one, versions={"keras": "3.16.0"}) for name, one in PROBES.items()}
NEWER_JAX = PROBES | {Environment("jax"): NEWER[Environment("jax")]}


def interrupted(*trials: Trial) -> Run:
    in_turn = [dataclasses.replace(trial, block=trial.round, code=measuring_code(trial.column)) for trial in trials]
    return dataclasses.replace(made.record(*in_turn, rounds=0), stopped_because=INTERRUPTED, machine=HERE)


def kept(*trials: Trial, planned: Plan = PLANNED, probes: Probes = PROBES) -> list[bool]:
    record = interrupted(*trials)
    carried, superseded = resume.carry(record, planned, probes)
    assert len(carried) + len(superseded) == len(trials)
    return [trial in carried for trial in record.trials]


def test_what_is_complete_counts_up_to_the_last_round_that_all_columns_have() -> None:
    both = [made.trial(index, backend=backend) for index in (1, 2) for backend in ("jax", "torch")]
    assert kept(*both) == [True] * 4
    assert kept(made.trial(1, failure=made.FAILURE), planned=made.plan(TORCH, effort=exactly(3))) == [True]
    assert kept(made.trial(1), made.trial(1, backend="jax"), made.trial(2)) == [True, True, False]
    failed = made.trial(1, backend="jax", failure=made.FAILURE)
    assert kept(made.trial(1), failed, made.trial(2)) == [True] * 3
    assert kept(made.trial(1), made.trial(2)) == [False, False]


def test_a_column_that_is_measured_anew_takes_its_row_with_it_and_no_other() -> None:
    planned = made.plan(JAX, TORCH, made.case("conv"))
    trials = [made.trial(1), made.trial(1, backend="jax"), made.trial(1, "conv")]
    assert kept(*trials, planned=planned, probes=NEWER_JAX) == [False, False, True]


def test_a_column_that_computed_something_else_is_judged_anew_where_its_row_is_measured_anew() -> None:
    said = Failure(Code.PARITY, "the loss differs", "none")
    trials = [made.trial(1), made.trial(1, backend="jax"), made.trial(1, backend="jax", failure=said), made.trial(2)]
    of_blocks = [
        dataclasses.replace(trial, block=0 if trial.failure else trial.round, code=measuring_code(trial.column))
        for trial in trials
    ]
    record = dataclasses.replace(interrupted(), trials=of_blocks, scenarios=made.record(*trials).scenarios)
    assert resume.carry(record, PLANNED, PROBES) == (of_blocks, [])
    for probes in (NEWER, NEWER_JAX):
        assert resume.carry(record, PLANNED, probes) == ([], of_blocks)


@pytest.mark.parametrize("other", ["", "0123456789ab"])  # a file of an older kerasbench tells no code
def test_what_other_code_measured_is_measured_anew_with_its_row_and_so_is_what_failed_then(other: str) -> None:
    one = interrupted(made.trial(1), made.trial(1, backend="jax"), made.trial(1, "conv", failure=made.FAILURE))
    planned = made.plan(JAX, TORCH, made.case("conv"))
    assert resume.carry(one, planned, PROBES) == (one.trials, [])
    for index in range(3):
        trials = list(one.trials)
        trials[index] = dataclasses.replace(trials[index], code=other)
        again = trials[2:] if index == 2 else trials[:2]
        assert resume.carry(dataclasses.replace(one, trials=trials), planned, PROBES)[1] == again


def test_a_changed_scenario_baseline_device_or_option_is_measured_anew() -> None:
    changed = dataclasses.replace(made.entry(), file_hash="another")
    case = dataclasses.replace(TORCH, selected=dataclasses.replace(TORCH.selected, entry=changed))
    assert kept(made.trial(1), planned=made.plan(case)) == [False]
    entry = dataclasses.replace(made.entry(), baselines={"torch": "another"})
    native = Options(native=True)
    cases = [made.case(backend="torch", options=one) for one in (Options(), native)]
    planned = made.plan(
        *(dataclasses.replace(one, selected=dataclasses.replace(one.selected, entry=entry)) for one in cases)
    )
    assert kept(made.trial(1), made.trial(1, options=native), planned=planned) == [False, False]
    assert kept(made.trial(1), planned=made.plan(planned.cases[0])) == [True]
    assert kept(made.trial(1, options=Options(threads=1))) == [False]
    card = Device("cuda", 0, "H200")
    planned = made.plan(made.case(device=dataclasses.replace(card, name="A100")))
    assert kept(made.trial(1, device=card), planned=planned) == [False]


def test_the_newest_run_that_was_interrupted_is_found(tmp_path: Path) -> None:
    Store.create(tmp_path, "2026-01-01T00:00:00Z").finish(interrupted(made.trial(1)))
    older = Store.create(tmp_path, "2026-01-02T00:00:00Z")
    older.begin(interrupted(made.trial(1)))
    Store.create(tmp_path, "2026-01-03T00:00:00Z").finish(made.record(made.trial(1)))
    Store.create(tmp_path, "2026-01-04T00:00:00Z")  # reserved, and killed before anything was written
    assert resume.find(tmp_path, HERE).file == older.journal


def test_a_run_that_another_process_measures_is_passed_over(tmp_path: Path) -> None:
    measured = Store.create(tmp_path, "2026-01-02T00:00:00Z")
    measured.begin(interrupted(made.trial(1)))
    measured.hold()
    with pytest.raises(ResultsError, match="another process is still measuring this run; wait until it ends"):
        resume.find(tmp_path, HERE)
    measured.release()
    assert resume.find(tmp_path, HERE).file == measured.journal


def test_a_soak_that_was_cut_short_is_measured_anew() -> None:
    def soak(minutes: float) -> Run:
        slices = Samples.of(Slice(1, int(1e9), cycle, 0, 0) for cycle in range(60))  # a minute
        found = made.changed(made.measurement(), training={"slices": slices})
        return made.changed(interrupted(made.trial(1, found=found)), config={"soak": SoakConfig("train", minutes)})

    assert [len(resume.carry(soak(minutes), made.plan(TORCH), PROBES)[0]) for minutes in (1.0, 10.0)] == [1, 0]


def test_a_run_that_its_budget_ended_goes_on_where_there_is_more_time(tmp_path: Path) -> None:
    ended = Store.create(tmp_path, "2026-01-02T00:00:00Z")
    why = schedule.out_of_budget(15.0, 9.0, 9.0, 1)
    ended.finish(dataclasses.replace(interrupted(made.trial(1)), stopped_because=why))
    Store.create(tmp_path, "2026-01-03T00:00:00Z").finish(made.record(made.trial(1)))
    assert resume.find(tmp_path, HERE, longer=True).file == ended.data
    advice = f"leave out --resume to start a new one; {ended.data.name} ran out of time: add --budget TIME"
    with pytest.raises(ResultsError, match=f"no run here was interrupted; {advice}"):
        resume.find(tmp_path, HERE)
    with pytest.raises(ResultsError, match="no run here was interrupted; leave out --resume"):
        resume.find(tmp_path / "gone", HERE)


def test_a_file_of_others_is_no_obstacle_and_a_damaged_run_is_none_that_is_passed_over_unsaid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.create(tmp_path, "2026-01-01T00:00:00Z")
    store.begin(interrupted(made.trial(1)))
    (tmp_path / "package.json").write_text("{}")
    assert resume.find(tmp_path, HERE).file == store.journal
    assert f"{tmp_path / 'package.json'}: not a kerasbench result file" in capsys.readouterr().err
    (tmp_path / "2025-01-01T000000.json").write_text("{")  # older: the run that is meant is another one
    assert resume.find(tmp_path, HERE).file == store.journal
    newer = tmp_path / "2026-01-02T000000.jsonl"
    newer.write_text("{")
    with pytest.raises(ResultsError, match=f"{newer}: not a kerasbench result file: .*; move it out of {tmp_path}"):
        resume.find(tmp_path, HERE)


LIVE = RunConfig([f"/tmp/{live.FOLDER}x/net.keras"])
BEGIN_ANEW = f", and this is {HERE.title}; resume it there, or leave out --resume to start a new run here"


def elsewhere(**different: Any) -> tuple[dict[str, Any], str, str]:
    other = dataclasses.replace(HERE, **different)
    return {"machine": other}, f"started on another machine ({other.title})", BEGIN_ANEW


@pytest.mark.parametrize(
    ("different", "why", "advice"),
    [
        elsewhere(identifier="b"),
        elsewhere(cores=4),
        elsewhere(gpus=["NVIDIA H200"]),
        ({"config": LIVE}, "measured a model object of a Python process that has ended", "; measure it again"),
    ],
)
def test_a_newer_run_that_cannot_go_on_here_is_passed_over_and_named(
    different: dict[str, Any], why: str, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = (Store.create(tmp_path, f"2026-01-0{day}T00:00:00Z") for day in (1, 2))
    other.begin(dataclasses.replace(interrupted(made.trial(1)), **different))
    with pytest.raises(ResultsError, match=re.escape(f"{other.journal}: {why}{advice}")):
        resume.find(tmp_path, HERE)
    mine.begin(interrupted(made.trial(1)))
    assert resume.find(tmp_path, HERE).file == mine.journal
    assert capsys.readouterr().err == f"kerasbench: {other.journal}: {why}; skipped\n"


def test_a_package_below_the_backend_counts_too_where_the_trial_tells_it() -> None:
    planned = made.plan(made.case(backend="jax"))
    untold = made.trial(1, backend="jax")
    assert untold.measurement is not None
    resolved = untold.measurement.resolved
    told = dataclasses.replace(resolved, versions=resolved.versions | {"jaxlib": "0.10.2"})
    trial = dataclasses.replace(untold, measurement=dataclasses.replace(untold.measurement, resolved=told))
    for version, counts in (("0.10.2", True), ("0.10.3", False)):
        there = dataclasses.replace(PROBE["jax"], versions=PROBE["jax"].versions | {"jaxlib": version})
        assert kept(trial, planned=planned, probes={Environment("jax"): there}) == [counts]
        assert kept(untold, planned=planned, probes={Environment("jax"): there}) == [False]


def test_a_labelled_column_is_known_by_the_versions_of_its_own_interpreter() -> None:
    old, new = (Options(environment=label) for label in ("old", "new"))
    planned = made.plan(*(made.case(backend="torch", options=one) for one in (old, new)))
    trials = [made.trial(1, options=old), made.trial(1, options=new)]
    same = PROBE["torch"]
    for version, counts in ((same, True), (NEWER[Environment("torch")], False)):
        probes = made.by_environment({"torch@old": same, "torch@new": version})
        assert kept(*trials, planned=planned, probes=probes) == [counts, counts]


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
        (RunConfig(scenarios=["\0.py"]), ResumeConfig(), "--resume --scenario"),  # no name of a file
    ],
)
def test_what_a_file_alone_names_is_not_executed(begun: RunConfig, named: ResumeConfig, advice: str) -> None:
    found = resume.Interrupted(Path("some.json"), dataclasses.replace(made.record(), config=begun))
    with pytest.raises(UsageError, match=r"some\.json: --resume runs files of a run only if") as raised:
        resume.require_named_again(found, named)
    assert advice in str(raised.value)


@pytest.mark.parametrize(
    ("begun", "named"),
    [
        (MODEL, ResumeConfig(scenarios=[str(Path("evil.keras").absolute())], model_config=MODEL.model_config)),
        (RunConfig(scenarios=["mnist_*", "keras.applications.ResNet50"]), ResumeConfig()),
        (RunConfig(scenarios=["mine.py/tiny", "mine.py/large"]), ResumeConfig(scenarios=["mine.py"])),
    ],
)
def test_what_is_named_again_or_built_in_goes_on(begun: RunConfig, named: ResumeConfig) -> None:
    resume.require_named_again(
        resume.Interrupted(Path("some.json"), dataclasses.replace(made.record(), config=begun)), named
    )


BATCHES = (1, 8, 64, 512)
BACKENDS = ("jax", "tensorflow", "torch")


def swept(options: Sequence[Options], protocol: Protocol) -> list[Case]:
    return [
        dataclasses.replace(made.case(backend=backend, options=one), protocol=protocol)
        for one in options
        for backend in BACKENDS
    ]


def swept_plan(budget_s: float | None = None) -> Plan:
    options = [Options(batch=batch) for batch in BATCHES]
    effort = configure.effort_of(Settings(budget=budget_s), "sweep")
    config = saved.RunConfig(options=options, effort=effort, refine=True)
    return Plan(config, made.MACHINE, swept(options, effort.protocol), [])


def crossing(planted: float = 20.0, rounds: int = 3, third: Callable[[int], float] = lambda batch: 100.0) -> Run:
    """jax is overtaken by torch at that batch; the third, tensorflow, is slower than both unless told otherwise."""

    def step_ms(backend: str, batch: int) -> float:
        return {"jax": 1.0, "torch": math.sqrt(planted / batch), "tensorflow": third(batch)}[backend]

    return made.record(
        *(
            made.trial(
                index,
                backend=backend,
                options=Options(batch=batch),
                found=made.measurement(step_ms(backend, batch) * (1 + index / 1000)),
            )
            for index in range(1, rounds + 1)
            for batch in BATCHES
            for backend in BACKENDS
        ),
        rounds=rounds,
    )


def finer(planned: Plan, first: Run) -> Plan:
    """Return the plan of the further sizes, of which there are some."""
    found = resume.finer(planned, first, 100.0)
    assert found is not None
    return found


def test_two_more_sizes_are_measured_once_inside_the_bracket_on_the_columns_that_cross() -> None:
    planned = swept_plan()
    found = finer(planned, crossing())
    assert [case.label for case in found.cases[len(planned.cases) :]] == [
        f"dense {backend} cpu batch={batch}" for batch in (16, 32) for backend in ("jax", "torch")
    ]
    assert found.config.options == [Options(batch=batch) for batch in (*BATCHES, 16, 32)]
    assert (found.effort.min_rounds, found.effort.max_rounds) == (3, 3)
    assert found.effort.protocol == planned.effort.protocol
    assert found.warnings == ["more sizes near the crossover: batch=16, batch=32"]
    assert resume.finer(found, crossing(), 100.0) is None


def test_a_control_is_asked_for_once_for_all_rows() -> None:
    found = finer(with_config(swept_plan(), control=True), crossing())
    assert any(case.options.control for case in found.cases)
    assert not any(options.control for options in found.config.options)


def test_a_quick_look_is_not_refined_though_its_slices_give_an_interval() -> None:
    record = crossing(rounds=1)
    for number, trial in enumerate(record.trials):
        assert trial.measurement is not None and trial.measurement.training is not None
        step_ms = trial.measurement.training.median_ns / made.MS
        slices = made.sliced([step_ms * (1 + 0.001 * (cycle % 3)) for cycle in range(12)])
        record.trials[number] = dataclasses.replace(trial, measurement=slices, block=1 + number // len(BACKENDS))
    assert resume.more_sizes(summarize(record))
    assert resume.finer(swept_plan(), record, 100.0) is None


def test_only_a_whole_run_with_a_crossing_that_has_an_interval_is_refined() -> None:
    assert resume.finer(swept_plan(), crossing(planted=1e9), 0.0) is None
    assert resume.finer(swept_plan(), crossing(rounds=2), 0.0) is None
    interrupted = dataclasses.replace(crossing(), stopped_because=INTERRUPTED)
    assert resume.finer(swept_plan(), interrupted, 0.0) is None


@pytest.mark.parametrize(("spent_s", "goes_on"), [(100.0, True), (1_000.0, False)])
def test_a_budget_must_hold_it(spent_s: float, goes_on: bool) -> None:
    planned = swept_plan(budget_s=100 + 4 * 3 * 9 + 1)  # four cases of three trials, 9 s each
    assert (resume.finer(planned, crossing(), spent_s) is not None) is goes_on


def test_sizes_that_two_brackets_share_are_measured_once() -> None:
    found = resume.more_sizes(summarize(crossing(third=lambda batch: (20 / batch) ** 0.7)))
    assert set(found) == {Size(16), Size(32)}
    assert all(len(columns) == 3 for columns in found.values())


def test_both_parts_are_one_record_which_may_still_have_the_rounds_that_were_asked_for() -> None:
    planned = swept_plan(budget_s=1e6)
    first = dataclasses.replace(crossing(), config=planned.config, stopped_because="every interval is within ±2%")
    config = finer(planned, first).config
    going_on = dataclasses.replace(crossing(), config=config, stopped_because="all 3 rounds are done")
    joined = resume.joined(first, going_on)
    assert joined.stopped_because == first.stopped_because
    assert joined.config == dataclasses.replace(config, effort=planned.effort) != config
    joined = resume.joined(first, dataclasses.replace(crossing(rounds=1), stopped_because=INTERRUPTED))
    assert (joined.stopped_because, joined.rounds_completed) == (INTERRUPTED, 3)


def test_a_refined_sweep_goes_on_with_the_columns_that_each_size_has() -> None:
    planned = swept_plan(budget_s=1e6)
    refined = finer(planned, crossing())
    tried = [
        made.trial(1, backend=case.backend, options=case.options) for case in refined.cases if case.options.batch != 32
    ]
    every = dataclasses.replace(refined, cases=swept(refined.config.options, planned.effort.protocol))
    again = resume.as_started(every, made.record(*tried))
    of_size = {size: [case.backend for case in again.cases if case.options.batch == size] for size in (8, 16, 32)}
    assert of_size == {8: [*BACKENDS], 16: ["jax", "torch"], 32: [*BACKENDS]}
    assert resume.as_started(planned, made.record(*tried[:1])) is planned


def test_a_refined_sweep_goes_on_with_the_controls_that_its_further_sizes_have() -> None:
    """It is beside the first of the columns that cross there, which is not the first of all."""
    planned = with_config(swept_plan(budget_s=1e6), control=True)
    planned = dataclasses.replace(planned, cases=with_controls(planned.cases))
    refined = finer(planned, crossing(1e9, third=lambda batch: math.sqrt(1e9 / 20)))
    further = [case for case in refined.cases if case.options.batch in (16, 32)]
    assert "tensorflow" in {case.backend for case in further if case.options.control}
    tried = [made.trial(1, backend=case.backend, options=case.options) for case in further]
    every = with_controls(swept(refined.config.options, planned.effort.protocol))
    again = resume.as_started(dataclasses.replace(refined, cases=every), made.record(*tried))
    assert {case.key for case in again.cases} >= {case.key for case in further}


def test_a_backend_that_was_installed_since_takes_no_part_in_the_rest() -> None:
    record = dataclasses.replace(interrupted(made.trial(backend="jax"), made.trial(backend="torch")), cases=2)
    planned = made.plan(made.case(backend="tensorflow"), JAX, TORCH)
    again = resume.as_started(planned, record)
    assert [case.backend for case in again.cases] == ["jax", "torch"]
    assert again.warnings == ["left out, because the run began without them: tensorflow cpu"]
    assert resume.as_started(PLANNED, record) is PLANNED
    absent = made.trial(0, backend="tensorflow", failure=made.FAILURE)  # it was asked for, and is measured now
    asked = dataclasses.replace(record, trials=[*record.trials, absent])
    assert resume.as_started(planned, asked) is planned
    before = dataclasses.replace(record, trials=record.trials[:1])  # killed before the second had its turn
    assert resume.as_started(PLANNED, before) is PLANNED


def never(planned: Plan, earlier: Run) -> Run:
    raise AssertionError("nothing was asked for")


def test_a_run_that_wants_or_can_keep_no_further_sizes_stays_as_it_is() -> None:
    record = crossing(planted=1e9)
    assert resume.refine(swept_plan(), record, 0.0, never) is record
    assert resume.refine(made.plan(made.case()), record, 0.0, never) is record

    def execute(planned: Plan, earlier: Run) -> Run:
        raise ResultsError("full")

    first = crossing()
    assert resume.refine(swept_plan(), first, 0.0, execute) is first


def test_further_sizes_begin_with_what_was_measured_and_end_in_one_record() -> None:
    def execute(planned: Plan, earlier: Run) -> Run:
        assert all(trial.round for trial in earlier.trials)
        added = [made.trial(1, options=case.options) for case in planned.cases[12:]]
        return dataclasses.replace(earlier, trials=[*earlier.trials, *added])

    first = crossing()
    first.trials.append(dataclasses.replace(made.trial(failure=made.FAILURE), round=0))  # absent
    record = resume.refine(swept_plan(), first, 0.0, execute)
    assert record.started == first.started
    assert {trial.options.batch for trial in record.trials} == {1, 8, 16, 32, 64, 512}
