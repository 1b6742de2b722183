"""mnist_linear in plain TensorFlow, fed from an array."""

from kerasbench.native.tensorflow import Loop, sgd


def model(variables, x):
    kernel, bias = variables
    return x @ kernel + bias


def build(start):
    return Loop(start, model, sgd(0.005), accuracy=True)
