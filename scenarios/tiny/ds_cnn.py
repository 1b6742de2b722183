"""Keyword spotting through depthwise separable convolutions.

The keyword spotter of MLPerf Tiny: a second of speech as 49 x 10 coefficients, one of twelve words. Depthwise
convolutions do little work for much memory traffic, and are where frameworks differ most on a CPU.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def activated(x):
    return keras.layers.ReLU()(keras.layers.BatchNormalization()(x))


def build(workload):
    decay = keras.regularizers.L2(1e-4)
    inputs = keras.Input((49, 10, 1))
    x = activated(keras.layers.Conv2D(64, (10, 4), 2, "same", kernel_regularizer=decay)(inputs))
    x = keras.layers.Dropout(0.2)(x)
    for _ in range(4):
        x = activated(keras.layers.DepthwiseConv2D(3, padding="same", depthwise_regularizer=decay)(x))
        x = activated(keras.layers.Conv2D(64, 1, kernel_regularizer=decay)(x))
    x = keras.layers.Flatten()(keras.layers.AveragePooling2D((25, 5))(keras.layers.Dropout(0.4)(x)))
    model = keras.Model(inputs, keras.layers.Dense(12, activation="softmax")(x))
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    kind="cnn",
    build=build,
    data=datasets.images((49, 10, 1), classes=12),
    parameters=24_908,
    operations=5_313_536,
    workloads=(Workload(train=85_511, validation=10_102, test=4_890, batch=100, epochs=36),),
    source="MLPerf Tiny, keyword spotting (github.com/mlcommons/tiny)",
)
