"""A step that takes half a second because it sleeps: what the clock must read."""

import time

import keras

from kerasbench import Scenario, Workload

SLEEP_S = 0.5


class Sleep(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(SLEEP_S)


def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    return model


scenario = Scenario(
    build=build,
    data=lambda samples, rng: (rng.random((samples, 4), "float32"), rng.random((samples, 1), "float32")),
    callbacks=lambda folder: [Sleep()],
    workloads=(Workload(train=40 * 8, batch=8),),
)
