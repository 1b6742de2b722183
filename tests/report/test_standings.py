import dataclasses

import pytest

from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import TrialPlan
from kerasbench.report.live import LiveBlock, LogRatios, log_ratios, standing
from tests import made


def block(**steps_ms: list[float]) -> LogRatios:
    slices = {
        label: [Slice(10, int(1e7 * ms), cycle, 0) for cycle, ms in enumerate(of_column)]
        for label, of_column in steps_ms.items()
    }
    return log_ratios(slices, dict.fromkeys(slices, 32))


def test_the_fastest_is_told_with_how_many_times_as_long_the_others_take_in_the_same_cycles() -> None:
    ratios = standing([block(torch=[9, 9, 90], jax=[1, 1, 10], tensorflow=[3, 3, 30])])
    assert list(ratios) == ["jax", "tensorflow", "torch"]
    assert list(ratios.values()) == pytest.approx([1, 3, 9])


def test_a_disturbed_cycle_of_the_first_ones_hides_nobody() -> None:
    slices = {
        label: [Slice(10, 100 * times, cycle, 0, disturbed=cycle == 0 and label == "b") for cycle in range(3)]
        for times, label in enumerate("abc", start=1)
    }
    assert list(standing([log_ratios(slices, dict.fromkeys(slices, 32))])) == ["a", "b", "c"]


def test_nobody_is_ahead_while_other_programs_interrupt_most_turns() -> None:
    cases = [made.case(backend=name) for name in ("jax", "torch")]
    live = LiveBlock(cases, True, 0.03, [])
    steps_ns = {cases[0].label: 1_000, cases[1].label: 449_000}

    def turns(*disturbed: bool) -> dict[str, list[Slice]]:
        return {
            label: [Slice(10, ns, cycle, 0, disturbed=marked) for cycle, marked in enumerate(disturbed)]
            for label, ns in steps_ns.items()
        }

    live.end_cycle("train", turns(True, True, True, False))
    assert live.answer() == "dense: undecided so far, because other programs use the CPU" and live.ratios == {}
    live.end_cycle("train", turns(True, True, True, False, False, False))
    assert live.answer() == "dense: JAX leads so far; PyTorch takes 449× as long"


def test_a_step_of_a_larger_batch_counts_by_its_samples() -> None:
    slices = {label: [Slice(10, ns, cycle, 0) for cycle in range(3)] for label, ns in (("small", 10), ("large", 80))}
    assert standing([log_ratios(slices, {"small": 32, "large": 512})]) == {"large": 1, "small": pytest.approx(2)}


@pytest.mark.parametrize("few", [{}, {"torch": [1.0] * 9}, {"torch": [1.0] * 9, "jax": [1.0] * 2}])
def test_one_column_and_the_first_cycles_tell_nothing(few: dict[str, list[float]]) -> None:
    assert standing([block(**few)]) == {}


def test_blocks_count_alike_and_columns_that_are_gone_are_not_told() -> None:
    first, second = block(a=[1] * 3, b=[2] * 3, c=[5] * 3), block(a=[1] * 9, b=[8] * 9)
    assert standing([first, second]) == {"a": 1, "b": pytest.approx(4)}


@pytest.mark.parametrize("lasts", [True, False])
def test_nobody_is_ahead_in_a_soak(lasts: bool) -> None:
    cases = [
        dataclasses.replace(made.case(backend=name), plan=TrialPlan(fixed_time=lasts)) for name in ("jax", "torch")
    ]
    live = LiveBlock(cases, True, 0.03, [])
    times_ns = {cases[0].label: 1_000, cases[1].label: 2_000}
    live.end_cycle("train", {label: [Slice(10, ns, cycle, 0) for cycle in range(3)] for label, ns in times_ns.items()})
    assert bool(live.answer()) is not lasts
    assert len(live.lines()) == 3
