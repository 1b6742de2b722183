"""A layer of which a step is traced for ten minutes."""

import time

import base
import keras


class Sleeps(keras.layers.Layer):
    def call(self, x, training=False):
        if training:
            time.sleep(600)
        return x


def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), Sleeps(), keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse")
    return model


spoiled = base.scenario(build=build)
