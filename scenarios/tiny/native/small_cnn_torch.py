"""small_cnn in plain torch, in the channels-last memory that the images have."""

from torch import nn

from kerasbench.native.torch import Loop, adam, copy_weights


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1),
            nn.ReLU(),
        )
        self.classes = nn.Linear(128, 10)

    def forward(self, x):
        x = self.convolutions(x.permute(0, 3, 1, 2))  # torch computes images as they lie, channels last
        return self.classes(x.mean((2, 3)))


def build(start):
    model = SmallCNN()
    copy_weights(model, start.weights)
    return Loop(start, model, adam(0.001), accuracy=False)
