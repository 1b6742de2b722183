"""mnist_linear in plain torch, fed from an array."""

from torch import nn

from kerasbench.native.torch import Loop, copy_weights, sgd


def build(start):
    model = nn.Linear(784, 10)
    copy_weights(model, start.weights)
    return Loop(start, model, sgd(0.005), accuracy=True)
