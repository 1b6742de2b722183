"""cifar10_cnn in plain TensorFlow."""

import tensorflow as tf

from kerasbench.native.tensorflow import Loop, adam


def convolve(x, kernel, bias):
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "VALID"), bias))


def model(variables, x):
    x = tf.nn.max_pool2d(convolve(x, *variables[0:2]), 2, 2, "VALID")
    x = tf.nn.max_pool2d(convolve(x, *variables[2:4]), 2, 2, "VALID")
    return tf.reshape(x, [-1, 6 * 6 * 64]) @ variables[4] + variables[5]


def build(start):
    return Loop(start, model, adam(0.001), accuracy=True, outputs=tf.nn.softmax)
