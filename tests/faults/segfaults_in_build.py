import ctypes

from base import scenario


def build(regime):
    ctypes.string_at(0)


spoiled = scenario(build=build)
