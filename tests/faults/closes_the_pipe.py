import os

import base


def build(regime):
    os.closerange(3, 256)  # what a program does that turns itself into a daemon
    return base.build(regime)


spoiled = base.scenario(build=build)
