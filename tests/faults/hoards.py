"""A model that holds 200 MiB from one phase on, which its workload names."""

import keras
import numpy as np
from base import scenario

from kerasbench import Workload

BYTES = 200 << 20
held = []  # for as long as the process lives


def hold():
    if not held:
        held.append(np.ones(BYTES, "uint8"))


class Layer(keras.layers.Dense):
    phase = ""

    def build(self, shape):
        if self.phase == "build":
            hold()
        super().build(shape)

    def call(self, x, training=False):
        if self.phase == "call" and not isinstance(x, keras.KerasTensor):
            hold()
        return super().call(x)


class Model(keras.Model):
    phase = ""

    def predict_on_batch(self, x):
        if self.phase == "predict":
            hold()
        return super().predict_on_batch(x)


def build(workload):
    layer = Layer(2)
    layer.phase = workload.name
    inputs = keras.Input((4,))
    model = Model(inputs, layer(inputs))
    model.phase = workload.name
    model.compile("sgd", "mse")
    return model


workloads = tuple(Workload(name=name, train=320, batch=16) for name in ("default", "build", "call", "predict"))
hoards = scenario(build=build, workloads=workloads)
