"""A dense autoencoder that learns how a machine sounds.

The anomaly detector of MLPerf Tiny: 640 numbers of a spectrogram through a bottleneck of eight and back, in batches
of 512 for 100 epochs. Its targets are its inputs. Here they are mixtures of sixteen patterns, with noise.
"""

import keras
import numpy as np

from kerasbench import Scenario, Workload


def build(workload):
    inputs = keras.Input((640,))
    x = inputs
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = keras.layers.ReLU()(keras.layers.BatchNormalization()(keras.layers.Dense(units)(x)))
    model = keras.Model(inputs, keras.layers.Dense(640)(x))
    model.compile(optimizer="adam", loss="mean_squared_error")
    return model


def sounds(samples, rng):
    patterns = np.random.default_rng(0).normal(size=(16, 640)).astype("float32")
    strength = rng.random((samples, 16), dtype="float32")
    x = strength @ patterns + 0.1 * rng.random((samples, 640), dtype="float32")
    return x, x


scenario = Scenario(
    kind="dense",
    build=build,
    data=sounds,
    parameters=269_992,
    operations=528_384,
    workloads=(Workload(train=100_000, validation=10_000, test=1_000, batch=512, epochs=100),),
    source="MLPerf Tiny, anomaly detection (github.com/mlcommons/tiny)",
)
