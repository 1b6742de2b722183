"""MNIST through four dense layers, in batches of 100, all at once, and for only 75 images.

Published in 2022 for an RTX 2070 SUPER, to show that the same model's GPU wins or loses by the size of a step: 7.4 s
against 34.2 s on the CPU for 100 steps of 52,500 images, 116.5 s against 125.6 s for 15 epochs of small batches.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.layers.Input((784,)),
            keras.layers.Dense(workload.scaled(400), activation="relu"),
            keras.layers.Dense(workload.scaled(200), activation="relu"),
            keras.layers.Dense(workload.scaled(100), activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(workload.settings["learning_rate"]), loss=loss)
    return model


scaled = datasets.mnist(lambda x: datasets.unit(x).reshape(-1, 784))
unscaled = datasets.mnist(lambda x: x.reshape(-1, 784).astype("float32"))
slow, fast = {"learning_rate": 0.001}, {"learning_rate": 0.01}
scenario = Scenario(
    kind="dense",
    build=build,
    data=unscaled,
    parameters=415_310,
    operations=829_200,
    scalable=True,
    workloads=(
        Workload(name="minibatch", train=60_000, test=10_000, batch=100, epochs=15, data=scaled, settings=slow),
        Workload(name="full_batch", train=52_500, test=17_500, batch=None, epochs=100, settings=fast),
        Workload(name="tiny", train=75, test=25, batch=None, epochs=1_000, settings=fast),
    ),
    source="PyTorch: cases where the CPU beats the GPU (blog, Japanese, 2022-04)",
)
