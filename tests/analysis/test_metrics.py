import dataclasses

import pytest

from kerasbench.analysis.metrics import BY_NAME, MIN_CALLS_FOR_P99
from kerasbench.protocol.measurement import Measurement, Samples
from kerasbench.protocol.stages import ALL, BATCH, EPOCH
from tests import made


def read(name: str, measurement: Measurement) -> float | None:
    return BY_NAME[name].read(made.trial(found=measurement), measurement)


WHOLE = made.measurement(step_ms=2, overhead_ms=30, steps=100)
WITHOUT_EPOCHS = made.without(WHOLE, EPOCH)
ONE_SLOW = made.with_samples(WHOLE, train=Samples([50] * 10, [*[100 * made.MS] * 9, 10**10]))
NO_EPOCH = dict.fromkeys(("train_step_ms", "epoch_s", "epoch_overhead_ms"))


def calls(count: int) -> Measurement:
    """A trial whose calls took 1, 2, 3, ... us."""
    return made.with_predictions(WHOLE, made.predicted(1, [1_000 * (index + 1) for index in range(count)]))


@pytest.mark.parametrize(
    ("measurement", "values"),
    [
        (
            WHOLE,
            {
                "steady_step_ms": 2,
                "epoch_overhead_ms": 30,
                "epoch_s": 0.230,
                "train_step_ms": 2.3,
                "train_samples_per_s": 3200 / 0.230,
                "startup_ms": 4,  # spawn, worker, import and device
                "predict_samples_per_s": 1_000 / 0.050,  # by the median pass
                "compile_ms": 300 - 20,  # what a warm call does not take
                "peak_device_mib": None,
            },
        ),
        # A partial last batch is in the overhead, and counted as a step.
        (dataclasses.replace(WHOLE, steps_per_epoch=101), {"epoch_s": 0.230, "train_step_ms": 230 / 101}),
        (made.epochs_measurement(5), {"train_step_ms": 5, "epoch_overhead_ms": None, "steady_step_ms": None}),
        (WITHOUT_EPOCHS, {"steady_step_ms": 2, "train_samples_per_s": 32 / 0.002} | NO_EPOCH),
        (ONE_SLOW, {"steady_step_ms": 2}),
        (made.without(WHOLE, ALL), {"predict_samples_per_s": None}),
        (made.without(WHOLE, BATCH), {"predict_batch_p50_ms": None}),
        (calls(MIN_CALLS_FOR_P99 - 1), {"predict_p99_ms": None}),
        (calls(MIN_CALLS_FOR_P99), {"predict_p99_ms": 0.99001}),
        (calls(200), {"predict_p90_ms": 0.1801}),
    ],
)
def test_what_is_read_off_a_trial(measurement: Measurement, values: dict[str, float | None]) -> None:
    assert {name: read(name, measurement) for name in values} == pytest.approx(values)


def test_of_three_sessions_each_is_the_mean_of_its_trials_of_times_the_geometric_one() -> None:
    measurements = [made.measurement(1.0, overhead_ms=-1.0), made.measurement(4.0, overhead_ms=3.0)]
    trials = [
        (made.trial(found=measured, session=session), measured) for session in (1, 2, 3) for measured in measurements
    ]
    names = ("steady_step_ms", "epoch_overhead_ms")
    assert [made.estimated(BY_NAME[name].estimate(trials)).value for name in names] == pytest.approx([2.0, 1.0])
