"""A callback after which JAX has to compile each step again."""

import base
import keras


class Forgets(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if keras.backend.backend() == "jax":
            import jax

            jax.clear_caches()


def callbacks(folder):
    return [Forgets()]


spoiled = base.scenario(callbacks=callbacks)
