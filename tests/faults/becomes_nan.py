import base
import keras


def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile(optimizer=keras.optimizers.SGD(1e30), loss="mse")
    return model


spoiled = base.scenario(build=build)
