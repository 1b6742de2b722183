"""Its twin in native/ learns ten times as fast: a column that computes something else."""

import base
import keras


def build(workload):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return base.model(keras.layers.Dense(3), optimizer=keras.optimizers.SGD(0.1), loss=loss)


def data(samples, rng):
    return rng.random((samples, 4), dtype="float32"), rng.integers(0, 3, samples, dtype="int32")


hasty = base.scenario(build=build, data=data)
