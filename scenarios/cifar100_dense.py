"""CIFAR-100 through three dense layers, the widest of 1,000.

Published in 2024 for a laptop with an RTX 3060: the one model of that author whose GPU paid, 11 s an epoch against
34-40 s on the CPU. With 3.6 million parameters a step is work enough.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((32, 32, 3)),
            keras.layers.Flatten(),
            keras.layers.Dense(1000, activation="relu"),
            keras.layers.Dense(500, activation="relu"),
            keras.layers.Dense(100, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    kind="dense",
    build=build,
    data=datasets.cifar100(datasets.unit, one_hot=True),
    parameters=3_623_600,
    operations=7_244_000,
    workloads=(Workload(train=42_500, validation=7_500, test=10_000, batch=32, epochs=20),),
    source="딥러닝에서 CPU와 GPU 성능 비교; 1. DNN (Dense) 모델 학습측정 (blog, 2024-10)",
)
