"""What a trial does beyond timing steps: callbacks, the published epochs, a model that does not learn."""

import dataclasses
from pathlib import Path

import pytest

from kerasbench.protocol.messages import Code
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real


def test_a_scenario_s_callbacks_and_its_validation_are_part_of_timed_training(faults: Path) -> None:
    failure = trials.run(faults / "needs_its_callback.py", "jax").failure
    assert failure is not None and (failure.code, failure.phase) == (Code.ERROR, "train")
    assert "RuntimeError: saw ['loss', 'val_loss']" in failure.cause


def test_the_published_protocol_runs_every_epoch() -> None:
    protocol = dataclasses.replace(trials.SHORTEST, kind="published")
    measurement = trials.measured(trials.builtin("tabular_conv1d", "default", "jax", protocol=protocol))
    published = made.known(measurement.published)
    assert len(published.epochs_ns) == 10
    assert sum(published.epochs_ns) <= published.total_ns
    assert {name: len(values) for name, values in published.history.items()} == dict.fromkeys(
        ("loss", "accuracy", "val_loss", "val_accuracy"), 10
    )
    assert (published.predict_samples, len(published.predict_ns)) == (4_000, 2)
    assert made.taught(measurement).steps == 250
    assert made.trained(measurement).first_step_ns is None
    assert len(made.trained(measurement).epochs) >= 1


# Random numbers that cannot be switched off; a second model that cannot be built.
@pytest.mark.parametrize("name", ["distorts_pictures", "builds_once"])
def test_what_cannot_be_judged_is_measured_all_the_same(faults: Path, name: str) -> None:
    outcome = trials.run(faults / f"{name}.py", "jax", protocol=trials.STEPS_ALONE)
    assert trials.measured(outcome).parity is None
