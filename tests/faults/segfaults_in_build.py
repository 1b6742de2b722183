import ctypes

from base import scenario


def build(workload):
    ctypes.string_at(0)


spoiled = scenario(build=build)
