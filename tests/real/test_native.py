"""Every twin on every backend: it computes what its Keras model computes, on the device that was asked for."""

from pathlib import Path

import pytest

from kerasbench import backends, parity
from kerasbench.options import DEFAULT, Options
from kerasbench.wire import Code
from tests.real import trials

pytestmark = pytest.mark.real

TWIN = Options(native=True)
KERAS, NATIVE = ("jax", "cpu", ""), ("jax", "cpu", "native=on")
REGIMES = [
    ("mnist_dense", "default"),
    ("cifar10_cnn", "default"),
    ("mnist_mlp", "minibatch"),
    ("mnist_linear", "arrays"),
]
IDS = ["/".join(one) for one in REGIMES]


@pytest.fixture(scope="module", autouse=True)
def _measured_side_by_side() -> None:
    twins = [(*regime, backend, TWIN) for regime in REGIMES for backend in backends.names()]
    trials.side_by_side([*((*regime, "jax", DEFAULT) for regime in REGIMES), *twins])


@pytest.mark.parametrize("backend", backends.names())
@pytest.mark.parametrize(("scenario", "regime"), REGIMES, ids=IDS)
def test_a_twin_computes_what_keras_does(scenario: str, regime: str, backend: str) -> None:
    # Keras on one backend is the reference of all: that Keras' backends agree is test_scenarios' business.
    keras = trials.measured(trials.builtin(scenario, regime, "jax", DEFAULT))
    twin = trials.measured(trials.builtin(scenario, regime, backend, TWIN))
    assert parity.judge({KERAS: ("cpu", keras), NATIVE: ("cpu", twin)}) == {}
    assert twin.parameters == keras.parameters
    # After 65 steps of Adam: initial weights that differ by 1e-7 move this loss by 2 %, measured on cifar10_cnn.
    assert twin.learning.loss == pytest.approx(keras.learning.loss, rel=0.05)
    assert twin.learning.accuracy == pytest.approx(keras.learning.accuracy, abs=0.01)
    assert twin.batch.x == keras.batch.x
    assert {*twin.proof.weights, *twin.proof.optimizer, *twin.proof.output, *twin.proof.runtime} == {"cpu:0"}
    assert bool(twin.proof.optimizer) == (scenario in ("cifar10_cnn", "mnist_mlp"))
    assert len(twin.training.blocks) == 2


def test_a_twin_that_computes_something_else_is_a_parity_failure(faults: Path) -> None:
    file = faults / "learns_faster_without_keras.py"
    keras, hasty = (trials.measured(trials.run(file, "jax", options=one)) for one in (Options(), TWIN))
    found = parity.judge({KERAS: ("cpu", keras), NATIVE: ("cpu", hasty)})
    assert {column: failure.code for column, failure in found.items()} == {NATIVE: Code.PARITY}
    assert found[NATIVE].cause.startswith("the loss of step 2 ")
