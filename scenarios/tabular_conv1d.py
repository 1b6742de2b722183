"""Random samples of 29 numbers through two one-dimensional convolutions.

Published in 2022 as a question, why a MacBook Air M1's GPU is 3.5 times slower than its CPU: 13 ms a step against 3.
The labels are random, so there is nothing to learn; a checkpoint of the best weights is written as training goes on.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((29, 1)),
            keras.layers.Conv1D(16, 3, activation="relu"),
            keras.layers.MaxPooling1D(3),
            keras.layers.Conv1D(32, 3, activation="relu"),
            keras.layers.MaxPooling1D(3),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(32, activation="sigmoid"),
            keras.layers.Dense(12, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])
    return model


def callbacks(folder):
    best = {"monitor": "val_accuracy", "save_best_only": True, "save_weights_only": True}
    return [keras.callbacks.ModelCheckpoint(f"{folder}/best.weights.h5", **best)]


scenario = Scenario(
    kind="cnn1d",
    build=build,
    callbacks=callbacks,
    data=datasets.random_samples((29, 1), classes=12),
    parameters=4_108,
    operations=28_960,
    learnable=False,
    workloads=(Workload(train=12_800, validation=3_200, test=4_000, batch=512, epochs=10, predict_batch=32),),
    source="Why GPU is 3.5 times slower than the CPU on Apple M1 Mac? (Stack Overflow, 2022-01)",
)
