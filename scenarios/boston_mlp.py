"""Boston housing through three small dense layers, the whole training set in every step.

Published in 2022 for an RTX 2070 SUPER: 10,000 steps took 11.98 s on the CPU and 29.11 s on the GPU. With 379 rows of
13 numbers, everything that is measured here is fixed cost.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((13,)),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
    return model


scenario = Scenario(
    kind="dense",
    build=build,
    data=datasets.boston(),
    parameters=1_313,
    operations=2_496,
    workloads=(Workload(train=379, test=127, batch=None, epochs=10_000),),
    source="PyTorch: cases where the CPU beats the GPU (blog, Japanese, 2022-04)",
)
