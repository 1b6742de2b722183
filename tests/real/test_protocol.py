"""What a trial does beyond timing steps: callbacks, the published epochs, a model that does not learn."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.exchange.measurement import Measurement
from kerasbench.exchange.messages import Code
from kerasbench.plan import catalog
from kerasbench.report.page import brief
from kerasbench.results.record import Record, ScenarioRecord, TrialRecord
from tests import made
from tests.real import trials

pytestmark = [pytest.mark.real, pytest.mark.traced]

PUBLISHED = dataclasses.replace(trials.SHORTEST, kind="published")
COMPILED_WITH = """
import json, sys
from pathlib import Path
from kerasbench.scenario import load
found = {}
for file in sorted(Path(sys.argv[1]).glob("*.py")):
    scenario, _ = load(file)
    for regime in scenario.regimes:
        model = scenario.build(regime)
        loss = model.loss if isinstance(model.loss, str) else type(model.loss).__name__
        from_logits = getattr(model.loss, "from_logits", None)
        if from_logits is None and not isinstance(model.loss, str):
            from_logits = model.loss.get_config()["from_logits"]
        optimizer = model.optimizer
        checks = [vars(one) for one in scenario.callbacks("/tmp")] if scenario.callbacks else []
        found[f"{file.stem}/{regime.name}"] = [
            loss,
            bool(from_logits),
            type(optimizer).__name__,
            round(float(optimizer.learning_rate), 6),
            [name for name in ("monitor", "save_best_only", "save_weights_only") for one in checks if one[name]],
            [regime.epochs, regime.validation, regime.test],
        ]
print(json.dumps(found))
"""
SPARSE, ONE_HOT = "sparse_categorical_crossentropy", "categorical_crossentropy"
FROM_LOGITS = "SparseCategoricalCrossentropy"
CHECKPOINT = ["monitor", "save_best_only", "save_weights_only"]
# Loss, from logits, optimizer, rate (Keras' own where none was published), checkpoint, [epochs, validation, test].
AS_PUBLISHED = {
    "boston_mlp/default": ["mse", False, "Adam", 0.01, [], [10_000, 0, 127]],
    "cifar100_dense/default": [ONE_HOT, False, "Adam", 0.001, [], [20, 7_500, 10_000]],
    "cifar10_cnn/default": [SPARSE, False, "Adam", 0.001, [], [3, 0, 0]],
    "cifar10_mlp/default": [SPARSE, False, "Adam", 0.001, [], [3, 0, 0]],
    "iris_mlp/default": [FROM_LOGITS, True, "Adam", 0.01, [], [1_000, 0, 38]],
    "mnist_dense/default": [SPARSE, False, "SGD", 0.01, [], [20, 9_000, 10_000]],
    "mnist_linear/arrays": [FROM_LOGITS, True, "SGD", 0.005, [], [30, 10_000, 10_000]],
    "mnist_linear/per_sample": [FROM_LOGITS, True, "SGD", 0.005, [], [30, 10_000, 10_000]],
    "mnist_mlp/full_batch": [FROM_LOGITS, True, "Adam", 0.01, [], [100, 0, 17_500]],
    "mnist_mlp/minibatch": [FROM_LOGITS, True, "Adam", 0.001, [], [15, 0, 10_000]],
    "mnist_mlp/tiny": [FROM_LOGITS, True, "Adam", 0.01, [], [1_000, 0, 25]],
    "tabular_conv1d/default": [ONE_HOT, False, "Adam", 0.001, CHECKPOINT, [10, 3_200, 4_000]],
}


def test_losses_optimizers_rates_and_splits_are_as_published() -> None:
    command = [sys.executable, "-c", COMPILED_WITH, str(catalog.builtin_folder())]
    environment = {"KERAS_BACKEND": "torch", "PATH": "/usr/bin:/bin"}  # which compiles nothing
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert json.loads(printed) == AS_PUBLISHED


def test_a_scenario_s_callbacks_and_its_validation_are_part_of_timed_training(faults: Path) -> None:
    failure = trials.run(faults / "needs_its_callback.py", "jax").failure
    assert failure is not None
    assert (failure.code, failure.phase) == (Code.ERROR, "train")
    assert "RuntimeError: saw ['loss', 'val_loss']" in failure.cause


def test_the_published_protocol_runs_every_epoch() -> None:
    file = catalog.builtin_folder() / "tabular_conv1d.py"
    measurement = trials.measured(trials.run(file, "jax", protocol=PUBLISHED))
    published = measurement.published
    assert published is not None
    assert len(published.epochs_ns) == 10
    assert sum(published.epochs_ns) <= published.total_ns
    assert {name: len(values) for name, values in published.history.items()} == dict.fromkeys(
        ("loss", "accuracy", "val_loss", "val_accuracy"), 10
    )
    assert (published.predict_samples, len(published.predict_ns)) == (4_000, 2)
    assert made.taught(measurement).steps == 250
    assert made.trained(measurement).first_step_ns is None
    assert len(made.trained(measurement).epochs) >= 1


def test_a_model_that_never_learns_is_found(faults: Path) -> None:
    file = faults / "never_learns.py"
    text = brief(findings(record_of(file, trials.measured(trials.run(file, "torch")))))
    assert "Does not learn: training did not change the loss: never_learns torch cpu. Remedy: " in text


def record_of(file: Path, measurement: Measurement) -> Record:
    entry = catalog.describe(file, sys.executable)
    trial = TrialRecord(1, file.stem, "default", "torch", made.CPU, 1, [], measurement)
    empty = made.record()
    return dataclasses.replace(
        empty, scenarios=[ScenarioRecord(entry.file_hash, entry.description)], trials=[trial], rounds_completed=1
    )


def test_the_frozen_protocol_is_what_runs(faults: Path) -> None:
    frozen = dataclasses.replace(trials.SHORTEST, steps_per_block=4, warmup_blocks=2, min_cycles=3)
    training = made.trained(trials.measured(trials.run(faults / "fine.py", "jax", protocol=frozen)))
    assert [block.count for block in training.warmup] == [4] * 2
    assert [(block.count, block.cycle, block.position) for block in training.blocks] == [(4, n, 0) for n in range(3)]


def test_a_model_whose_random_numbers_cannot_be_switched_off_is_not_judged(faults: Path) -> None:
    outcome = trials.run(faults / "distorts_pictures.py", "tensorflow", protocol=trials.STEPS_ALONE)
    assert trials.measured(outcome).parity is None


def test_a_second_model_that_cannot_be_built_leaves_what_was_measured(faults: Path) -> None:
    assert trials.measured(trials.run(faults / "builds_once.py", "torch", protocol=trials.STEPS_ALONE)).parity is None


def test_dropout_is_switched_off_once_in_the_trial_that_calibrates() -> None:
    file = catalog.builtin_folder() / "tabular_conv1d.py"
    later = dataclasses.replace(trials.SHORTEST, steps_per_block=1, warmup_blocks=1)
    assert trials.measured(trials.run(file, "jax", protocol=later)).parity is None
