"""A layer that asks for a number in the middle of a call: torch cannot compile it as one graph."""

import base
import keras


class Peeks(keras.layers.Layer):
    def call(self, x):
        if keras.backend.backend() == "torch":
            x.sum().item()
        return x


def build(workload):
    return base.model(keras.layers.Dense(2), Peeks())


spoiled = base.scenario(build=build)
