"""The built-in scenarios and their baselines on every backend, for real. What each model is, test_built says."""

import sys

import pytest

from kerasbench import backends
from kerasbench.analysis import parity
from kerasbench.analysis.estimates import learned
from kerasbench.plan import catalog
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import counts_epochs
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

NAMES = backends.names()
# One workload of each scenario on all backends, the longest first: nothing shall wait for it in the end.
EVERYWHERE = {
    "cifar100_dense": "default",
    "boston_mlp": "default",
    "cifar10_mlp": "default",
    "cifar10_cnn": "default",
    "iris_mlp": "default",
    "mnist_dense": "default",
    "mnist_linear": "arrays",
    "mnist_mlp": "minibatch",
    "tabular_conv1d": "default",
}
# One whole trial of each kind: epochs of a single step, callbacks, dropout, convolutions.
WHOLE = {"iris_mlp": "torch", "tabular_conv1d": "torch", "cifar10_cnn": "tensorflow", "mnist_mlp": "jax"}
LEARNING = {"iris_mlp", "cifar10_cnn", "mnist_mlp"}
BASELINES = {  # learning and prediction, which they share, one of them shows
    "mnist_dense": trials.STEPS_ALONE,
    "cifar10_cnn": trials.STEPS_ALONE,
    "mnist_linear": trials.STEPS_ALONE,
    "mnist_mlp": trials.SHORTEST,
}
TWIN = Options(native=True)
CHANCE = 0.1  # or 0.33 for Iris, where all backends pass 0.9


def test_every_builtin_scenario_is_checked_here() -> None:
    assert {one.entry.name for one in catalog.select([], sys.executable)} == set(EVERYWHERE)


# One test, and so one process of the tests, for all that is said of a scenario: its trials are made once.
@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_scenario_on_every_backend(name: str) -> None:
    ended = {backend: trial(name, backend) for backend in NAMES}
    found = {backend: trials.measured(outcome) for backend, outcome in ended.items()}
    for backend, measurement in found.items():
        ran_where_it_was_asked_to(measurement, backend)
        learning = made.taught(measurement)
        assert learned(learning.batch_loss_before, learning.batch_loss_after)  # within six steps too
        assert made.trained(measurement).unit == ("epoch" if counts_epochs(measurement.steps_per_epoch) else "step")
        assert measurement.parity is not None and len(set(measurement.parity.losses)) == 6
        silenced = [layer.partition("_")[0] for layer in measurement.parity.silenced]
        assert silenced == ["dropout"] * (name == "tabular_conv1d")
        if WHOLE.get(name) == backend:
            phases_come_in_order(ended[backend], measurement)
            assert bool(made.trained(measurement).epochs) is (made.trained(measurement).unit == "step")
            assert name not in LEARNING or learns_well(measurement)
    assert parity.judge_parity({Column(backend, "cpu"): ("cpu", one) for backend, one in found.items()}) == {}
    for backend in NAMES if name in BASELINES else []:
        baseline = trials.measured(trials.builtin(name, EVERYWHERE[name], backend, TWIN, BASELINES[name]))
        computes_what_keras_does(baseline, found["jax"])
        assert bool(baseline.proof.optimizer) == (name in ("cifar10_cnn", "mnist_mlp"))  # Adam's
        if BASELINES[name] is trials.SHORTEST:
            learned_by_keras = made.taught(found["jax"])  # after 65 steps of Adam
            assert made.taught(baseline).loss == pytest.approx(learned_by_keras.loss, rel=0.05)
            assert made.taught(baseline).accuracy == pytest.approx(learned_by_keras.accuracy, abs=0.01)


def test_rows_that_are_fed_one_by_one_through_python_are_the_same_as_those_from_arrays() -> None:
    fed = trials.measured(trials.builtin("mnist_linear", "per_sample", "torch", protocol=trials.STEPS_ALONE))
    arrays = trials.measured(trials.builtin("mnist_linear", "arrays", "torch", protocol=trials.STEPS_ALONE))
    assert (fed.batch.x, fed.batch.y) == (arrays.batch.x, arrays.batch.y) == ("float32[128, 784]", "int32[128]")


def trial(name: str, backend: str) -> Outcome:
    protocol = trials.SHORTEST if WHOLE.get(name) == backend else trials.STEPS_ALONE
    return trials.builtin(name, EVERYWHERE[name], backend, protocol=protocol)


def ran_where_it_was_asked_to(found: Measurement, backend: str) -> None:
    assert {*found.proof.weights, *found.proof.optimizer, *found.proof.output, *found.proof.runtime} == {"cpu:0"}
    assert found.resolved.jit is (backend == "jax")
    assert found.resolved.dtype_policy == "float32"
    assert found.resolved.versions.keys() >= {"python", "keras", backend}
    assert found.peak_device_bytes is None


def phases_come_in_order(ended: Outcome, found: Measurement) -> None:
    assert found.parity is not None
    assert [phase.name for phase in ended.phases] == [
        "spawn", "worker", "import", "keras", "device", "scenario", "data", "build", "first step", "learn", "train",
        *["epoch"] * (made.trained(found).unit == "step"), "predict", "finish",
        *["parity"] * bool(found.parity.silenced), "exit",
    ]  # fmt: skip
    assert all(earlier.end_ns <= later.start_ns for earlier, later in zip(ended.phases, ended.phases[1:], strict=False))


def learns_well(found: Measurement) -> bool:
    learning = made.taught(found)
    return learning.loss < learning.first_loss and learning.accuracy is not None and learning.accuracy > 2 * CHANCE


def computes_what_keras_does(baseline: Measurement, keras: Measurement) -> None:
    assert (
        parity.judge_parity({Column("jax", "cpu"): ("cpu", keras), Column("jax", "cpu", TWIN): ("cpu", baseline)}) == {}
    )
    assert baseline.parity is not None
    assert (baseline.parameters, baseline.batch.x) == (keras.parameters, keras.batch.x)
    assert {*baseline.proof.weights, *baseline.proof.optimizer, *baseline.proof.output, *baseline.proof.runtime} == {
        "cpu:0"
    }
