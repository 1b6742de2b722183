import keras
from base import scenario

built = []


def build(regime):
    if built:
        raise RuntimeError("one model is enough")
    built.append(regime)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dropout(0.5), keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse")
    return model


spoiled = scenario(build=build)
