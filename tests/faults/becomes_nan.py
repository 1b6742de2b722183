import base
import keras


def build(workload):
    return base.model(keras.layers.Dense(2), optimizer=keras.optimizers.SGD(1e30))


spoiled = base.scenario(build=build)
