import base
import keras


class Broken(keras.layers.Layer):
    def call(self, x, training=None):
        if training:
            raise ArithmeticError("only in training")
        return x


def build(workload):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2), Broken()])
    model.compile(optimizer="sgd", loss="mse")
    return model


spoiled = base.scenario(build=build)
