"""A BERT encoder that classifies sequences in two classes.

`base` is BERT base (uncased): 109,482,240 parameters and a last layer for two classes, in batches of 32 sequences of
512 tokens, as on the benchmark page of keras.io. `small` has two of its layers at a sixth of their width. Neither has
dropout.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def block(x, width, heads):
    y = keras.layers.MultiHeadAttention(heads, width // heads)(x, x)
    x = keras.layers.LayerNormalization(epsilon=1e-12)(x + y)
    y = keras.layers.Dense(width)(keras.layers.Dense(4 * width, activation="gelu")(x))
    return keras.layers.LayerNormalization(epsilon=1e-12)(x + y)


def build(workload):
    size = workload.settings
    inputs = keras.Input((size["length"],), dtype="int32")
    positions = keras.ops.arange(size["length"])
    x = keras.layers.Embedding(size["vocabulary"], size["width"])(inputs)
    x = x + keras.layers.Embedding(2, size["width"])(keras.ops.zeros_like(inputs))
    x = x + keras.layers.Embedding(size["length"], size["width"])(keras.ops.zeros_like(inputs) + positions)
    x = keras.layers.LayerNormalization(epsilon=1e-12)(x)
    for _ in range(size["layers"]):
        x = block(x, size["width"], size["heads"])
    pooled = keras.layers.Dense(size["width"], activation="tanh")(x[:, 0])
    model = keras.Model(inputs, keras.layers.Dense(2)(pooled))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(5e-5), loss=loss, metrics=["accuracy"])
    return model


def workload(name, vocabulary, length, width, depth, **counts):
    settings = {"vocabulary": vocabulary, "length": length, "width": width, "layers": depth, "heads": width // 64}
    return Workload(
        name=name, data=datasets.sequences(length, vocabulary, classes=2), settings=settings, batch=32, **counts
    )


small = workload("small", 8_192, 128, 128, 2, train=2_048, test=128, parameters=1_478_786, operations=117_473_792)
large = {"large": True, "parameters": 109_483_778, "operations": 96_637_946_880}
base = workload("base", 30_522, 512, 768, 12, train=3_200, test=64, **large)
scenario = Scenario(kind="transformer", build=build, data=small.data, workloads=(small, base))
