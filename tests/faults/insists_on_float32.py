import base
import keras


def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, dtype="float32")])
    model.compile(optimizer="sgd", loss="mse")
    return model


stubborn = base.scenario(build=build)
