"""Every built-in scenario and every twin on every backend, for real."""

import re
import sys
from dataclasses import dataclass

import pytest

from kerasbench import backends
from kerasbench.analysis import cases
from kerasbench.analysis.estimates import learned
from kerasbench.plan import catalog
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import Protocol, counts_epochs
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Publication:
    """What was published of a workload; ``x`` and ``y`` are one batch, as the loss function sees it."""

    parameters: int
    train: int
    steps: int
    x: str
    y: str


PUBLISHED = {  # the longest first: nothing shall wait for it in the end
    ("mnist_mlp", "full_batch"): Publication(415_310, 52_500, 1, "float32[52500, 784]", "int32[52500]"),
    ("cifar100_dense", "default"): Publication(3_623_600, 42_500, 1329, "float32[32, 32, 32, 3]", "float32[32, 100]"),
    ("boston_mlp", "default"): Publication(1_313, 379, 1, "float32[379, 13]", "float32[379, 1]"),
    ("cifar10_mlp", "default"): Publication(803_786, 50_000, 1563, "float32[32, 32, 32, 3]", "int32[32]"),
    ("cifar10_cnn", "default"): Publication(42_442, 50_000, 1563, "float32[32, 32, 32, 3]", "int32[32]"),
    ("iris_mlp", "default"): Publication(2_979, 112, 1, "float32[112, 4]", "int32[112]"),
    ("mnist_dense", "default"): Publication(266_610, 51_000, 1594, "float32[32, 28, 28]", "int32[32]"),
    ("mnist_linear", "arrays"): Publication(7_850, 50_000, 391, "float32[128, 784]", "int32[128]"),
    ("mnist_linear", "per_sample"): Publication(7_850, 50_000, 391, "float32[128, 784]", "int32[128]"),
    ("mnist_mlp", "minibatch"): Publication(415_310, 60_000, 600, "float32[100, 784]", "int32[100]"),
    ("mnist_mlp", "tiny"): Publication(415_310, 75, 1, "float32[75, 784]", "int32[75]"),
    ("tabular_conv1d", "default"): Publication(4_108, 12_800, 25, "float32[512, 29, 1]", "float32[512, 12]"),
}
ALONE = {  # on all backends another workload shows their model
    ("mnist_mlp", "full_batch"): "tensorflow",
    ("mnist_mlp", "tiny"): "torch",
    ("mnist_linear", "arrays"): "jax",
}
WHOLE = {  # one whole trial of each scenario, by a backend quick at it; none of cifar100_dense, whose epochs are long
    "jax": {"mnist_dense/default", "mnist_linear/arrays", "mnist_mlp/minibatch"},
    "tensorflow": {"cifar10_mlp/default", "cifar10_cnn/default"},
    "torch": {"boston_mlp/default", "iris_mlp/default", "tabular_conv1d/default"},
}
EASY = {("cifar10_cnn", "default"), ("iris_mlp", "default"), ("mnist_dense", "default"), ("mnist_mlp", "minibatch")}
TWINS = {  # what they share, learning and prediction, one of them shows
    ("mnist_dense", "default"): trials.STEPS_ALONE,
    ("cifar10_cnn", "default"): trials.STEPS_ALONE,
    ("mnist_mlp", "minibatch"): trials.SHORTEST,
    ("mnist_linear", "arrays"): trials.STEPS_ALONE,
}
TWIN = Options(native=True)
NAMES = backends.names()
CHANCE = 0.1  # or 0.33 for Iris, where all backends pass 0.9


def closed(found: str, wanted: str) -> str:
    """Put the published batch in where TensorFlow's graph leaves it open, as it does for a pipeline."""
    return found.replace("[?", "[" + re.split(r"[\[,\]]", wanted)[1])


def test_every_builtin_workload_is_checked_here() -> None:
    chosen = catalog.select([], sys.executable)
    assert {(one.entry.name, one.workload.name) for one in chosen} == set(PUBLISHED)
    whole = {name.partition("/")[0] for names in WHOLE.values() for name in names}
    assert whole == {scenario for scenario, _ in PUBLISHED} - {"cifar100_dense"}


# One test, and so one process of the tests, for all that is said of a workload: its trials are made once.
@pytest.mark.parametrize("key", PUBLISHED, ids="/".join)
def test_a_workload_on_every_backend(key: tuple[str, str]) -> None:
    chosen = [ALONE[key]] if key in ALONE else NAMES
    ended = {backend: trials.builtin(*key, backend, protocol=protocol_of(key, backend)) for backend in chosen}
    found = {backend: trials.measured(outcome) for backend, outcome in ended.items()}
    for backend, measurement in found.items():
        is_the_published_model(measurement, PUBLISHED[key])
        ran_where_it_was_asked_to(measurement, backend)
        learning = made.taught(measurement)
        assert learned(learning.batch_loss_before, learning.batch_loss_after)  # within six steps too
        if protocol_of(key, backend) is trials.SHORTEST:
            phases_come_in_order(ended[backend], measurement)
            if key in EASY:
                learns_well(measurement)
            assert bool(made.trained(measurement).epochs) is (made.trained(measurement).unit == "step")
        assert measurement.parity is not None
        assert len(set(measurement.parity.losses)) == 6
        silenced = [name.partition("_")[0] for name in measurement.parity.silenced]
        assert silenced == ["dropout"] * (key[0] == "tabular_conv1d")
    assert cases.judge({Column(backend, "cpu"): ("cpu", one) for backend, one in found.items()}) == {}
    for backend in NAMES if key in TWINS else []:
        twin = trials.measured(trials.builtin(*key, backend, TWIN, TWINS[key]))
        computes_what_keras_does(twin, found["jax"])
        assert bool(twin.proof.optimizer) == (key[0] in ("cifar10_cnn", "mnist_mlp"))  # Adam's
        if TWINS[key] is trials.SHORTEST:
            learns_what_keras_does(twin, found["jax"])


def protocol_of(key: tuple[str, str], backend: str) -> Protocol:
    return trials.SHORTEST if "/".join(key) in WHOLE[backend] else trials.STEPS_ALONE


def is_the_published_model(found: Measurement, wanted: Publication) -> None:
    assert (found.parameters, found.train_samples, found.steps_per_epoch) == (
        wanted.parameters,
        wanted.train,
        wanted.steps,
    )
    assert (closed(found.batch.x, wanted.x), closed(found.batch.y, wanted.y)) == (wanted.x, wanted.y)
    assert made.trained(found).unit == ("epoch" if counts_epochs(found.steps_per_epoch) else "step")
    assert 2 <= len(made.trained(found).slices) <= 4  # two again where others disturbed them
    assert all(slice_.count == made.trained(found).steps_per_slice for slice_ in made.trained(found).slices)


def ran_where_it_was_asked_to(found: Measurement, backend: str) -> None:
    assert {*found.proof.weights, *found.proof.optimizer, *found.proof.output, *found.proof.runtime} == {"cpu:0"}
    assert found.resolved.jit is (backend == "jax")
    assert found.resolved.dtype_policy == "float32"
    assert found.resolved.versions.keys() >= {"python", "keras", backend}
    assert found.peak_device_bytes is None


def phases_come_in_order(ended: Outcome, found: Measurement) -> None:
    assert found.parity is not None
    assert [phase.name for phase in ended.phases] == [
        "spawn", "worker", "import", "device", "scenario", "data", "build", "first step", "learn", "train",
        *["epoch"] * (made.trained(found).unit == "step"), "predict", "finish",
        *["parity"] * bool(found.parity.silenced), "exit",
    ]  # fmt: skip
    assert all(earlier.end_ns <= later.start_ns for earlier, later in zip(ended.phases, ended.phases[1:], strict=False))


def learns_well(found: Measurement) -> None:
    learning = made.taught(found)
    assert learning.loss < learning.first_loss
    assert learning.accuracy is not None and learning.accuracy > 2 * CHANCE


def computes_what_keras_does(twin: Measurement, keras: Measurement) -> None:
    assert cases.judge({Column("jax", "cpu"): ("cpu", keras), Column("jax", "cpu", TWIN): ("cpu", twin)}) == {}
    assert twin.parameters == keras.parameters
    assert twin.batch.x == keras.batch.x
    assert {*twin.proof.weights, *twin.proof.optimizer, *twin.proof.output, *twin.proof.runtime} == {"cpu:0"}
    assert 2 <= len(made.trained(twin).slices) <= 4


def learns_what_keras_does(twin: Measurement, keras: Measurement) -> None:
    assert made.taught(twin).loss == pytest.approx(made.taught(keras).loss, rel=0.05)  # after 65 steps of Adam
    assert made.taught(twin).accuracy == pytest.approx(made.taught(keras).accuracy, abs=0.01)
