"""An embedding on texts that lie on disk, each in a file of its own, as words with blanks between them.

Its purpose is what feeds it: --feed arrays has the numbers in memory, every other feed reads and splits each text in
each epoch. kerasbench writes the files before the clock runs, so they are read from the system's cache.
"""

from dataclasses import replace

import keras

from kerasbench import Scenario, Workload, datasets, storage


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((200,), dtype="int32"),
            keras.layers.Embedding(5_000, 16),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


scenario = Scenario(
    kind="other",
    build=build,
    data=replace(datasets.sequences(200, 5_000, 10), store=storage.texts),
    parameters=80_442,
    workloads=(Workload(train=2_048, batch=32),),
    source="of kerasbench",
)
