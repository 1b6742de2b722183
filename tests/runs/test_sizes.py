import dataclasses

import pytest

from kerasbench.plan.stages import stages_of
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import Sizes, TrialPlan
from kerasbench.protocol.stages import EPOCH, PARTS
from kerasbench.results.run import QUICK, SWEEP
from kerasbench.runs import schedule, sizes
from tests import made

MS, S = 1_000_000, 1_000_000_000
BRIEF = QUICK.plan
WORKLOAD = dataclasses.replace(made.workload(steps=400), batch=128, train=400 * 128)
VALIDATED = dataclasses.replace(WORKLOAD, validation=10_000, test=10_000)
PREDICTS = dataclasses.replace(WORKLOAD, predicts_only=True)
WRITES = dataclasses.replace(PREDICTS, new_tokens=32)


def sized(step_ns: int, plan: TrialPlan = BRIEF, workload: WorkloadDescription = WORKLOAD) -> Sizes:
    return made.known(sizes.sizes_of(plan, workload, {0: [step_ns] * sizes.PILOTS}))


@pytest.mark.parametrize("plan", [TrialPlan(), BRIEF, SWEEP])
def test_a_row_whose_steps_are_quick_does_all_there_is(plan: TrialPlan) -> None:
    quick = sized(20 * MS, plan, VALIDATED)
    assert (quick.parity_steps, quick.learn_steps, quick.silenced_steps, quick.warmup_calls) == (6, 65, 6, 8)
    assert (quick.evaluated_batches, quick.pass_batches, quick.left_out) == (8, 79, [])
    full_batch = dataclasses.replace(WORKLOAD, batch=52_500, train=52_500, steps=1)
    assert sized(MS, plan, full_batch).learn_steps == 6  # no more than parity needs


def test_slow_steps_are_fewer_and_stages_that_would_take_too_long_are_left_out() -> None:
    assert sized(5 * S) == Sizes(
        step_ns=5 * S,
        parity_steps=2,
        learn_steps=2,
        silenced_steps=0,
        evaluated_batches=1,
        pass_batches=1,
        warmup_calls=2,
        left_out=["epoch"],
    )
    second = sized(S)
    assert (second.parity_steps, second.learn_steps, second.left_out) == (3, 3, ["epoch"])
    patient = sized(5 * S, TrialPlan())
    assert (patient.parity_steps, patient.learn_steps, patient.silenced_steps) == (6, 7, 6)
    assert patient.left_out == ["epoch"]


@pytest.mark.parametrize(
    ("step_ns", "plan", "workload", "left_out"),
    [
        (10 * S, SWEEP, WORKLOAD, []),
        (
            10 * S,
            TrialPlan(column_max_ns=20 * S),
            dataclasses.replace(WORKLOAD, steps=4),
            ["predict_batch", "predict_all"],
        ),
        (5 * S, dataclasses.replace(SWEEP, stages=(*SWEEP.stages, PARTS)), WORKLOAD, ["parts"]),
        (5 * S, BRIEF, PREDICTS, ["predict_all"]),
        (5 * S, BRIEF, dataclasses.replace(PREDICTS, batch=1), ["predict_all"]),
        (20 * S, BRIEF.of_kind("steady").leaving_out(EPOCH), WORKLOAD, ["predict_all"]),
        (S // 4, TrialPlan().of_kind("calls"), WRITES, []),
        (5 * S, TrialPlan().of_kind("calls"), WRITES, ["generate_call", "generate_compiled_call"]),
        (5 * S, TrialPlan().of_kind("calls"), PREDICTS, []),
    ],
)
def test_what_is_left_out(step_ns: int, plan: TrialPlan, workload: WorkloadDescription, left_out: list[str]) -> None:
    assert sized(step_ns, plan, workload).left_out == left_out


@pytest.mark.parametrize(
    ("steps_ns", "least", "step_ns"),
    [
        ({0: [MS, MS], 2: [3 * S, 2 * S]}, 1, 2 * S),
        ({0: [MS] * (sizes.PILOTS - 1), 1: [500 * MS] * (sizes.PILOTS - 1)}, 1, None),
        ({0: [MS], 1: [MS]}, 1, MS),  # quick, and known at once
        ({0: [MS], 1: [2 * S]}, 1, 2 * S),  # so long is no hiccup
        ({0: [MS], 1: [20 * S]}, 2, None),  # it may compile again
        ({0: [MS, MS], 1: [20 * S, 2 * MS]}, 2, 2 * MS),
    ],
)
def test_by_which_step_a_row_is_sized(steps_ns: dict[int, list[int]], least: int, step_ns: int | None) -> None:
    row = sizes.sizes_of(BRIEF, WORKLOAD, steps_ns, least)
    assert (row and row.step_ns) == step_ns


def test_a_column_that_takes_ten_times_as_long_as_another_is_left_behind_once_it_has_compiled() -> None:
    quick, slow = [200 * MS, 100 * MS], [3 * S, 2 * S]
    columns = {0: quick, 1: slow, 3: [900 * MS, 900 * MS]}
    left = sizes.left_behind(["jax cpu", "torch cpu", "", "torch gpu"], [1, 2, 1, 1], columns)
    assert {index: failure.code for index, failure in left.items()} == {1: Code.SLOW}
    assert left[1].cause == "a step takes 2.0 s, more than 10 times as long as on jax cpu"
    assert sizes.left_behind(["jax cpu", "torch cpu"], [1, 3], {0: quick, 1: slow}) == {}
    assert sizes.left_behind(["jax cpu"], [1], {0: slow}) == {}


@pytest.mark.parametrize("workload", [WORKLOAD, VALIDATED, PREDICTS])
@pytest.mark.parametrize("step_ns", [MS, 100 * MS, 500 * MS, S, 2 * S, 3 * S, 5 * S])
def test_no_quick_column_goes_on_for_minutes_whatever_its_step(step_ns: int, workload: WorkloadDescription) -> None:
    case = made.changed(made.case(), plan=BRIEF, selected={"workload": workload})
    assert (
        3
        < schedule.column_s(
            case,
            dataclasses.replace(BRIEF, stages=stages_of(BRIEF, workload)),
            sized(step_ns, workload=workload),
            step_ns,
            {},
        )
        < 80
    )  # three of them and their start: five minutes


def test_a_column_takes_as_long_as_what_it_measures() -> None:
    def column_s(plan: TrialPlan, learnable: bool = True, left_out: tuple[str, ...] = ()) -> float:
        row = dataclasses.replace(sized(100 * MS, with_parts), left_out=[*left_out])
        entry = {"description": {"learnable": learnable}}
        case = made.changed(made.case(), plan=plan, selected={"workload": WORKLOAD, "entry": entry})
        return schedule.column_s(case, plan, row, 100 * MS, {})

    with_parts = dataclasses.replace(BRIEF, stages=(*BRIEF.stages, PARTS))
    learning = dataclasses.replace(BRIEF, repeats_first_step=True)
    assert column_s(BRIEF, left_out=("epoch",)) < column_s(BRIEF) < column_s(with_parts)
    assert column_s(learning, learnable=False) == column_s(BRIEF)
    more_s = 30 * 0.07 + 16 * 0.028  # steps, and what is predicted before and after them
    assert column_s(learning) - column_s(BRIEF) == pytest.approx(more_s)
