"""A small network on pictures that lie on disk, as PNG, as JPEG and in one memory-mapped array.

Its purpose is what feeds it: --feed arrays has the decoded pictures in memory, every other feed reads and decodes each
picture in each epoch. kerasbench writes the files before the clock runs, so they are read from the system's cache. Of
two workloads, one has its feed mirror and move each picture, the other its model.
"""

from dataclasses import replace

import keras

from kerasbench import Scenario, Workload, datasets, storage


def build(workload):
    side = workload.settings["side"]
    augments = []
    if workload.settings.get("augments"):
        augments = [keras.layers.RandomFlip("horizontal"), keras.layers.RandomTranslation(0, 0.125)]
    model = keras.Sequential(
        [
            keras.layers.Input((side, side, 3)),
            *augments,
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(8, 3, 4, activation="relu"),
            keras.layers.Conv2D(16, 3, 2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


def as_bytes(x):
    return x


def workload(name, side, samples, store, **settings):
    data = replace(datasets.images((side, side, 3), 10, prepare=as_bytes), store=store)
    return Workload(name=name, train=samples, batch=32, data=data, settings={"side": side, **settings})


scenario = Scenario(
    kind="cnn",
    build=build,
    data=datasets.images((96, 96, 3), 10, prepare=as_bytes),
    parameters=1_562,
    workloads=(
        workload("png_96", 96, 1_024, storage.png),
        workload("jpeg_96", 96, 1_024, storage.jpeg),
        workload("array_96", 96, 1_024, storage.memory_map),
        workload("augmented_by_feed", 96, 1_024, storage.augmented(storage.png)),
        workload("augmented_by_model", 96, 1_024, storage.png, augments=True),
        workload("png_224", 224, 512, storage.png),
        workload("jpeg_224", 224, 512, storage.jpeg),
    ),
    source="of kerasbench",
)
