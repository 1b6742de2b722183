"""mnist_linear in plain JAX, fed from an array."""

from kerasbench.native.jax import Loop, dense, sgd


def model(params, x):
    return dense(x, *params)


def build(start):
    return Loop(start, model, sgd(0.005), accuracy=True)
