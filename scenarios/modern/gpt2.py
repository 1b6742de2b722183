"""A language model like GPT-2: what is the next token?

`base` is GPT-2 in its smallest published size: 124,439,808 parameters, sequences of 1,024 tokens, here in batches of 8.
`small` has two of its layers at a sixth of their width, and has a vocabulary of 4,096. Neither has dropout.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def tied_embedding(vocabulary, width):
    class TiedEmbedding(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.vectors = self.add_weight((vocabulary, width), "random_normal", name="vectors")

        def call(self, inputs, reverse=False):
            if reverse:
                return keras.ops.matmul(inputs, keras.ops.transpose(self.vectors))
            return keras.ops.take(self.vectors, inputs, axis=0)

    return TiedEmbedding()


def block(x, width, heads):
    y = keras.layers.LayerNormalization(epsilon=1e-5)(x)
    x = x + keras.layers.MultiHeadAttention(heads, width // heads)(y, y, use_causal_mask=True)
    y = keras.layers.Dense(4 * width, activation="gelu")(keras.layers.LayerNormalization(epsilon=1e-5)(x))
    return x + keras.layers.Dense(width)(y)


def build(workload):
    size = workload.settings
    inputs = keras.Input((size["length"],), dtype="int32")
    embedding = tied_embedding(size["vocabulary"], size["width"])
    positions = keras.ops.zeros_like(inputs) + keras.ops.arange(size["length"])
    x = embedding(inputs) + keras.layers.Embedding(size["length"], size["width"])(positions)
    for _ in range(size["layers"]):
        x = block(x, size["width"], size["heads"])
    model = keras.Model(inputs, embedding(keras.layers.LayerNormalization(epsilon=1e-5)(x), reverse=True))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.AdamW(6e-4), loss=loss)
    return model


def workload(name, vocabulary, length, width, depth, **counts):
    settings = {"vocabulary": vocabulary, "length": length, "width": width, "layers": depth, "heads": width // 64}
    return Workload(name=name, data=datasets.next_tokens(length, vocabulary), settings=settings, **counts)


small = workload(
    "small", 4_096, 128, 128, 2, train=1_024, test=32, batch=16, parameters=937_472, operations=251_658_240
)
large = {"large": True, "parameters": 124_439_808, "operations": 291_648_307_200}
base = workload("base", 50_257, 1_024, 768, 12, train=800, test=8, batch=8, **large)
scenario = Scenario(kind="transformer", build=build, data=small.data, workloads=(small, base), new_tokens=32)
