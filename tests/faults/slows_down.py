"""A callback with which a step takes longer and longer: 20 % of what it took at first after SECONDS."""

import time

import base
import keras

SECONDS = 60  # about what a test lets it go on


class Tires(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.spent_s = 0.0  # of its own steps: a process that rests does not tire
        self.typical_s = None
        self.began_s = None

    def on_train_batch_begin(self, batch, logs=None):
        now_s = time.perf_counter()
        if self.began_s is not None and batch:
            step_s = min(now_s - self.began_s, 0.1)  # a wait for a turn is none
            self.typical_s = step_s if self.typical_s is None else 0.99 * self.typical_s + 0.01 * step_s
            self.spent_s += step_s
            until_s = now_s + 0.2 * self.typical_s * self.spent_s / SECONDS
            while time.perf_counter() < until_s:
                pass
        self.began_s = time.perf_counter()


def callbacks(folder):
    return [Tires()]


tiring = base.scenario(callbacks=callbacks)
