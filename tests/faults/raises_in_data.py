from base import scenario


def data(samples, rng):
    raise KeyError("column")


spoiled = scenario(data=data)
