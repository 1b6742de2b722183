"""A tiny model on random data, which the faults beside it spoil in one place each."""

import keras

from kerasbench import Scenario, Workload


def model(*layers):
    tiny = keras.Sequential([keras.layers.Input((4,)), *layers])
    tiny.compile(optimizer="sgd", loss="mse")
    return tiny


def build(workload):
    return model(keras.layers.Dense(2))


def data(samples, rng):
    return rng.random((samples, 4), dtype="float32"), rng.random((samples, 2), dtype="float32")


def scenario(**spoiled):
    return Scenario(**({"build": build, "data": data, "workloads": (Workload(train=320, batch=16),)} | spoiled))
