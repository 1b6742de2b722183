"""A model with which something cannot be had, another in each workload."""

import base
import keras
from keras import layers

from kerasbench import Workload

built = []


class Peeks(layers.Layer):
    """Asks for a number in the middle of a call: torch cannot compile it as one graph."""

    def call(self, x):
        if keras.backend.backend() == "torch":
            x.sum().item()
        return x


def build(workload):
    if workload.name == "builds_once" and built:
        raise RuntimeError("one model is enough")
    built.append(workload)
    return base.model(*LAYERS[workload.name]())


LAYERS = {
    "builds_once": lambda: [layers.Dropout(0.5), layers.Dense(2)],
    "distorts_pictures": lambda: [
        layers.Reshape((2, 2, 1)),
        layers.RandomRotation(0.2),
        layers.Flatten(),
        layers.Dense(2),
    ],
    "insists_on_float32": lambda: [layers.Dense(2, dtype="float32")],
    "breaks_its_graph": lambda: [layers.Dense(2), Peeks()],
}
strange = base.scenario(build=build, workloads=tuple(Workload(train=320, batch=16, name=name) for name in LAYERS))
