"""tiny_transformer in plain JAX."""

import jax
import jax.numpy as jnp
from jax import lax

from kerasbench.native.jax import Loop, adam, dense

BLOCK = 16  # arrays of a block


def norm(x, gamma, beta):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-3) * gamma + beta


def attend(x, arrays):
    query, query_bias, key, key_bias, value, value_bias, output, output_bias = arrays
    q, k, v = (
        jnp.einsum("btw,whd->bthd", x, kernel) + bias
        for kernel, bias in ((query, query_bias), (key, key_bias), (value, value_bias))
    )
    return jnp.einsum("bthd,hdw->btw", jax.nn.dot_product_attention(q, k, v, is_causal=True), output) + output_bias


def block(params, x):
    x = x + attend(norm(x, *params[0:2]), params[2:10])
    y = jax.nn.gelu(dense(norm(x, *params[10:12]), *params[12:14]), approximate=False)
    return x + dense(y, *params[14:16])


def model(params, x):
    x = params[0][x]
    for first in (1, 1 + BLOCK):
        x = block(params[first : first + BLOCK], x)
    return dense(norm(x, *params[-4:-2]), *params[-2:])


def build(start):
    return Loop(start, model, adam(0.001), accuracy=False)
