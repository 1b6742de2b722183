import dataclasses
import math

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.plan import request
from kerasbench.plan.cases import Plan
from kerasbench.protocol.columns import Options, Size
from kerasbench.results import record
from kerasbench.results.record import INTERRUPTED, Record
from kerasbench.runs import schedule
from tests import made

BATCHES = (1, 8, 64, 512)
BACKENDS = ("jax", "tensorflow", "torch")


def swept_plan(budget_s: float | None = None) -> Plan:
    options = [Options(batch=batch) for batch in BATCHES]
    effort = dataclasses.replace(request.effort_of(False, None, False, "sweep"), budget_s=budget_s)
    cases = [
        dataclasses.replace(made.case(backend=backend, options=one), protocol=effort.protocol)
        for one in options
        for backend in BACKENDS
    ]
    return Plan(record.RunConfig(options=options, effort=effort, refine=True), made.MACHINE, cases, [])


def crossing(planted: float = 20.0, rounds: int = 3) -> Record:
    """jax is overtaken by torch at that batch; tensorflow is slower than both everywhere."""

    def step_ms(backend: str, batch: int) -> float:
        return {"jax": 1.0, "torch": math.sqrt(planted / batch), "tensorflow": 100.0}[backend]

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


def test_two_more_sizes_are_measured_inside_the_bracket_on_the_columns_that_cross() -> None:
    planned = swept_plan()
    found = schedule.finer(planned, crossing(), 100.0)
    assert found is not None
    added = found.cases[len(planned.cases) :]
    assert [case.label for case in added] == [
        "dense jax cpu batch=16", "dense torch cpu batch=16", "dense jax cpu batch=32", "dense torch cpu batch=32",
    ]  # fmt: skip
    assert found.config.options == [Options(batch=batch) for batch in (*BATCHES, 16, 32)]
    assert (found.effort.min_rounds, found.effort.max_rounds) == (3, 3)
    assert found.effort.protocol == planned.effort.protocol
    assert found.warnings == ["more sizes where series cross: batch=16, batch=32"]


def test_a_control_is_asked_for_once_for_all_rows() -> None:
    planned = swept_plan()
    with_control = dataclasses.replace(planned, config=dataclasses.replace(planned.config, control=True))
    found = schedule.finer(with_control, crossing(), 100.0)
    assert found is not None
    assert any(case.options.control for case in found.cases)
    assert not any(options.control for options in found.config.options)


def test_a_quick_look_is_not_refined_though_its_slices_give_an_interval() -> None:
    record = crossing(rounds=1)
    for number, trial in enumerate(record.trials):
        assert trial.measurement is not None and trial.measurement.training is not None
        step_ms = trial.measurement.training.median_ns / made.MS
        slices = made.sliced([step_ms * (1 + 0.001 * (cycle % 3)) for cycle in range(12)])
        record.trials[number] = dataclasses.replace(trial, measurement=slices, block=1 + number // len(BACKENDS))
    assert schedule.more_sizes(summarize(record))
    assert schedule.finer(swept_plan(), record, 100.0) is None


def test_it_is_done_once() -> None:
    planned = swept_plan()
    found = schedule.finer(planned, crossing(), 0.0)
    assert found is not None
    assert schedule.finer(found, crossing(), 0.0) is None


def test_without_a_crossing_with_an_interval_nothing_is_added() -> None:
    assert schedule.finer(swept_plan(), crossing(planted=1e9), 0.0) is None
    assert schedule.finer(swept_plan(), crossing(rounds=2), 0.0) is None


def test_an_interrupted_run_is_not_refined() -> None:
    record = crossing()
    record.stopped_because = INTERRUPTED
    assert schedule.finer(swept_plan(), record, 0.0) is None


@pytest.mark.parametrize(("spent_s", "goes_on"), [(100.0, True), (1_000.0, False)])
def test_a_budget_must_hold_it(spent_s: float, goes_on: bool) -> None:
    planned = swept_plan(budget_s=100 + 4 * 3 * 9 + 1)  # four cases of three trials, 9 s each
    assert (schedule.finer(planned, crossing(), spent_s) is not None) is goes_on


def test_sizes_that_two_brackets_share_are_measured_once() -> None:
    record = crossing()
    for one in list(record.trials):
        if one.backend == "tensorflow":
            record.trials.remove(one)
            step_ms = (20 / (one.options.batch or 1)) ** 0.7
            scaled = made.measurement(step_ms * (1 + one.round / 1000))
            record.trials.append(dataclasses.replace(one, measurement=scaled))
    found = schedule.more_sizes(summarize(record))
    assert set(found) == {Size(16), Size(32)}
    assert all(len(columns) == 3 for columns in found.values())


def test_both_parts_are_one_record() -> None:
    first, going_on = crossing(), crossing()
    first.stopped_because, going_on.stopped_because = "every interval is within ±2%", "all 3 rounds are done"
    joined = schedule.joined(first, going_on)
    assert joined.stopped_because == "every interval is within ±2%"
    interrupted = dataclasses.replace(going_on, stopped_because=INTERRUPTED, rounds_completed=1)
    assert schedule.joined(first, interrupted).stopped_because == INTERRUPTED
    assert schedule.joined(first, interrupted).rounds_completed == 3


def test_a_sweep_with_further_sizes_may_still_have_the_rounds_that_were_asked_for() -> None:
    planned = swept_plan(budget_s=1e6)
    first = dataclasses.replace(crossing(), config=planned.config)
    finer = schedule.finer(planned, first, 100.0)
    assert finer is not None
    going_on = dataclasses.replace(crossing(), config=finer.config)
    joined = schedule.joined(first, going_on)
    assert joined.config == dataclasses.replace(finer.config, effort=planned.effort)
    assert finer.effort != planned.effort


def test_a_refined_sweep_goes_on_with_the_columns_that_each_size_has() -> None:
    planned = swept_plan(budget_s=1e6)
    first = crossing()
    finer = schedule.finer(planned, first, 100.0)
    assert finer is not None
    tried = [
        made.trial(1, backend=case.backend, options=case.options) for case in finer.cases if case.options.batch != 32
    ]
    every = dataclasses.replace(finer, cases=[])
    for one in finer.config.options:
        every.cases.extend(
            dataclasses.replace(made.case(backend=backend, options=one), protocol=planned.effort.protocol)
            for backend in BACKENDS
        )
    again = schedule.as_begun(every, made.record(*tried))
    of_size = {size: [case.backend for case in again.cases if case.options.batch == size] for size in (8, 16, 32)}
    assert of_size == {8: [*BACKENDS], 16: ["jax", "torch"], 32: [*BACKENDS]}
    assert schedule.as_begun(planned, made.record(*tried[:1])) is planned


def test_a_plan_s_absent_cases_are_not_carried() -> None:
    record = crossing()
    record.trials.append(dataclasses.replace(made.trial(failure=made.FAILURE), round=0))
    assert len(schedule.earlier(record).trials) == len(record.trials) - 1
