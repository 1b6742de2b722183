"""Reads real rows from a small file in MNIST's format, which stands where Keras' download would put the large one.

The test makes the file; get_file is told of its address and checksum instead of the published ones.
"""

import os

import keras
import keras.src.datasets.mnist as origin

from kerasbench import Scenario, Workload, datasets


def from_here(fname, **published):
    return keras.utils.get_file(fname, os.environ["SMALL_MNIST_URL"], file_hash=os.environ["SMALL_MNIST_SHA256"])


origin.get_file = from_here


def build(workload):
    model = keras.Sequential([keras.layers.Input((28, 28)), keras.layers.Flatten(), keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss)
    return model


real = Scenario(build=build, data=datasets.mnist(datasets.unit), workloads=(Workload(train=160, test=40, batch=16),))
