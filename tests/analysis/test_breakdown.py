"""Where an epoch's time goes, out of trials whose parts are known."""

import dataclasses
from collections.abc import Sequence

import pytest

from kerasbench.analysis.estimates import mean_interval
from kerasbench.analysis.findings import Findings
from kerasbench.modes.explain.breakdown import Help, StepBreakdown, share
from kerasbench.modes.explain.tell import sentences
from kerasbench.protocol.columns import Column, Device, Options
from kerasbench.protocol.measurement import Measurement, Samples, Slice
from kerasbench.results.merge import merge
from kerasbench.results.run import Counted, Trial
from tests import made
from tests.made import with_parts
from tests.records import rivals

GPU = Device("cuda", 0, "NVIDIA H200")
FLOPS = [Counted("dense", "default", 1e6)]  # for each sample of its batches of 32
ROUNDS = (1, 2, 3)


def explained(*others: Trial, found: Measurement | None = None) -> StepBreakdown:
    mine = [made.trial(index, found=found or with_parts()) for index in ROUNDS]
    return breakdown([*mine, *others])


def breakdown(trials: Sequence[Trial], flops: Sequence[Counted] = FLOPS) -> StepBreakdown:
    rounds = max(trial.round for trial in trials)
    (one,) = Findings.of(dataclasses.replace(made.record(*trials, rounds=rounds), flops=list(flops))).breakdowns
    return one


def test_the_parts_of_a_step_are_shares_of_it_whatever_it_took_when_they_were_measured() -> None:
    one = explained(found=with_parts(arrays_ms=4.0, ready_ms=3.0))
    step = sum(part.value for part in (one.feeding_ms, one.framework_ms, one.computation_ms))
    assert one.overhead_ms.value + one.steps * step == pytest.approx(one.epoch_ms.value)
    assert (one.overhead_ms.value, one.epoch_ms.value) == pytest.approx((10.0, 210.0))
    assert (one.feeding_ms.value, one.framework_ms.value, one.computation_ms.value) == pytest.approx((0.5, 1.0, 0.5))
    assert one.later.value == pytest.approx(2.0)


def test_an_epoch_without_a_full_step_is_not_taken_apart() -> None:
    short = dataclasses.replace(with_parts(), full_steps_per_epoch=0)
    assert Findings.of(made.record(made.trial(1, found=short))).breakdowns == []


def turns(*times_ms: tuple[float, ...]) -> Samples:
    """A way's slices: those of each turn."""
    return Samples.of(Slice(10, int(10 * ms * made.MS), cycle, 0) for cycle, turn in enumerate(times_ms) for ms in turn)


def test_a_share_is_of_the_same_turn_so_that_drift_does_not_touch_it() -> None:
    # The machine takes three times as long in the second turn, and ten times in the third.
    assert share(turns((1, 1), (3, 3), (10, 10)), turns((2, 2), (6, 6), (20, 20))) == pytest.approx(0.5)
    # Each turn has its own share; the one in the middle stands for them.
    assert share(turns((1, 3), (3, 3), (4, 4)), turns((4, 4), (4, 4), (4, 4))) == pytest.approx(0.75)
    # Slices that no turn is known of are one turn.
    assert share(Samples([10] * 3, [10, 20, 90]), Samples([10] * 3, [40, 10, 90])) == pytest.approx(0.5)


def test_parts_of_a_machine_that_drifts_have_the_interval_of_their_shares() -> None:
    ways = [[1.0, 3.0, 2.0], [0.75, 2.25, 1.5], [0.5, 1.5, 1.0]]
    found = [with_parts(arrays, ready, bare, steady_ms=arrays) for arrays, ready, bare in zip(*ways, strict=True)]
    one = breakdown([made.trial(index, found=each) for index, each in zip(ROUNDS, found, strict=True)])
    assert (one.epoch_ms.half_width or 0) > 1
    for part in (one.feeding_ms, one.framework_ms, one.computation_ms):
        assert part.half_width == pytest.approx(0.0, abs=1e-6)


ABOVE, LEVEL, BELOW = (2.9, 3.0, 3.1), (-3.0, 2.0, -1.0), (-2.9, -3.0, -3.1)


@pytest.mark.parametrize(("values", "seen"), [(ABOVE, True), (LEVEL, False), (BELOW, False)])
def test_an_amount_is_called_a_cost_only_where_it_is_above_zero(values: tuple[float, ...], seen: bool) -> None:
    one = dataclasses.replace(explained(), feeding_ms=mean_interval(values))
    assert ("143 % input pipeline" in sentences(one)[0]) is seen


def test_the_rate_is_the_counted_operations_over_the_bare_step() -> None:
    one = explained()
    assert made.known(one.rate).value == pytest.approx(32 * 1e6 / 1e-3)
    assert made.known(one.peak).value == pytest.approx(1e11)


def test_a_larger_batch_is_advised_by_the_time_of_a_sample() -> None:
    # Four times the samples in twice the time: half of the time for each.
    (advice,) = [one for one in explained(*rivals(4.0, Options(batch=128))).advice if one.what is Help.BATCH]
    assert advice.contrast.ratio.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("step_ms_", "options"),
    [
        (8.0, Options(batch=128)),  # as much for each sample
        (0.1, Options(batch=16)),  # what is smaller, however fast it is
        (0.1, Options(batch=128, width=0.25)),
    ],
)
def test_a_batch_that_does_not_help_is_not_advised(step_ms_: float, options: Options) -> None:
    assert not [one for one in explained(*rivals(step_ms_, options)).advice if one.what is Help.BATCH]


def test_a_larger_batch_of_another_run_is_not_advised_for_the_days_may_differ() -> None:
    mine = [made.trial(index, found=with_parts()) for index in ROUNDS]
    both = [made.record(*trials, rounds=3) for trials in (mine, rivals(4.0, Options(batch=128)))]
    in_one, apart = (
        merge([both[0], dataclasses.replace(both[1], started=day)]) for day in (both[0].started, "2026-02")
    )
    advised = [[one.what for one in Findings.of(found).breakdowns[0].advice] for found in (in_one, apart)]
    assert [Help.BATCH in each for each in advised] == [True, False]


@pytest.mark.parametrize(
    ("options", "device", "what"), [(Options(jit=True), made.CPU, Help.JIT), (Options(), GPU, Help.DEVICE)]
)
def test_another_case_of_the_row_is_advised_where_it_is_faster_beyond_doubt(
    options: Options, device: Device, what: Help
) -> None:
    (advice,) = [one for one in explained(*rivals(1.0, options, device)).advice if one.what is what]
    assert advice.contrast.ratio.value == pytest.approx(0.5)
    assert not [one for one in explained(*rivals(2.02, options, device)).advice if one.what is what]


def test_interpreters_with_labels_differ_in_more_than_the_jit() -> None:
    labelled, bare = Options(environment="keras-3.14"), Options(environment="keras-3.14", jit=False)
    mine = [made.trial(index, found=with_parts(), options=labelled) for index in ROUNDS]
    found = {advice.what: advice.contrast.over.column for advice in breakdown([*mine, *rivals(1.0, bare)]).advice}
    assert found[Help.JIT] == Column("torch", "cpu", bare)
    other = breakdown([*mine, *rivals(1.0, Options(jit=False))]).advice  # by another interpreter, too
    assert Help.JIT not in {one.what for one in other}


def test_without_a_count_and_a_second_call_there_is_neither_a_rate_nor_a_time_of_compiling() -> None:
    found = made.changed(with_parts(), training={"again_ns": []})
    one = breakdown([made.trial(index, found=found) for index in ROUNDS], flops=[])
    assert (one.rate, one.peak, one.compile_ms) == (None, None, None)
    assert made.known(explained().compile_ms).value == pytest.approx(280)
