"""tiny_transformer in plain TensorFlow."""

import tensorflow as tf

from kerasbench.native.tensorflow import Loop, adam

BLOCK = 16  # arrays of a block


def norm(x, gamma, beta):
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def attend(x, arrays):
    query, query_bias, key, key_bias, value, value_bias, output, output_bias = arrays
    q, k, v = (
        tf.einsum("btw,whd->bthd", x, kernel) + bias
        for kernel, bias in ((query, query_bias), (key, key_bias), (value, value_bias))
    )
    scores = tf.einsum("bthd,bshd->bhts", q * q.shape[-1] ** -0.5, k)
    allowed = tf.linalg.band_part(tf.ones((x.shape[1], x.shape[1]), tf.bool), -1, 0)
    shares = tf.nn.softmax(tf.where(allowed, scores, scores.dtype.min))
    return tf.einsum("bhts,bshd,hdw->btw", shares, v, output) + output_bias


def block(variables, x):
    x = x + attend(norm(x, *variables[0:2]), variables[2:10])
    y = tf.nn.gelu(norm(x, *variables[10:12]) @ variables[12] + variables[13])
    return x + y @ variables[14] + variables[15]


def model(variables, x):
    x = tf.gather(variables[0], x)
    for first in (1, 1 + BLOCK):
        x = block(variables[first : first + BLOCK], x)
    return norm(x, *variables[-4:-2]) @ variables[-2] + variables[-1]


def build(start):
    return Loop(start, model, adam(0.001), accuracy=False)
