"""EfficientNetV2-B0 from keras.applications, without its weights.

Convolutions of both kinds, squeeze-and-excitation, dropout of whole blocks, and images that are scaled inside the
model. `base` has the size for ImageNet; `small` sees 8 images of 64 x 64 in ten classes.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.applications.EfficientNetV2B0(weights=None, **workload.settings)
    optimizer = keras.optimizers.SGD(0.0001, momentum=0.9)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def workload(name, size, classes, **counts):
    shape = (size, size, 3)
    settings = {"input_shape": shape, "classes": classes}
    return Workload(name=name, data=datasets.images(shape, classes), settings=settings, **counts)


small = workload("small", 64, 10, train=512, test=64, batch=8, parameters=5_932_122, operations=118_949_632)
large = {"large": True, "parameters": 7_200_312, "operations": 1_436_172_352}
base = workload("base", 224, 1_000, train=2_048, test=128, batch=128, **large)
scenario = Scenario(kind="cnn", build=build, data=small.data, workloads=(small, base))
