"""A vision transformer: images as texts of patches.

`base` is ViT-B/16: 86,567,656 parameters, images of 224 x 224 in patches of 16 x 16, a thousand classes, here in
batches of 64. `small` has half its layers at a quarter of their width, for images of 32 x 32. Neither has dropout.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def class_and_position():
    class ClassAndPosition(keras.layers.Layer):
        def build(self, shape):
            self.token = self.add_weight((1, 1, shape[-1]), "zeros", name="token")
            self.position = self.add_weight((1, shape[1] + 1, shape[-1]), "random_normal", name="position")

        def call(self, patches):
            token = keras.ops.repeat(self.token, keras.ops.shape(patches)[0], axis=0)
            return keras.ops.concatenate([token, patches], axis=1) + self.position

    return ClassAndPosition()


def block(x, width, heads):
    y = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    x = x + keras.layers.MultiHeadAttention(heads, width // heads)(y, y)
    y = keras.layers.Dense(4 * width, activation="gelu")(keras.layers.LayerNormalization(epsilon=1e-6)(x))
    return x + keras.layers.Dense(width)(y)


def build(workload):
    size = workload.settings
    inputs = keras.Input((size["size"], size["size"], 3))
    x = keras.layers.Conv2D(size["width"], size["patch"], strides=size["patch"])(inputs)
    x = class_and_position()(keras.layers.Reshape((-1, size["width"]))(x))
    for _ in range(size["layers"]):
        x = block(x, size["width"], size["heads"])
    x = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    model = keras.Model(inputs, keras.layers.Dense(size["classes"])(x[:, 0]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(1e-4), loss=loss, metrics=["accuracy"])
    return model


def workload(name, size, patch, width, depth, classes, **counts):
    settings = {"size": size, "patch": patch, "width": width, "layers": depth, "heads": width // 64, "classes": classes}
    return Workload(name=name, data=datasets.images((size, size, 3), classes), settings=settings, **counts)


small_size = {"parameters": 2_693_578, "operations": 365_699_328}
base_size = {"parameters": 86_567_656, "operations": 35_127_656_448, "large": True}
small = workload("small", 32, 4, 192, 6, 10, train=2_048, test=128, batch=16, **small_size)
base = workload("base", 224, 16, 768, 12, 1_000, train=1_024, test=64, batch=64, **base_size)
scenario = Scenario(kind="transformer", build=build, data=small.data, workloads=(small, base))
