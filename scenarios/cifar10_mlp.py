"""CIFAR-10 through two dense layers.

Published in 2021 for a MacBook Air M1: three epochs took 26.7 s on its GPU (from the log's time stamps); on the CPU
this network and `cifar10_cnn` together took 38.9 s. The author found the GPU slower overall.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((32, 32, 3)),
            keras.layers.Flatten(),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    kind="dense",
    build=build,
    data=datasets.cifar10(datasets.unit),
    parameters=803_786,
    operations=1_606_912,
    workloads=(Workload(train=50_000, batch=32, epochs=3),),
    source="CPU vs GPU benchmark (notebook, MacBook Air M1, Korean, 2021-11)",
)
