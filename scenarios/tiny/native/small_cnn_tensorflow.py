"""small_cnn in plain TensorFlow."""

import tensorflow as tf

from kerasbench.native.tensorflow import Loop, adam


def convolve(x, kernel, bias):
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias))


def model(variables, x):
    x = convolve(convolve(x, *variables[0:2]), *variables[2:4])
    x = convolve(tf.nn.max_pool2d(x, 2, 2, "VALID"), *variables[4:6])
    return tf.reduce_mean(x, (1, 2)) @ variables[6] + variables[7]


def build(start):
    return Loop(start, model, adam(0.001), accuracy=False)
