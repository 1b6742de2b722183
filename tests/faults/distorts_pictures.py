import base
import keras


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((4,)),
            keras.layers.Reshape((2, 2, 1)),
            keras.layers.RandomRotation(0.2),
            keras.layers.Flatten(),
            keras.layers.Dense(2),
        ]
    )
    model.compile(optimizer="sgd", loss="mse")
    return model


distorting = base.scenario(build=build)
