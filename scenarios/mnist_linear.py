"""MNIST through one linear layer, fed image by image through Python, and from an array prepared beforehand.

Published as lecture notes: 14.4 s an epoch on the CPU and 14.5 s on the GPU for 7,850 parameters. The pipeline was
the cost, not the device: the second workload feeds the same numbers without it.
"""

import keras
import numpy as np

from kerasbench import Scenario, Workload, datasets


def build(workload):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = keras.Sequential([keras.layers.Input((784,)), keras.layers.Dense(10)])
    model.compile(optimizer=keras.optimizers.SGD(0.005), loss=loss, metrics=["accuracy"])
    return model


def standardize(x):
    return (datasets.unit(x).reshape(-1, 784) - np.float32(0.1307)) / np.float32(0.3081)


def per_sample(x, y, batch):
    class Images(keras.utils.PyDataset):
        def __len__(self):
            return len(range(0, len(x), batch))

        def __getitem__(self, index):
            rows = slice(index * batch, (index + 1) * batch)
            return np.concatenate([standardize(image) for image in x[rows]]), y[rows]

    return Images()


size = {"train": 50_000, "validation": 10_000, "test": 10_000, "batch": 128, "epochs": 30, "test_each_epoch": True}
pipeline = Workload(name="per_sample", feed=per_sample, **size)
prepared = Workload(name="arrays", data=datasets.mnist(standardize), **size)
source = "[Standalone DL] #12 Lab - GPU with Pytorch (lecture notes, Korean)"
scenario = Scenario(
    kind="dense",
    build=build,
    data=datasets.mnist(),
    parameters=7_850,
    operations=15_680,
    workloads=(pipeline, prepared),
    source=source,
)
