"""Three convolutions on four images at a time.

From an issue of 2026 that asked what Keras adds to plain torch and JAX: at so small a batch a step is mostly what the
framework costs. The issue timed the forward pass on an Apple GPU; this trains the same network.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(128, 3, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


scenario = Scenario(
    kind="cnn",
    build=build,
    data=datasets.images((32, 32, 3), classes=10),
    parameters=113_866,
    operations=116_787_712,
    workloads=(Workload(train=4_000, test=1_000, batch=4),),
    source="keras-team/keras issue 22561 (2026-03)",
)
