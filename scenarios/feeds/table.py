"""A dense network on rows of numbers that lie on disk, in one memory-mapped array.

Its purpose is what feeds it: --feed arrays has the numbers in memory, every other feed reads each row in each epoch.
kerasbench writes the file before the clock runs, so it is read from the system's cache.
"""

from dataclasses import replace

import keras

from kerasbench import Scenario, Workload, datasets, storage


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((256,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


scenario = Scenario(
    kind="dense",
    build=build,
    data=replace(datasets.random_samples((256,), 10), store=storage.memory_map),
    parameters=41_802,
    workloads=(Workload(train=8_192, batch=128),),
    learnable=False,
    source="of kerasbench",
)
