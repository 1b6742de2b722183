import base
import keras


def build(workload):
    return base.model(
        keras.layers.Reshape((2, 2, 1)),
        keras.layers.RandomRotation(0.2),
        keras.layers.Flatten(),
        keras.layers.Dense(2),
    )


distorting = base.scenario(build=build)
