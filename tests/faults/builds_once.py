import base
import keras

built = []


def build(workload):
    if built:
        raise RuntimeError("one model is enough")
    built.append(workload)
    return base.model(keras.layers.Dropout(0.5), keras.layers.Dense(2))


spoiled = base.scenario(build=build)
