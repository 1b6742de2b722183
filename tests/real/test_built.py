"""Every built-in model as it is built: what its scenario says of it, and what was published of it."""

import json
import sys
from pathlib import Path

import pytest

from kerasbench.plan import catalog
from kerasbench.scenario import STEP_PER_FORWARD
from tests.repository import printed

pytestmark = pytest.mark.real

PUBLISHED_SIZES = {
    "bert/base": 109_482_240 + 2 * (768 + 1),  # and a last layer for two classes
    "gpt2/base": 124_439_808,
    "vit/base": 86_567_656,
    "resnet50/base": 25_636_712,
    "mobilenet_v2/base": 3_538_984,
    "efficientnet_v2_b0/base": 7_200_312,
    "resnet8/default": 78_666,
    "ds_cnn/default": 24_908,
    "autoencoder/default": 269_992,
    "small_cnn/default": 113_866,
}
SPARSE, ONE_HOT = "sparse_categorical_crossentropy", "categorical_crossentropy"
FROM_LOGITS = "SparseCategoricalCrossentropy"
CHECKPOINT = ["monitor", "save_best_only", "save_weights_only"]
# Loss, from logits, optimizer, rate (Keras' own where none was published), checkpoint,
# [train, batch, epochs, validation, test].
AS_PUBLISHED = {
    "boston_mlp/default": ["mse", False, "Adam", 0.01, [], [379, 379, 10_000, 0, 127]],
    "cifar100_dense/default": [ONE_HOT, False, "Adam", 0.001, [], [42_500, 32, 20, 7_500, 10_000]],
    "cifar10_cnn/default": [SPARSE, False, "Adam", 0.001, [], [50_000, 32, 3, 0, 0]],
    "cifar10_mlp/default": [SPARSE, False, "Adam", 0.001, [], [50_000, 32, 3, 0, 0]],
    "iris_mlp/default": [FROM_LOGITS, True, "Adam", 0.01, [], [112, 112, 1_000, 0, 38]],
    "mnist_dense/default": [SPARSE, False, "SGD", 0.01, [], [51_000, 32, 20, 9_000, 10_000]],
    "mnist_linear/arrays": [FROM_LOGITS, True, "SGD", 0.005, [], [50_000, 128, 30, 10_000, 10_000]],
    "mnist_linear/per_sample": [FROM_LOGITS, True, "SGD", 0.005, [], [50_000, 128, 30, 10_000, 10_000]],
    "mnist_mlp/full_batch": [FROM_LOGITS, True, "Adam", 0.01, [], [52_500, 52_500, 100, 0, 17_500]],
    "mnist_mlp/minibatch": [FROM_LOGITS, True, "Adam", 0.001, [], [60_000, 100, 15, 0, 10_000]],
    "mnist_mlp/tiny": [FROM_LOGITS, True, "Adam", 0.01, [], [75, 75, 1_000, 0, 25]],
    "tabular_conv1d/default": [ONE_HOT, False, "Adam", 0.001, CHECKPOINT, [12_800, 512, 10, 3_200, 4_000]],
}


# One test, and so one process of the tests, for all that is said of the models: they are built once.
@pytest.mark.weekly
def test_every_model_is_what_its_scenario_says_and_what_was_published() -> None:
    files = catalog.builtin_files()
    program = Path(__file__).with_name("built.py")
    built = json.loads(printed(sys.executable, program, *files, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu"))
    published = {}
    for entry in catalog.describe(files, sys.executable):
        for workload in entry.description.workloads:
            name = f"{entry.name}/{workload.name}"
            parameters, operations, *compiled = built[name]
            assert workload.parameters == parameters == PUBLISHED_SIZES.get(name, parameters), name
            assert workload.operations == STEP_PER_FORWARD * operations * workload.batch, name
            sizes = [workload.train, workload.batch, workload.epochs, workload.validation, workload.test]
            published[name] = [*compiled, sizes]
    assert {key: published[key] for key in AS_PUBLISHED} == AS_PUBLISHED
    assert published.keys() >= PUBLISHED_SIZES.keys()
