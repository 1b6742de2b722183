from base import scenario


def build(regime):
    raise ValueError("no model today")


spoiled = scenario(build=build)
