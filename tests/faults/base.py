"""A tiny model on random data, which the faults beside it spoil in one place each."""

import keras

from kerasbench import Scenario, Workload


def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse")
    return model


def data(samples, rng):
    return rng.random((samples, 4), dtype="float32"), rng.random((samples, 2), dtype="float32")


def scenario(**spoiled):
    return Scenario(**({"build": build, "data": data, "workloads": (Workload(train=320, batch=16),)} | spoiled))
