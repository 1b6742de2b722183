"""mnist_dense in plain torch. The softmax is part of the loss, and of what predict returns."""

from torch import nn

from kerasbench.native.torch import Loop, copy_weights, sgd


def build(start):
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 300),
        nn.ReLU(),
        nn.Linear(300, 100),
        nn.ReLU(),
        nn.Linear(100, 10),
    )
    copy_weights(model, start.weights)
    return Loop(start, model, sgd(0.01), accuracy=True, outputs=nn.Softmax(dim=1))
