"""A step that does as little as Keras lets it: one weight, one sample. What is left is Keras, and kerasbench."""

import keras

from kerasbench import Scenario, Workload


def build(workload):
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(optimizer="sgd", loss="mse")
    return model


scenario = Scenario(
    build=build,
    data=lambda samples, rng: (rng.random((samples, 1), "float32"), rng.random((samples, 1), "float32")),
    learnable=False,
    workloads=(Workload(train=1_000, batch=1),),
)
