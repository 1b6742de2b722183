import base
import keras


class Silent(keras.Sequential):
    def predict_on_batch(self, x):
        raise LookupError("nothing to say")


def build(workload):
    model = Silent([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse")
    return model


spoiled = base.scenario(build=build)
