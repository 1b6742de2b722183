import base
import keras


def callbacks(folder):
    return [keras.callbacks.EarlyStopping(monitor="loss", patience=0, min_delta=1e9)]


spoiled = base.scenario(callbacks=callbacks)
