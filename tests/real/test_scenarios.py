"""Every built-in scenario on every backend, for real."""

import re
import sys
from dataclasses import dataclass

import pytest

from kerasbench import backends, catalog, parity
from kerasbench.options import DEFAULT
from kerasbench.trial import Outcome
from kerasbench.verdict import learned
from kerasbench.worker.blocks import counts_epochs
from tests.real import trials

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Publication:
    """What was published of a regime; ``x`` and ``y`` are one batch, as the loss function sees it."""

    parameters: int
    train: int
    steps: int
    x: str
    y: str


PUBLISHED = {
    ("boston_mlp", "default"): Publication(1_313, 379, 1, "float32[379, 13]", "float32[379, 1]"),
    ("cifar100_dense", "default"): Publication(3_623_600, 42_500, 1329, "float32[32, 32, 32, 3]", "float32[32, 100]"),
    ("cifar10_cnn", "default"): Publication(42_442, 50_000, 1563, "float32[32, 32, 32, 3]", "int32[32]"),
    ("cifar10_mlp", "default"): Publication(803_786, 50_000, 1563, "float32[32, 32, 32, 3]", "int32[32]"),
    ("iris_mlp", "default"): Publication(2_979, 112, 1, "float32[112, 4]", "int32[112]"),
    ("mnist_dense", "default"): Publication(266_610, 51_000, 1594, "float32[32, 28, 28]", "int32[32]"),
    ("mnist_linear", "per_sample"): Publication(7_850, 50_000, 391, "float32[128, 784]", "int32[128]"),
    ("mnist_linear", "arrays"): Publication(7_850, 50_000, 391, "float32[128, 784]", "int32[128]"),
    ("mnist_mlp", "minibatch"): Publication(415_310, 60_000, 600, "float32[100, 784]", "int32[100]"),
    ("mnist_mlp", "full_batch"): Publication(415_310, 52_500, 1, "float32[52500, 784]", "int32[52500]"),
    ("mnist_mlp", "tiny"): Publication(415_310, 75, 1, "float32[75, 784]", "int32[75]"),
    ("tabular_conv1d", "default"): Publication(4_108, 12_800, 25, "float32[512, 29, 1]", "float32[512, 12]"),
}
EASY = [("cifar10_cnn", "default"), ("iris_mlp", "default"), ("mnist_dense", "default"), ("mnist_mlp", "minibatch")]


@pytest.fixture(scope="module", autouse=True)
def _measured_side_by_side() -> None:
    trials.side_by_side((*key, backend, DEFAULT) for key in PUBLISHED for backend in backends.names())


def outcome(key: tuple[str, str], backend: str) -> Outcome:
    return trials.builtin(*key, backend, DEFAULT)


def closed(found: str, wanted: str) -> str:
    """Put the published batch in where TensorFlow's graph leaves it open, as it does for a pipeline."""
    return found.replace("[?", "[" + re.split(r"[\[,\]]", wanted)[1])


def test_every_builtin_regime_is_checked_here() -> None:
    chosen = catalog.select([], sys.executable)
    assert {(one.entry.name, one.regime.name) for one in chosen} == set(PUBLISHED)


@pytest.mark.parametrize("backend", backends.names())
@pytest.mark.parametrize("key", PUBLISHED, ids="/".join)
def test_the_model_is_the_published_one_and_ran_where_it_was_asked_to(key: tuple[str, str], backend: str) -> None:
    found, wanted = trials.measured(outcome(key, backend)), PUBLISHED[key]
    assert (found.parameters, found.train_samples, found.steps_per_epoch) == (
        wanted.parameters,
        wanted.train,
        wanted.steps,
    )
    assert (closed(found.batch.x, wanted.x), closed(found.batch.y, wanted.y)) == (wanted.x, wanted.y)
    assert {*found.proof.weights, *found.proof.optimizer, *found.proof.output, *found.proof.runtime} == {"cpu:0"}
    assert found.training.unit == ("epoch" if counts_epochs(found.steps_per_epoch) else "step")
    assert len(found.training.blocks) == 2
    assert all(block.count == found.training.steps_per_block for block in found.training.blocks)
    assert found.resolved.jit is (backend == "jax")
    assert found.resolved.dtype_policy == "float32"
    assert found.resolved.versions.keys() >= {"python", "keras", backend}
    assert found.peak_device_bytes is None


@pytest.mark.parametrize("backend", backends.names())
def test_phases_come_in_order(backend: str) -> None:
    ended = outcome(("mnist_dense", "default"), backend)
    assert [phase.name for phase in ended.phases] == [
        "spawn", "worker", "import", "device", "scenario", "data", "build", "first step", "learn", "train", "epoch",
        "predict", "finish", "exit",
    ]  # fmt: skip
    assert all(earlier.end_ns <= later.start_ns for earlier, later in zip(ended.phases, ended.phases[1:], strict=False))


@pytest.mark.parametrize("key", PUBLISHED, ids="/".join)
def test_all_backends_compute_the_same_losses(key: tuple[str, str]) -> None:
    found = {backend: trials.measured(outcome(key, backend)) for backend in backends.names()}
    for measurement in found.values():
        assert measurement.parity is not None
        assert len(set(measurement.parity.losses)) == 6
        assert [name.partition("_")[0] for name in measurement.parity.silenced] == ["dropout"] * (
            key[0] == "tabular_conv1d"
        )
    assert parity.judge({(backend, "cpu", ""): ("cpu", one) for backend, one in found.items()}) == {}


@pytest.mark.parametrize("key", PUBLISHED, ids="/".join)
def test_training_changes_the_loss(key: tuple[str, str]) -> None:
    for backend in backends.names():
        learning = trials.measured(outcome(key, backend)).learning
        assert learned(learning.batch_loss_before, learning.batch_loss_after)


@pytest.mark.parametrize("key", EASY, ids="/".join)
def test_a_few_steps_are_enough_to_beat_chance(key: tuple[str, str]) -> None:
    for backend in backends.names():
        learning = trials.measured(outcome(key, backend)).learning
        assert learning.loss < learning.first_loss
        assert learning.accuracy is not None
        assert learning.accuracy > 0.2  # chance is 0.1, or 0.33 for Iris, where all backends pass 0.9


def test_short_epochs_are_timed_where_an_epoch_has_steps() -> None:
    assert len(trials.measured(outcome(("mnist_dense", "default"), "jax")).training.epochs_ns) >= 1
    assert trials.measured(outcome(("iris_mlp", "default"), "jax")).training.epochs_ns == []
