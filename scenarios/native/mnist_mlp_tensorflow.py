"""mnist_mlp in plain TensorFlow, in all three sizes of a step."""

import tensorflow as tf

from kerasbench.native.tensorflow import Loop, adam


def model(variables, x):
    x = tf.nn.relu(x @ variables[0] + variables[1])
    x = tf.nn.relu(x @ variables[2] + variables[3])
    x = tf.nn.relu(x @ variables[4] + variables[5])
    return x @ variables[6] + variables[7]


def build(start):
    return Loop(start, model, adam(start.workload.settings["learning_rate"]), accuracy=False)
