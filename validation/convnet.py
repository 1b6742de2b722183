"""Pictures of 28 by 28 through two convolutions with dropout, in batches of 128: a size that people begin with.

A scenario for ``holds.py``. torch's threads wait for each other in it, so that one busy core holds all of them up.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload: Workload) -> keras.Model:
    model = keras.Sequential(
        [
            keras.layers.Input((28, 28, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    build=build,
    data=datasets.mnist(lambda x: datasets.unit(x)[..., None]),
    workloads=(Workload(train=54_000, validation=6_000, batch=128, epochs=15),),
)
