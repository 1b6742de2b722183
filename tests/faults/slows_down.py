"""A callback with which a step takes longer and longer: 20 % of what it took at first after SECONDS."""

import statistics
import time

import base
import keras

SECONDS = 180  # what validation/soaks.py lets it go on
FIRST = 200  # steps that tell how long one takes


class Tires(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.first_s = []
        self.typical_s = None
        self.spent_s = 0.0  # in its own steps: a process that rests does not tire
        self.began_s = None

    def on_train_batch_begin(self, batch, logs=None):
        now_s = time.perf_counter()
        if self.began_s is not None and batch:
            self.tire(now_s, now_s - self.began_s)
        self.began_s = time.perf_counter()

    def tire(self, now_s, step_s):
        if self.typical_s is None:
            self.first_s.append(step_s)
            self.typical_s = statistics.median(self.first_s) if len(self.first_s) == FIRST else None
            return
        self.spent_s += min(step_s, 3 * self.typical_s)  # a wait for a turn is no step
        until_s = now_s + 0.2 * self.typical_s * self.spent_s / SECONDS
        while time.perf_counter() < until_s:
            pass


def callbacks(folder):
    return [Tires()]


tiring = base.scenario(callbacks=callbacks)
