"""CIFAR-10 through two small convolutions.

Published in 2021 for a MacBook Air M1, beside a dense network on the same images: the author found the GPU slower
overall. The figure for this model alone cannot be recovered from the notebook.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((32, 32, 3)),
            keras.layers.Conv2D(workload.scaled(32), 3, activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Conv2D(workload.scaled(64), 3, activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    kind="cnn",
    build=build,
    data=datasets.cifar10(datasets.unit),
    parameters=42_442,
    operations=7_831_296,
    scalable=True,
    workloads=(Workload(train=50_000, batch=32, epochs=3),),
    source="CPU vs GPU benchmark (notebook, MacBook Air M1, Korean, 2021-11)",
)
