import dataclasses

import pytest

from kerasbench.analysis.metrics import BY_NAME, METRICS, MIN_CALLS_FOR_P99
from kerasbench.protocol.measurement import Latency, Measurement, Samples, Slice
from kerasbench.results.times import step_ns
from tests import made


def read(name: str, measurement: Measurement) -> float | None:
    return BY_NAME[name].read(made.trial(found=measurement), measurement)


def test_overhead_and_step_are_recovered_from_slices_and_short_epochs() -> None:
    measurement = made.measurement(step_ms=2, overhead_ms=30, steps=100)
    assert read("steady_step_ms", measurement) == pytest.approx(2)
    assert read("epoch_overhead_ms", measurement) == pytest.approx(30)
    assert read("epoch_s", measurement) == pytest.approx(0.230)
    assert read("train_step_ms", measurement) == pytest.approx(2.3)
    assert read("train_samples_per_s", measurement) == pytest.approx(3200 / 0.230)


def test_a_partial_last_batch_is_in_the_overhead_and_counted_as_a_step() -> None:
    whole = made.measurement(step_ms=2, overhead_ms=30, steps=100)
    partial = dataclasses.replace(whole, steps_per_epoch=101)
    assert read("epoch_s", partial) == read("epoch_s", whole)
    assert read("train_step_ms", partial) == pytest.approx(230 / 101)


def test_a_full_batch_has_no_overhead_of_its_own() -> None:
    measurement = made.epochs_measurement(epoch_ms=5)
    assert read("train_step_ms", measurement) == pytest.approx(5)
    assert read("epoch_overhead_ms", measurement) is None
    assert read("steady_step_ms", measurement) is None


def test_one_slow_slice_does_not_move_the_value() -> None:
    measurement = made.measurement(step_ms=2)
    slices = Samples.of([*list(made.trained(measurement).slices)[:9], Slice(50, 10**10)])
    assert read("steady_step_ms", made.changed(measurement, training={"slices": slices})) == pytest.approx(2)


def test_what_a_trial_does_not_have_is_none() -> None:
    measurement = made.measurement()
    assert read("peak_device_mib", measurement) is None
    assert read("predict_batch_p50_ms", dataclasses.replace(measurement, prediction=measurement.prediction[:1])) is None
    assert read("predict_samples_per_s", dataclasses.replace(measurement, throughput=None)) is None


def test_startup_is_spawn_worker_import_and_device() -> None:
    assert read("startup_ms", made.measurement()) == pytest.approx(4)


def test_names_are_unique_and_end_in_their_unit() -> None:
    assert len(BY_NAME) == len(METRICS)
    suffix = {"ms": "_ms", "s": "_s", "MiB": "_mib", "/s": "_per_s"}
    assert all(metric.name.endswith(suffix.get(metric.unit, "")) for metric in METRICS)


def calls(count: int) -> Measurement:
    """A trial whose calls took 1, 2, 3, ... us."""
    found = [Latency(1, [1_000 * (index + 1) for index in range(count)])]
    return dataclasses.replace(made.measurement(), prediction=found)


def test_the_99th_percentile_needs_a_thousand_calls() -> None:
    assert read("predict_p99_ms", calls(MIN_CALLS_FOR_P99 - 1)) is None
    assert read("predict_p99_ms", calls(MIN_CALLS_FOR_P99)) == pytest.approx(0.990, rel=1e-3)
    assert read("predict_p90_ms", calls(200)) == pytest.approx(0.180, rel=1e-2)


def test_one_trial_s_percentile_has_no_interval_and_three_have_that_of_their_values() -> None:
    metric, one = BY_NAME["predict_p50_ms"], calls(100)
    found = made.estimated(metric.estimate([(made.trial(found=one), one)]))
    assert (found.low, found.high, found.trials) == (None, None, 1)
    of_three = made.estimated(metric.estimate([(made.trial(index, found=one), one) for index in (1, 2, 3)]))
    assert of_three.trials == 3
    assert of_three.half_width == pytest.approx(0)


def test_of_three_sittings_each_is_the_mean_of_its_trials_of_times_the_geometric_one() -> None:
    found = [made.measurement(1.0, overhead_ms=-1.0), made.measurement(4.0, overhead_ms=3.0)]
    trials = [
        (dataclasses.replace(made.trial(found=one), sitting=sitting), one) for sitting in (1, 2, 3) for one in found
    ]
    names = ("steady_step_ms", "epoch_overhead_ms")
    assert [made.estimated(BY_NAME[name].estimate(trials)).value for name in names] == pytest.approx([2.0, 1.0])


def test_throughput_is_the_median_pass_and_compiling_is_what_a_warm_call_does_not_take() -> None:
    assert read("predict_samples_per_s", made.measurement()) == pytest.approx(1_000 / 0.050)
    assert read("compile_ms", made.measurement()) == pytest.approx(300 - 20)


def test_a_trial_without_epochs_has_the_step_inside_them_and_a_throughput_of_that() -> None:
    whole = made.measurement(step_ms=2, overhead_ms=30, steps=100)
    steps_alone = made.changed(whole, training={"epochs": Samples.of(())})
    assert read("steady_step_ms", steps_alone) == pytest.approx(2)
    assert read("train_samples_per_s", steps_alone) == pytest.approx(32 / 0.002)
    assert [read(name, steps_alone) for name in ("train_step_ms", "epoch_s", "epoch_overhead_ms")] == [None] * 3
    assert step_ns(steps_alone) == pytest.approx(2e6)
    assert step_ns(whole) == pytest.approx(2.3e6)
