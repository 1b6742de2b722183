import os

from base import scenario


def build(regime):
    os._exit(0)


spoiled = scenario(build=build)
