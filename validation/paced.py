"""A step that takes 40 ms and another 0.4 ms for each sample of its batch: what a sweep must find.

Each step waits until its time is over, whatever the backend has done of it meanwhile.
"""

import time

import keras

from kerasbench import Scenario, Workload

OVERHEAD_S, PER_SAMPLE_S = 0.04, 0.0004
SPIN_S = 0.002  # a sleep may last so much too long


class Pace(keras.callbacks.Callback):
    """Let each step begin when the time of the one before is over."""

    def __init__(self, step_s):
        super().__init__()
        self._step_s = step_s
        self._began_s = None

    def on_epoch_begin(self, epoch, logs=None):
        self._began_s = None

    def on_train_batch_begin(self, batch, logs=None):
        if self._began_s is not None:
            until_s = self._began_s + self._step_s
            time.sleep(max(0, until_s - time.perf_counter() - SPIN_S))
            while time.perf_counter() < until_s:
                pass
        self._began_s = time.perf_counter()


def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    build.step_s = OVERHEAD_S + PER_SAMPLE_S * workload.batch_size
    return model


scenario = Scenario(
    build=build,
    data=lambda samples, rng: (rng.random((samples, 4), "float32"), rng.random((samples, 1), "float32")),
    callbacks=lambda folder: [Pace(build.step_s)],
    workloads=(Workload(train=1_000, batch=32),),
)
