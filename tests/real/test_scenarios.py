"""Every built-in scenario on every backend, for real."""

from functools import cache

import pytest

from kerasbench import backends, catalog
from kerasbench.trial import Outcome
from kerasbench.worker.blocks import counts_epochs
from tests.real import trials

pytestmark = pytest.mark.real

FILES = {file.stem: file for file in catalog.builtin_files()}
# (parameters, samples that fit trains on, steps in an epoch): the publications' figures.
PUBLISHED = {
    "cifar10_cnn": (42_442, 50_000, 1563),
    "iris_mlp": (2_979, 112, 1),
    "mnist_dense": (266_610, 51_000, 1594),
}


@cache
def outcome(scenario: str, backend: str) -> Outcome:
    return trials.run(FILES[scenario], backend)


def test_every_builtin_scenario_is_checked_here() -> None:
    assert PUBLISHED.keys() == FILES.keys()


@pytest.mark.parametrize("backend", backends.names())
@pytest.mark.parametrize("scenario", PUBLISHED)
def test_the_model_is_the_published_one_and_ran_where_it_was_asked_to(scenario: str, backend: str) -> None:
    found = trials.measured(outcome(scenario, backend))
    assert (found.parameters, found.train_samples, found.steps_per_epoch) == PUBLISHED[scenario]
    assert {*found.proof.weights, *found.proof.optimizer, *found.proof.output, *found.proof.runtime} == {"cpu:0"}
    assert found.training.unit == ("epoch" if counts_epochs(found.steps_per_epoch) else "step")
    assert len(found.training.blocks) == 2
    assert all(block.count == found.training.steps_per_block for block in found.training.blocks)
    assert [latency.batch for latency in found.prediction] == [1, 32]
    assert found.resolved.jit is (backend == "jax")
    assert found.resolved.dtype_policy == "float32"
    assert found.resolved.versions.keys() >= {"python", "keras", backend}
    assert found.peak_device_bytes is None


@pytest.mark.parametrize("backend", backends.names())
def test_phases_come_in_order_and_fill_the_trial(backend: str) -> None:
    ended = outcome("mnist_dense", backend)
    assert [phase.name for phase in ended.phases] == [
        "spawn", "worker", "import", "device", "scenario", "data", "build", "first step", "learn", "train", "epoch",
        "predict", "finish", "exit",
    ]  # fmt: skip
    assert all(earlier.end_ns <= later.start_ns for earlier, later in zip(ended.phases, ended.phases[1:], strict=False))
    assert sum(phase.duration_ns for phase in ended.phases) > 0.95 * ended.wall_ns


@pytest.mark.parametrize("scenario", PUBLISHED)
def test_all_backends_compute_the_same_first_loss(scenario: str) -> None:
    losses = [trials.measured(outcome(scenario, backend)).learning.first_loss for backend in backends.names()]
    assert max(losses) - min(losses) < 5e-6


@pytest.mark.parametrize("scenario", PUBLISHED)
def test_all_backends_learn(scenario: str) -> None:
    for backend in backends.names():
        learning = trials.measured(outcome(scenario, backend)).learning
        assert learning.loss < learning.first_loss
        assert learning.accuracy is not None
        assert learning.accuracy > 0.2  # chance is 0.1, or 0.33 for Iris, where all backends pass 0.9


def test_short_epochs_are_timed_where_an_epoch_has_steps() -> None:
    assert len(trials.measured(outcome("mnist_dense", "jax")).training.epochs_ns) >= 1
    assert trials.measured(outcome("iris_mlp", "jax")).training.epochs_ns == []
