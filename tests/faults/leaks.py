"""A callback that keeps 64 KiB of each step."""

import base
import keras


class Keeps(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.kept = []

    def on_train_batch_begin(self, batch, logs=None):
        self.kept.append(bytearray(b"x" * (64 << 10)))


def callbacks(folder):
    return [Keeps()]


leaking = base.scenario(callbacks=callbacks)
