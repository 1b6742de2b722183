"""MNIST through three dense layers.

Published in 2024 for a laptop with an RTX 3060: training took 9-11 s an epoch on its CPU and 13 s on its GPU, because
a batch of 32 small images is less work than the GPU's fixed cost of a step.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((28, 28)),
            keras.layers.Flatten(),
            keras.layers.Dense(workload.scaled(300), activation="relu"),
            keras.layers.Dense(workload.scaled(100), activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    kind="dense",
    build=build,
    data=datasets.mnist(datasets.unit),
    parameters=266_610,
    operations=532_400,
    scalable=True,
    workloads=(Workload(train=51_000, validation=9_000, test=10_000, batch=32, epochs=20),),
    source="딥러닝에서 CPU와 GPU 성능 비교; 1. DNN (Dense) 모델 학습측정 (blog, 2024-10)",
)
