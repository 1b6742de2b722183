"""mnist_dense in plain JAX. The softmax is part of the loss, and of what predict returns."""

import jax

from kerasbench.native.jax import Loop, dense, sgd


def model(params, x):
    x = x.reshape(len(x), -1)
    x = jax.nn.relu(dense(x, *params[0:2]))
    x = jax.nn.relu(dense(x, *params[2:4]))
    return dense(x, *params[4:6])


def build(start):
    return Loop(start, model, sgd(0.01), accuracy=True, outputs=jax.nn.softmax)
