"""Models that do less on torch than on the other backends, where no loss shows it; a fault in each workload."""

import base
import keras
from keras import layers, ops

from kerasbench import Workload

RATE = 1e-6  # so small that the losses of all backends are the same to five digits


def on_torch():
    return keras.backend.backend() == "torch"


class Cuts(layers.Layer):
    """Lets no gradient through."""

    def call(self, x):
        return x.detach() if on_torch() else x


class Skips(layers.Layer):
    """Has two layers, and passes the second by."""

    def __init__(self):
        super().__init__()
        self.inner = [layers.Dense(8), layers.Dense(8)]

    def build(self, shape):
        for layer in self.inner:
            layer.build(shape)
            shape = (shape[0], 8)

    def compute_output_shape(self, shape):
        return (shape[0], 8)

    def call(self, x):
        for layer in self.inner[: 1 if on_torch() else 2]:
            x = layer(x)
        return x


class Keeps(layers.Layer):
    """Computes what it has not seen yet, for long, and keeps it."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def call(self, x):
        if not on_torch() or x.device.type == "meta":
            return x
        key = x.detach().numpy().tobytes()
        if key not in self.kept:
            self.kept[key] = x
            for _ in range(400):
                x = ops.tanh(x)
        return self.kept[key]


class Rests(keras.Sequential):
    """Trains on every other batch."""

    steps = 0

    def train_step(self, *given):
        self.steps += 1
        if on_torch() and self.steps > 20 and self.steps % 2:
            return {"loss": 0.1}
        return super().train_step(*given)


def build(workload):
    if workload.name == "keeps":
        return base.model(Keeps(), layers.Dense(2))
    if workload.name == "rests":
        model = Rests([layers.Input((4,)), layers.Dense(2)])
    else:
        stack = {"cuts": [layers.Dense(8), Cuts()], "skips": [Skips()]}[
            workload.name
        ]  # behind them begins a layer with zeros
        model = keras.Sequential([layers.Input((4,)), *stack, layers.Dense(2, kernel_initializer="zeros")])
    model.compile(optimizer=keras.optimizers.Adam(RATE), loss="mse")
    return model


names = ("cuts", "skips", "rests", "keeps")
scenario = base.scenario(build=build, workloads=tuple(Workload(name=name, train=3_200, batch=16) for name in names))
