"""A callback after which JAX and TensorFlow have to compile every tenth step again."""

import base
import keras


class Forgets(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 10:
            return
        if keras.backend.backend() == "jax":
            import jax

            jax.clear_caches()
        elif keras.backend.backend() == "tensorflow":
            self.model.make_train_function(force=True)


def callbacks(folder):
    return [Forgets()]


spoiled = base.scenario(callbacks=callbacks)
