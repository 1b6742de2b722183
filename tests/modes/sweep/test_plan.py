import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.errors import ResultsError, UsageError
from kerasbench.modes import registry, sweep
from kerasbench.modes.sweep import SweepConfig, SweepSettings
from kerasbench.modes.sweep.plan import SweepPlanner, config_of, crossed, more_sizes, sizes_between
from kerasbench.plan.cases import Case, Plan, with_controls
from kerasbench.protocol.columns import DEFAULT, Options, Size
from kerasbench.results.run import INTERRUPTED, QUICK, SWEEP, Effort, Run, RunConfig, Trial, exactly
from kerasbench.runs import resume
from tests import made


def test_a_sweep_crosses_terms_with_sizes_and_goes_on_where_series_cross() -> None:
    asked = config_of(SweepSettings(["dense"], batch_sizes=["1..2"], widths=["0.5", "1"], choices={"jit": ["on"]}))
    assert asked.options == [Options(jit=True, batch=batch, width=width) for batch in (1, 2) for width in (0.5, 1.0)]
    assert (sweep.MODE.settings_of(asked), asked.effort.plan) == (SweepConfig(refine=True), SWEEP)
    assert config_of(SweepSettings(["dense"], quick=True)).effort == replace(QUICK, plan=SWEEP)
    for words in [], ["2"]:
        with pytest.raises(UsageError, match="two sizes or more"):
            config_of(SweepSettings(batch_sizes=["8"], widths=words))
    limited = config_of(SweepSettings(["dense"], rounds=7, control=True))
    assert (limited.effort, limited.control) == (exactly(7, SWEEP), True)
    assert [options.get("batch") for options in config_of(SweepSettings(["dense"])).options][-1] == 4096
    assert {options.get("batch") for options in config_of(SweepSettings(["dense"], widths=["1", "2"])).options} == {
        None
    }
    sized = crossed([DEFAULT, Options(jit=False)], [1, 8], [])
    assert [options.label for options in sized] == ["batch=1", "jit=off batch=1", "batch=8", "jit=off batch=8"]


def test_a_sweep_of_exported_models_predicts_at_each_size() -> None:
    exported = SweepSettings(
        ["dense"], backends=["jax"], batch_sizes=["1", "8"], choices={"runtime": ["keras", "jax_export"]}
    )
    config = config_of(exported)
    assert config.effort.plan.agenda.name == "sweep_predictions" and not config.effort.plan.needs_training
    assert [options.label for options in config.options] == [
        *("batch=1", "runtime=jax_export batch=1", "batch=8", "runtime=jax_export batch=8")
    ]
    with pytest.raises(UsageError, match="jax_export is exported from jax, which --backend does not name"):
        config_of(replace(exported, backends=["torch"]))
    case = replace(made.case(options=config.options[2]), plan=config.effort.plan)
    assert [at.selected.workload.predicted for at in (case, case.resized())] == [32, 8]
    trains = replace(case, plan=SWEEP)
    assert trains.resized() is trains


def test_two_sizes_divide_a_bracket_where_there_is_room() -> None:
    brackets = [(64, 128), (8, 64), (1, 2), (2, 4), (1, 4)]
    between = [sizes_between(low, high, whole=True) for low, high in brackets]
    assert between == [[81, 102], [16, 32], [], [3], [2, 3]]
    assert sizes_between(1, 2, whole=False) == [1.26, 1.59]  # widths


def planner(*options: Options) -> SweepPlanner:
    return SweepPlanner(RunConfig(options=[*options]), SweepConfig())


def test_a_sweep_is_of_one_workload_and_by_widths_of_one_that_scales() -> None:
    with pytest.raises(UsageError, match=r"names 2: dense\.py/a, dense\.py/b; name one of them"):
        planner().require([made.selected(workload_name=name) for name in ("a", "b")])
    planner(Options(batch=8)).require([made.selected()])
    script = replace(made.selected(), workload=replace(made.selected().workload, streams=True))
    with pytest.raises(UsageError, match="dense is given a stream, which decides the batch size"):
        planner(Options(batch=8)).require([script])
    with pytest.raises(UsageError, match="dense has no --width"):
        planner(Options(batch=8), Options(width=2.0)).require([made.selected()])


BATCHES = (1, 8, 64, 512)
BACKENDS = ("jax", "tensorflow", "torch")


def swept(options: Sequence[Options]) -> list[Case]:
    return [made.case(backend=backend, options=at_size) for at_size in options for backend in BACKENDS]


def swept_plan(budget_s: float | None = None, **config: Any) -> Plan:
    options = [Options(batch=batch) for batch in BATCHES]
    plan = made.plan(*swept(options), effort=Effort(budget_s=budget_s, plan=SWEEP))
    asked = sweep.MODE.configured(made.changed(plan.config, options=options, **config), SweepConfig(refine=True))
    return made.changed(plan, config=asked)


def crossing(planted: float = 20.0, rounds: int = 3, third: Callable[[int], float] = lambda batch: 100.0) -> Run:
    """jax is overtaken by torch at that batch; the third, tensorflow, is slower than both unless told otherwise."""
    trials: list[Trial] = []
    for batch in BATCHES:
        for backend, ms in {"jax": 1.0, "tensorflow": third(batch), "torch": math.sqrt(planted / batch)}.items():
            in_rounds = [ms * (1 + number / 1000) for number in range(rounds)]
            trials += made.in_rounds(*in_rounds, overhead_ms=10.0, backend=backend, options=Options(batch=batch))
    return made.record(*trials, rounds=rounds)


def finer(planned: Plan, first: Run) -> Plan:
    return made.known(registry.planner(planned.config).more(planned, first, 100.0))


def test_two_more_sizes_are_measured_once_inside_the_bracket_on_the_columns_that_cross() -> None:
    planned = swept_plan()
    plan = finer(planned, crossing())
    assert [case.label for case in plan.cases[len(planned.cases) :]] == [
        f"dense {backend} cpu batch={batch}" for batch in (16, 32) for backend in ("jax", "torch")
    ]
    assert plan.config.options == [Options(batch=batch) for batch in (*BATCHES, 16, 32)]
    assert (plan.effort.min_rounds, plan.effort.max_rounds) == (3, 3)
    assert plan.effort.plan == planned.effort.plan
    assert plan.warnings == ["more sizes near the crossover: batch=16, batch=32"]
    assert registry.planner(plan.config).more(plan, crossing(), 100.0) is None
    limited = swept_plan(budget_s=100 + 4 * 3 * 9 + 1)  # four cases of three trials, 9 s each
    too_long = [
        registry.planner(limited.config).more(limited, crossing(), spent_s) is None for spent_s in (100.0, 1_000.0)
    ]
    assert too_long == [False, True]
    shared = more_sizes(summarize(crossing(third=lambda batch: (20 / batch) ** 0.7)))  # by two brackets
    assert {size: len(columns) for size, columns in shared.items()} == {Size(16): 3, Size(32): 3}
    of_slower = crossing(1e9, third=lambda batch: math.sqrt(1e9 / 20))  # one that is faster has no place in between
    assert more_sizes(summarize(of_slower)) == {}


def test_only_a_whole_run_with_a_crossing_that_has_an_interval_is_refined() -> None:
    quick = crossing(rounds=1)  # whose slices give an interval
    for number, trial in enumerate(quick.trials):
        step_ms = made.known(trial.measurement).median_ns["train"] / made.MS
        slices = made.sliced([step_ms * (1 + 0.001 * (cycle % 3)) for cycle in range(12)])
        quick.trials[number] = made.changed(trial, measurement=slices, block=1 + number // len(BACKENDS))
    assert more_sizes(summarize(quick))
    cut_short = made.changed(crossing(), stopped_because=INTERRUPTED)
    for record in (quick, crossing(rounds=2), cut_short, crossing(planted=1e9)):
        assert registry.planner(swept_plan().config).more(swept_plan(), record, 100.0) is None


def trials_of(cases: Sequence[Case]) -> list[Trial]:
    return [made.trial(1, backend=case.backend, options=case.options) for case in cases]


def test_a_refined_sweep_goes_on_with_the_columns_that_each_size_has() -> None:
    planned = swept_plan(budget_s=1e6)
    refined = finer(planned, crossing())
    tried = trials_of([case for case in refined.cases if case.options.get("batch") != 32])
    every = made.changed(refined, cases=swept(refined.config.options))
    again = resume.as_started(every, made.record(*tried), registry.planner(every.config).is_second_part)
    of_size = {
        size: [case.backend for case in again.cases if case.options.get("batch") == size] for size in (8, 16, 32)
    }
    assert of_size == {8: [*BACKENDS], 16: ["jax", "torch"], 32: [*BACKENDS]}
    is_second_part = registry.planner(planned.config).is_second_part
    assert resume.as_started(planned, made.record(*tried[:1]), is_second_part) is planned


def test_a_refined_sweep_goes_on_with_the_controls_that_its_further_sizes_have() -> None:
    """It is beside the first of the columns that cross there, which is not the first of all."""
    planned = swept_plan(budget_s=1e6, control=True)
    planned = made.changed(planned, cases=with_controls(planned.cases))
    refined = finer(planned, crossing(5, third=lambda batch: 0.5))
    assert not any(options.control for options in refined.config.options)  # it is asked for once, for all rows
    further = [case for case in refined.cases if case.options.get("batch") in (16, 32)]
    assert "tensorflow" in {case.backend for case in further if case.options.control}
    every = made.changed(refined, cases=with_controls(swept(refined.config.options)))
    again = resume.as_started(every, made.record(*trials_of(further)), registry.planner(every.config).is_second_part)
    assert {case.key for case in again.cases} >= {case.key for case in further}


def test_further_sizes_begin_with_what_was_measured_and_are_one_record_with_it() -> None:
    planned = swept_plan(budget_s=1e6)
    first = made.changed(crossing(), config=planned.config, stopped_because="every interval is within ±2%")
    first.trials.append(made.trial(0, failure=made.FAILURE))  # absent

    def execute(further: Plan, earlier: Run) -> Run:
        assert all(trial.round for trial in earlier.trials)
        trials = [*earlier.trials, *trials_of(further.cases[12:])]
        return made.changed(earlier, config=further.config, trials=trials, stopped_because="all 3 rounds are done")

    def full(further: Plan, earlier: Run) -> Run:
        raise ResultsError("full")

    more = finer(planned, first)
    whole = resume.with_more(more, first, execute)
    assert {trial.options.get("batch") for trial in whole.trials} == {1, 8, 16, 32, 64, 512}
    assert (whole.started, whole.stopped_because) == (first.started, first.stopped_because)
    assert whole.config == made.changed(more.config, effort=planned.effort) != more.config
    interrupted = made.changed(whole, stopped_because=INTERRUPTED, rounds_completed=1)
    cut_short = resume.with_more(more, first, lambda further, earlier: interrupted)
    assert (cut_short.stopped_because, cut_short.rounds_completed) == (INTERRUPTED, 3)
    assert resume.with_more(more, first, full) is first
    assert resume.with_more(None, first, execute) is first
