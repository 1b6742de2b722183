"""cifar10_cnn in plain torch, in the channels-last memory that the images have."""

from torch import nn

from kerasbench.native.torch import Loop, adam, copy_weights


class Images(nn.Module):
    """Take images with their channels last, which torch computes as they lie."""

    def forward(self, x):
        return x.permute(0, 3, 1, 2)


class Flatten(nn.Module):
    """Flatten in Keras' order, channels last, so that the last layer's weights mean the same."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


def build(start):
    model = nn.Sequential(
        Images(),
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        Flatten(),
        nn.Linear(6 * 6 * 64, 10),
    )
    copy_weights(model, start.weights)
    return Loop(start, model, adam(0.001), accuracy=True, outputs=nn.Softmax(dim=1))
