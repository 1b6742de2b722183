import base


def build(regime):
    import torch

    return torch.nn.Linear(4, 2)


spoiled = base.scenario(build=build)
