import os

from base import scenario


def build(regime):
    os.abort()


spoiled = scenario(build=build)
