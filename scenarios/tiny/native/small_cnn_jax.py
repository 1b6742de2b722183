"""small_cnn in plain JAX."""

import jax
from jax import lax

from kerasbench.native.jax import Loop, adam, dense


def convolve(x, kernel, bias):
    x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(x + bias)


def pool(x):
    return lax.reduce_window(x, -float("inf"), lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def model(params, x):
    x = convolve(convolve(x, *params[0:2]), *params[2:4])
    x = convolve(pool(x), *params[4:6]).mean((1, 2))
    return dense(x, *params[6:8])


def build(start):
    return Loop(start, model, adam(0.001), accuracy=False)
