"""How much a row does by what its first steps took, and how long that takes."""

import dataclasses

import pytest

from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.requests import Protocol, Sizes
from kerasbench.results.run import QUICK, RACE, SWEEP
from kerasbench.runs import schedule, sizes
from kerasbench.runs.turns import LEAST_CYCLES
from tests import made

MS, S = 1_000_000, 1_000_000_000
WORKLOAD = dataclasses.replace(made.workload(steps=400), batch=128, train=400 * 128)
VALIDATED = dataclasses.replace(WORKLOAD, validation=10_000, test=10_000)
PREDICTS = dataclasses.replace(WORKLOAD, predicts_only=True)


def found(step_ns: int, protocol: Protocol = QUICK.protocol, workload: WorkloadDescription = WORKLOAD) -> Sizes:
    sized = sizes.sizes_of(protocol, workload, {0: [step_ns] * sizes.PILOTS})
    assert sized is not None
    return sized


@pytest.mark.parametrize("protocol", [Protocol(), QUICK.protocol, SWEEP])
def test_a_row_whose_steps_are_quick_does_all_there_is(protocol: Protocol) -> None:
    quick = found(20 * MS, protocol, VALIDATED)
    assert (quick.parity_steps, quick.learn_steps, quick.silenced_steps, quick.warmup_calls) == (6, 65, 6, 8)
    assert (quick.evaluated_batches, quick.pass_batches, quick.left_out) == (8, 79, [])


def test_a_full_batch_learns_for_no_more_steps_than_parity_needs() -> None:
    assert found(MS, workload=dataclasses.replace(WORKLOAD, batch=52_500, train=52_500, steps=1)).learn_steps == 6


def test_slow_steps_are_fewer_and_stages_that_would_take_too_long_are_left_out() -> None:
    assert found(5 * S) == Sizes(
        step_ns=5 * S,
        parity_steps=2,
        learn_steps=2,
        silenced_steps=0,
        evaluated_batches=1,
        pass_batches=1,
        warmup_calls=2,
        left_out=["epoch", "predict_batch", "predict_all"],
    )
    second = found(S)
    assert (second.parity_steps, second.learn_steps, second.left_out) == (6, 8, [])
    patient = found(5 * S, Protocol())
    assert (patient.parity_steps, patient.learn_steps, patient.silenced_steps) == (6, 7, 6)
    assert patient.left_out == ["epoch"]


def test_only_stages_that_a_row_has_and_that_no_answer_needs_are_left_out() -> None:
    writes = dataclasses.replace(PREDICTS, new_tokens=32)
    for step_ns, left_out in ((S // 4, []), (5 * S, ["generate_call", "generate_compiled_call"])):
        assert [one for one in found(step_ns, Protocol("calls"), writes).left_out if "generate" in one] == left_out
    assert not [one for one in found(5 * S, Protocol("calls"), PREDICTS).left_out if "generate" in one]
    assert found(10 * S, SWEEP).left_out == []
    assert found(10 * S, workload=dataclasses.replace(WORKLOAD, steps=4)).left_out == ["predict_batch", "predict_all"]
    assert "parts" in found(5 * S, dataclasses.replace(QUICK.protocol, parts=True)).left_out
    assert found(5 * S, workload=PREDICTS).left_out == ["predict_all"]
    assert found(5 * S, workload=dataclasses.replace(PREDICTS, batch=1)).left_out == ["predict_all"]
    protocol = dataclasses.replace(RACE.protocol, epochs=False, predicts=True)
    assert not {"predict_one", "predict_batch"} & {*found(20 * S, protocol).left_out}


def test_a_row_is_sized_by_the_quickest_step_of_its_slowest_column_unless_that_may_be_a_hiccup() -> None:
    row = {0: [MS, MS], 2: [3 * S, 2 * S]}
    sized = sizes.sizes_of(QUICK.protocol, WORKLOAD, row)
    assert sized is not None
    assert sized.step_ns == 2 * S
    slow = 500 * MS
    for steps in range(1, sizes.PILOTS):
        assert sizes.sizes_of(QUICK.protocol, WORKLOAD, {0: [MS] * steps, 1: [slow] * steps}) is None
    assert sizes.sizes_of(QUICK.protocol, WORKLOAD, {0: [MS], 1: [MS]}) is not None  # quick, and known at once
    assert sizes.sizes_of(QUICK.protocol, WORKLOAD, {0: [MS], 1: [2 * S]}) is not None  # so long is no hiccup
    compiling = {0: [MS], 1: [20 * S]}
    assert sizes.sizes_of(QUICK.protocol, WORKLOAD, compiling, least=2) is None
    sized = sizes.sizes_of(QUICK.protocol, WORKLOAD, {0: [MS, MS], 1: [20 * S, 2 * MS]}, least=2)
    assert sized is not None and (sized.step_ns, sized.left_out) == (2 * MS, [])


@pytest.mark.parametrize("workload", [WORKLOAD, VALIDATED, PREDICTS])
@pytest.mark.parametrize("step_ns", [MS, 100 * MS, 500 * MS, S, 2 * S, 3 * S, 5 * S])
def test_no_quick_column_goes_on_for_minutes_whatever_its_step(step_ns: int, workload: WorkloadDescription) -> None:
    sized = found(step_ns, workload=workload)
    assert (
        3 < schedule.column_s(QUICK.protocol, workload, sized, step_ns) < 80
    )  # three of them and their start: five minutes


def test_a_column_takes_as_long_as_what_it_measures() -> None:
    quick = QUICK.protocol
    with_parts = dataclasses.replace(quick, parts=True)
    sized = found(100 * MS, with_parts)
    by_steps_s, quick_s, with_parts_s = (
        schedule.column_s(protocol, WORKLOAD, sized, 100 * MS) for protocol in (SWEEP, quick, with_parts)
    )
    assert by_steps_s < quick_s < with_parts_s


def test_where_nothing_can_be_learned_steps_for_parity_are_all() -> None:
    protocol = dataclasses.replace(QUICK.protocol, repeats=True)
    sized = found(100 * MS)
    learned_s, parity_s = (
        schedule.column_s(protocol, WORKLOAD, sized, 100 * MS, learnable) for learnable in (True, False)
    )
    units = sizes.units_of(WORKLOAD, 100 * MS)
    evaluated_ns = 2 * sized.evaluated_batches * units.forward
    assert learned_s - parity_s == pytest.approx((units.step * (sized.learn_steps - 6) + evaluated_ns) / 1e9)


def test_a_column_makes_few_cycles_of_long_units() -> None:
    sized, units = found(500 * MS), sizes.units_of(WORKLOAD, 500 * MS)
    without = dataclasses.replace(sized, left_out=["epoch"])
    with_s, without_s = (schedule.column_s(QUICK.protocol, WORKLOAD, sizing, 500 * MS) for sizing in (sized, without))
    epochs_s = (4 + LEAST_CYCLES) * units.epoch / 1e9
    assert with_s - without_s == pytest.approx(epochs_s + schedule.STAGE_S)
