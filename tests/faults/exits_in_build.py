import sys

from base import scenario


def build(workload):
    print("I have had enough", file=sys.stderr)
    sys.exit(3)


spoiled = scenario(build=build)
