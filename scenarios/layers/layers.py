"""One kind of layer at a time: which is slow on which backend?

A model is a stem, its layer several times over, and a head that averages. The stem, a dense layer of few inputs, has
weights, so that gradients pass through all that stands behind it. Samples are large and batches small: a step, and the
prediction of one sample, are mostly the layer's own work. Augmentation stands before the stem, as it does in models.
In a prediction, dropout and augmentation change nothing.
"""

import keras

from kerasbench import Scenario, Workload, datasets

CLASSES, VOCABULARY = 10, 10_000


def augmented(x):
    x = keras.layers.RandomTranslation(0.1, 0.1)(keras.layers.RandomFlip()(x))
    return keras.layers.RandomContrast(0.2)(x)


def repeated(x, workload):
    for _ in range(workload.settings["depth"]):
        layer = getattr(keras.layers, workload.settings["layer"])(**workload.settings["arguments"])
        if workload.name == "bidirectional":
            layer = keras.layers.Bidirectional(layer)
        x = layer(x, x) if isinstance(layer, keras.layers.MultiHeadAttention) else layer(x)
    return x


def build(workload):
    width, is_embedding = workload.settings["width"], workload.name == "embedding"
    inputs = keras.Input(workload.data.shape, dtype="int32" if is_embedding else "float32")
    if is_embedding:
        x = keras.layers.Embedding(VOCABULARY, width)(inputs)
    else:
        x = augmented(inputs) if workload.name == "augmentation" else inputs
        x = repeated(keras.layers.Dense(width)(x), workload)
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.Reshape((-1, width))(x))
    model = keras.Model(inputs, keras.layers.Dense(CLASSES)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss)
    return model


def workload(name, data, width, parameters, operations, depth=0, layer="", **arguments):
    settings = {"width": width, "depth": depth, "layer": layer, "arguments": arguments}
    counts = {"train": 2_048, "test": 256, "batch": 8, "parameters": parameters, "operations": operations}
    return Workload(name=name, data=data, settings=settings, **counts)


images, sequences = datasets.images((32, 32, 3), CLASSES), datasets.images((128, 16), CLASSES)
tokens = datasets.sequences(2_048, VOCABULARY, CLASSES)
same, whole = {"padding": "same"}, {"return_sequences": True}  # each layer keeps the shape of what it gets
heads = {"layer": "MultiHeadAttention", "num_heads": 4, "key_dim": 32}
scenario = Scenario(
    kind="layer",
    build=build,
    data=images,
    workloads=(
        workload("dense", sequences, 256, 270_090, 68_162_560, 4, "Dense", units=256),
        workload("convolution", images, 32, 37_450, 75_694_720, 4, "Conv2D", filters=32, kernel_size=3, **same),
        workload("depthwise", images, 32, 1_738, 2_556_544, 4, "DepthwiseConv2D", kernel_size=3, **same),
        workload("transposed", images, 32, 37_450, 75_694_720, 4, "Conv2DTranspose", filters=32, kernel_size=3, **same),
        workload("pooling", images, 32, 458, 197_248, 8, "MaxPooling2D", pool_size=3, strides=1, **same),
        workload("batch_normalization", images, 32, 1_482, 197_248, 8, "BatchNormalization"),
        workload("layer_normalization", sequences, 256, 11_018, 1_053_696, 8, "LayerNormalization"),
        workload("attention", sequences, 128, 135_562, 50_858_496, 2, **heads),
        workload("attention_dropout", sequences, 128, 135_562, 50_858_496, 2, **heads, dropout=0.1),
        workload("lstm", sequences, 64, 34_762, 8_652_032, 1, "LSTM", units=64, **whole),
        workload("gru", sequences, 64, 26_698, 6_554_880, 1, "GRU", units=64, **whole),
        workload("bidirectional", sequences, 64, 26_570, 6_554_880, 1, "LSTM", units=32, **whole),
        workload("embedding", tokens, 64, 640_650, 1_280),
        workload("augmentation", images, 4, 66, 79_952),
    ),
)
