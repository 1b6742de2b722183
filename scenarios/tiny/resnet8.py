"""ResNet-8 on CIFAR-10: three residual stacks with batch normalisation.

The image classifier of MLPerf Tiny, the smallest network that has what residual networks are made of. Its authors
train it for 500 epochs of 32 images with Adam. What they show it is turned and shifted at random; here it is not.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def convolution(x, filters, size, strides=1):
    decay = keras.regularizers.L2(1e-4)
    return keras.layers.Conv2D(
        filters, size, strides, "same", kernel_initializer="he_normal", kernel_regularizer=decay
    )(x)


def stack(x, filters, strides):
    y = keras.layers.BatchNormalization()(convolution(x, filters, 3, strides))
    y = keras.layers.BatchNormalization()(convolution(keras.layers.ReLU()(y), filters, 3))
    shortcut = x if strides == 1 else convolution(x, filters, 1, strides)
    return keras.layers.ReLU()(keras.layers.Add()([shortcut, y]))


def build(workload):
    inputs = keras.Input((32, 32, 3))
    x = keras.layers.ReLU()(keras.layers.BatchNormalization()(convolution(inputs, 16, 3)))
    for filters, strides in ((16, 1), (32, 2), (64, 2)):
        x = stack(x, filters, strides)
    x = keras.layers.Flatten()(keras.layers.AveragePooling2D(8)(x))
    model = keras.Model(inputs, keras.layers.Dense(10, activation="softmax", kernel_initializer="he_normal")(x))
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    kind="cnn",
    build=build,
    data=datasets.cifar10(datasets.unit, one_hot=True),
    parameters=78_666,
    operations=25_003_264,
    workloads=(Workload(train=50_000, test=10_000, batch=32, epochs=500),),
    source="MLPerf Tiny, image classification (github.com/mlcommons/tiny)",
)
