from base import scenario


def build(workload):
    raise ValueError("no model today")


spoiled = scenario(build=build)
