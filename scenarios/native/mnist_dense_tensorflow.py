"""mnist_dense in plain TensorFlow. The softmax is part of the loss, and of what predict returns."""

import tensorflow as tf

from kerasbench.native.tensorflow import Loop, sgd


def model(variables, x):
    x = tf.reshape(x, [-1, 784])
    x = tf.nn.relu(x @ variables[0] + variables[1])
    x = tf.nn.relu(x @ variables[2] + variables[3])
    return x @ variables[4] + variables[5]


def build(start):
    return Loop(start, model, sgd(0.01), accuracy=True, outputs=tf.nn.softmax)
