import base
import keras


def build(workload):
    return keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])


spoiled = base.scenario(build=build)
