import keras
from base import scenario

built = []


def build(workload):
    if built:
        raise RuntimeError("one model is enough")
    built.append(workload)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dropout(0.5), keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse")
    return model


spoiled = scenario(build=build)
