"""mnist_mlp in plain JAX, in all three sizes of a step."""

import jax

from kerasbench.native.jax import Loop, adam, dense


def model(params, x):
    x = jax.nn.relu(dense(x, *params[0:2]))
    x = jax.nn.relu(dense(x, *params[2:4]))
    x = jax.nn.relu(dense(x, *params[4:6]))
    return dense(x, *params[6:8])


def build(start):
    return Loop(start, model, adam(start.workload.settings["learning_rate"]), accuracy=False)
