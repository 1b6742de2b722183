"""MobileNetV2 from keras.applications, without its weights.

Little work in many layers: depthwise convolutions between narrow ones. `base` has the size for ImageNet, in batches of
128 as published for Apple's and NVIDIA's GPUs; `small` sees 16 images of 64 x 64 in ten classes.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.applications.MobileNetV2(weights=None, **workload.settings)
    optimizer = keras.optimizers.SGD(0.0001, momentum=0.9)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def workload(name, size, classes, **counts):
    shape = (size, size, 3)
    settings = {"input_shape": shape, "classes": classes}
    return Workload(name=name, data=datasets.images(shape, classes), settings=settings, **counts)


small = workload("small", 64, 10, train=512, test=64, batch=16, parameters=2_270_794, operations=48_922_624)
large = {"large": True, "parameters": 3_538_984, "operations": 601_548_544}
base = workload("base", 224, 1_000, train=2_048, test=128, batch=128, **large)
scenario = Scenario(kind="cnn", build=build, data=small.data, workloads=(small, base))
