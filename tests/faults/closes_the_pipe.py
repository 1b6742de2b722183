import os

import base


def build(workload):
    os.closerange(3, 256)  # what a program does that turns itself into a daemon
    return base.build(workload)


spoiled = base.scenario(build=build)
