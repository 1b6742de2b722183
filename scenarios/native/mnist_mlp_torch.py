"""mnist_mlp in plain torch, in all three sizes of a step."""

from torch import nn

from kerasbench.native.torch import Loop, adam, copy_weights


def build(start):
    model = nn.Sequential(
        nn.Linear(784, 400),
        nn.ReLU(),
        nn.Linear(400, 200),
        nn.ReLU(),
        nn.Linear(200, 100),
        nn.ReLU(),
        nn.Linear(100, 10),
    )
    copy_weights(model, start.weights)
    return Loop(start, model, adam(start.workload.settings["learning_rate"]), accuracy=False)
