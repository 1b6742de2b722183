"""Fails in training, by a callback of its own, once validation has been seen there."""

import keras
from base import data, scenario

from kerasbench import Workload


class Complains(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise RuntimeError(f"saw {sorted(logs)}")


def callbacks(folder):
    return [Complains()]


spoiled = scenario(callbacks=callbacks, data=data, workloads=(Workload(train=320, validation=64, batch=16),))
