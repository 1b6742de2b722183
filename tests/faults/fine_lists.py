"""Nothing goes wrong with it: two inputs and two outputs, in lists, as a saved model has them."""

import base
import keras


def build(workload):
    inputs = [keras.Input((4,)), keras.Input((4,))]
    model = keras.Model(inputs, [keras.layers.Dense(2)(one) for one in inputs])
    model.compile(optimizer="sgd", loss=["mse", "mse"])
    return model


def data(samples, rng):
    drawn = [base.data(samples, rng) for _ in range(2)]
    return [x for x, _ in drawn], [y for _, y in drawn]


scenario = base.scenario(build=build, data=data)
