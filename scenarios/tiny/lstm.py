"""Two recurrent layers of 80 units, over 40 moments, and over 400 as published.

Published as a question in 2024: why does Keras take ten times as long on torch as on TensorFlow? Two minutes an epoch
against twenty, on a GPU. Rows and targets are random numbers, as in the question: there is nothing to learn. The batch
was not published; 32 is Keras' default.
"""

import keras

from kerasbench import Scenario, Workload


def build(workload):
    decay = {"kernel_regularizer": keras.regularizers.L2(1e-5), "recurrent_regularizer": keras.regularizers.L2(1e-5)}
    model = keras.Sequential(
        [
            keras.Input((workload.settings["moments"], 14)),
            keras.layers.LSTM(80, return_sequences=True, **decay),
            keras.layers.LSTM(80, **decay),
            keras.layers.Dense(40),
            keras.layers.Dense(40),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="adam", loss="mean_squared_error")
    return model


def workload(name, moments, operations, large):
    def noise(samples, rng):
        x = rng.uniform(-1, 1, (samples, moments, 14)).astype("float32")
        return x, rng.uniform(-1, 1, (samples, 1)).astype("float32")

    counts = {"train": 1_976, "batch": 32, "epochs": 20, "operations": operations, "large": large}
    return Workload(name=name, data=noise, settings={"moments": moments}, **counts)


short = workload("short", 40, 6_512_080, large=False)
full = workload("full", 400, 65_033_680, large=True)
scenario = Scenario(
    kind="recurrent",
    build=build,
    data=short.data,
    parameters=86_841,
    learnable=False,
    workloads=(short, full),
    source="keras-team/keras issue 20902 (2025-02)",
)
