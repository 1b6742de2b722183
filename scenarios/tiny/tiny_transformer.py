"""A language model of two layers on four sequences of 64 tokens.

From an issue of 2026 that asked what Keras adds to plain torch and JAX. The issue timed the forward pass and 32 new
tokens on an Apple GPU; this trains the same network, and generates as many. Of its size the issue says 2.1 million
parameters, which a vocabulary of 1,000 gives.
"""

import keras

from kerasbench import Scenario, Workload, datasets

VOCABULARY, WIDTH, HEADS = 1_000, 256, 4


def block(x):
    y = keras.layers.LayerNormalization()(x)
    x = x + keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y, use_causal_mask=True)
    y = keras.layers.Dense(4 * WIDTH, activation="gelu")(keras.layers.LayerNormalization()(x))
    return x + keras.layers.Dense(WIDTH)(y)


def build(workload):
    inputs = keras.Input((64,), dtype="int32")
    x = keras.layers.Embedding(VOCABULARY, WIDTH)(inputs)
    for _ in range(2):
        x = block(x)
    model = keras.Model(inputs, keras.layers.Dense(VOCABULARY)(keras.layers.LayerNormalization()(x)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


scenario = Scenario(
    kind="transformer",
    build=build,
    data=datasets.next_tokens(64, vocabulary=VOCABULARY),
    parameters=2_093_032,
    operations=242_483_200,
    workloads=(Workload(train=4_000, test=100, batch=4),),
    new_tokens=32,
    source="keras-team/keras issue 22561 (2026-03)",
)
