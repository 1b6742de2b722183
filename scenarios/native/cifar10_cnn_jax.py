"""cifar10_cnn in plain JAX."""

import jax
from jax import lax

from kerasbench.native.jax import Loop, adam, dense


def convolve(x, kernel, bias):
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias


def pool(x):
    return lax.reduce_window(x, -float("inf"), lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def model(params, x):
    x = pool(jax.nn.relu(convolve(x, *params[0:2])))
    x = pool(jax.nn.relu(convolve(x, *params[2:4])))
    return dense(x.reshape(len(x), -1), *params[4:6])


def build(start):
    return Loop(start, model, adam(0.001), accuracy=True, outputs=jax.nn.softmax)
