"""A recurrent model on a Keras that has none of its private names where kerasbench looks for them."""

import keras
from base import model, scenario

from kerasbench import private

for name in vars(private).copy().values():
    for moved in name.values() if isinstance(name, dict) else [name]:
        if isinstance(moved, private.PrivateName):
            object.__setattr__(
                moved, "places", tuple(place.replace("keras.src", "keras.gone") for place in moved.places)
            )
        elif isinstance(moved, private.InnerNames):
            object.__setattr__(moved, "names", ("gone",))


def build(workload):
    layers = [keras.layers.Reshape((4, 1)), keras.layers.LSTM(2), keras.layers.Dense(2)]
    return model(*layers)


moved = scenario(build=build)
