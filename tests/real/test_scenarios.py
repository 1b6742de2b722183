"""The built-in scenarios and their baselines on every backend, for real. What each model is, test_built says."""

import sys
from itertools import pairwise

import pytest

from kerasbench import backends
from kerasbench.analysis.estimates import learned
from kerasbench.plan import catalog
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import counts_epochs
from kerasbench.protocol.stages import EPOCH
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

# The longest first: nothing shall wait for it in the end.
SCENARIOS = (
    *("cifar10_cnn", "mnist_mlp", "iris_mlp", "tabular_conv1d", "mnist_dense"),
    *("mnist_linear", "cifar100_dense", "boston_mlp", "cifar10_mlp"),
)
WORKLOADS = {"mnist_mlp": "minibatch", "mnist_linear": "arrays"}  # of the others their only one
# What is run often, and where: each backend once at least. All of them on all backends are weekly.
OFTEN = {"mnist_linear": ["jax"], "iris_mlp": backends.built_in()}
WEEKLY = [name for name in SCENARIOS if OFTEN.get(name) != backends.built_in()]
# One whole trial of each kind: epochs of a single step, callbacks, dropout, convolutions (test_suites has all layers).
WHOLE = {"iris_mlp": "torch", "tabular_conv1d": "tensorflow", "cifar10_cnn": "tensorflow", "mnist_mlp": "jax"}
LEARNING = {"iris_mlp", "cifar10_cnn", "mnist_mlp"}
BASELINES = {"mnist_dense", "cifar10_cnn", "mnist_linear", "mnist_mlp"}
TWIN = Options(native=True)
CHANCE = 0.1  # or 0.33 for Iris, where all backends pass 0.9


def test_every_builtin_scenario_is_checked_here() -> None:
    assert {selected.entry.name for selected in catalog.select([], sys.executable)} == set(SCENARIOS)


# One test, and so one process of the tests, for all that is said of a scenario: its trials are made once.
@pytest.mark.parametrize(
    ("name", "chosen"),
    [*OFTEN.items(), *(pytest.param(name, backends.built_in(), marks=pytest.mark.weekly) for name in WEEKLY)],
)
def test_a_scenario_on_its_backends(name: str, chosen: list[str]) -> None:
    workload = WORKLOADS.get(name, "default")
    whole = trials.fitted(trials.SHORTEST, steps=1) if name == "iris_mlp" else trials.SHORTEST
    plans = {backend: whole if WHOLE.get(name) == backend else trials.STEPS_ALONE for backend in chosen}
    outcomes = {backend: trials.builtin(name, workload, backend, plan=plan) for backend, plan in plans.items()}
    measured = {backend: trials.measured(outcome) for backend, outcome in outcomes.items()}
    for backend, measurement in measured.items():
        assert places(measurement) == {"cpu:0"}
        assert measurement.resolved.jit is (backend == "jax")
        assert measurement.resolved.dtype_policy == "float32"
        assert measurement.resolved.versions.keys() >= {"python", "keras", backend}
        assert measurement.peak_device_bytes is None
        learning, training = made.taught(measurement), made.trained(measurement)
        assert learned(learning.batch_loss_before, learning.batch_loss_after)  # within six steps too
        assert training.unit == ("epoch" if counts_epochs(measurement.steps_per_epoch) else "step")
        parity = made.known(measurement.parity)
        assert len(set(parity.losses)) == 6
        silenced = [layer.partition("_")[0] for layer in parity.silenced]
        assert silenced == ["dropout"] * (name == "tabular_conv1d")
        if name == "iris_mlp":  # the first moments of Adam are looked at on torch
            assert (measurement.vanishing is not None) is (backend == "torch")
        if WHOLE.get(name) == backend:
            phases_come_in_order(outcomes[backend], measurement)
            assert (EPOCH in measurement.samples) is (training.unit == "step")
            if name in LEARNING:
                assert learning.loss < parity.losses[0] and made.known(learning.accuracy) > 2 * CHANCE
    assert trials.disagreements(measured) == {}
    for backend in chosen if name in BASELINES else []:
        is_whole = (name, backend) == ("mnist_mlp", "jax")  # learning and prediction, which they share, one shows
        plan = trials.SHORTEST if is_whole else trials.STEPS_ALONE
        baseline = trials.measured(trials.builtin(name, workload, backend, TWIN, plan))
        keras = measured["jax"]
        assert trials.disagreements({Column("jax", "cpu"): keras, Column("jax", "cpu", TWIN): baseline}) == {}
        assert baseline.parity is not None
        assert (baseline.parameters, baseline.batch.x) == (keras.parameters, keras.batch.x)
        assert places(baseline) == {"cpu:0"}
        assert bool(baseline.proof.optimizer) == (name in ("cifar10_cnn", "mnist_mlp"))  # Adam's
        if is_whole:
            learned_by_keras = made.taught(keras)  # after 65 steps of Adam
            assert made.taught(baseline).loss == pytest.approx(learned_by_keras.loss, rel=0.05)
            assert made.taught(baseline).accuracy == pytest.approx(learned_by_keras.accuracy, abs=0.01)


def test_rows_are_fed_one_by_one_through_python_as_they_are_from_arrays() -> None:
    batch = trials.measured(trials.builtin("mnist_linear", "per_sample", "jax", plan=trials.STEPS_ALONE)).batch
    assert (batch.x, batch.y) == ("float32[128, 784]", "int32[128]")


def places(measurement: Measurement) -> set[str]:
    proof = measurement.proof
    return {*proof.weights, *proof.optimizer, *proof.output, *proof.runtime}


def phases_come_in_order(outcome: Outcome, measurement: Measurement) -> None:
    assert measurement.parity is not None
    assert [phase.name for phase in outcome.phases] == [
        "spawn", "worker", "import", "keras", "device", "scenario", "data", "build", "first step", "learn", "train",
        *["epoch"] * (made.trained(measurement).unit == "step"), *["predict"] * 3, "finish",
        *["parity"] * bool(measurement.parity.silenced), "facts", "exit",
    ]  # fmt: skip
    assert all(earlier.end_ns <= later.start_ns for earlier, later in pairwise(outcome.phases))
