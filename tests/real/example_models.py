"""Models of the kinds that Keras' own examples show: saved to a folder, and the file of their layers, for --custom."""

import sys
from pathlib import Path
from typing import Any

import keras
from keras import layers, ops

EXPERTS = '''"""A mixture of experts whose step is TensorFlow's own: the others cannot run it."""

import keras
import numpy as np
import tensorflow as tf

from kerasbench import Workload, Scenario


class Experts(keras.Model):  # type: ignore[misc]
    def __init__(self):
        super().__init__()
        self.gate, self.experts = keras.layers.Dense(3, "softmax"), [keras.layers.Dense(4) for _ in range(3)]

    def call(self, x):
        shares = self.gate(x)
        return sum(shares[:, n : n + 1] * expert(x) for n, expert in enumerate(self.experts))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


def build(workload):
    model = Experts()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def data(samples, rng):
    return rng.random((samples, 8), dtype="float32"), rng.integers(0, 4, samples, dtype="int32")


scenario = Scenario(build=build, data=data, learnable=False, workloads=(Workload(train=512, batch=32, epochs=1),))
'''


@keras.saving.register_keras_serializable("examples")
class Patches(layers.Layer):  # type: ignore[misc]
    """Cut pictures into squares, and add what each place has learned."""

    def __init__(self, side: int, width: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.side, self.width = side, width
        self.project = layers.Dense(width)

    def build(self, shape: Any) -> None:
        self.places = (shape[1] // self.side) * (shape[2] // self.side)
        self.project.build((None, self.places, shape[3] * self.side**2))
        self.place = self.add_weight(shape=(self.places, self.width), name="place")

    def call(self, pictures: Any) -> Any:
        cut = ops.image.extract_patches(pictures, self.side)
        return self.project(ops.reshape(cut, (-1, self.places, cut.shape[-1]))) + self.place

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "side": self.side, "width": self.width}


@keras.saving.register_keras_serializable("examples")
class Gate(layers.Layer):  # type: ignore[misc]
    """A gated residual: what a feature adds is weighed by itself."""

    def __init__(self, units: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.units = units
        self.value, self.weight = layers.Dense(units), layers.Dense(units, "sigmoid")
        self.norm = layers.LayerNormalization()

    def build(self, shape: Any) -> None:
        for part in (self.value, self.weight, self.norm):
            part.build((*shape[:-1], self.units) if part is self.norm else shape)

    def call(self, x: Any) -> Any:
        return self.norm(self.value(x) * self.weight(x))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("examples")
class Strict(layers.Layer):  # type: ignore[misc]
    """A layer whose __init__ takes nothing of what Keras hands it when it loads one."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.units = units
        self.inner = layers.Dense(units)

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("examples")
class Tokens(layers.Layer):  # type: ignore[misc]
    """Words and their places."""

    def __init__(self, words: int, length: int, width: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.words, self.length, self.width = words, length, width
        self.word, self.place = layers.Embedding(words, width), layers.Embedding(length, width)

    def build(self, shape: Any) -> None:
        self.word.build(shape)
        self.place.build((self.length,))

    def call(self, x: Any) -> Any:
        return self.word(x) + self.place(ops.arange(self.length))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "words": self.words, "length": self.length, "width": self.width}


@keras.saving.register_keras_serializable("examples")
class Recommender(keras.Model):  # type: ignore[misc]
    """Two look-ups and their product, a subclassed model that says only the shape that it was built with."""

    def __init__(self, users: int = 600, films: int = 900, width: int = 16, **rest: Any) -> None:
        super().__init__(**rest)
        self.users, self.films, self.width = users, films, width
        self.user, self.film = layers.Embedding(users, width), layers.Embedding(films, width)

    def call(self, pairs: Any) -> Any:
        user, film = self.user(pairs[:, 0]), self.film(pairs[:, 1])
        return ops.sigmoid(ops.sum(user * film, axis=-1, keepdims=True))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "users": self.users, "films": self.films, "width": self.width}


def compiled(model: Any, loss: Any = "sparse_categorical_crossentropy") -> Any:
    model.compile(optimizer="adam", loss=loss)
    return model


def classes(count: int) -> Any:
    return layers.Dense(count, "softmax")


def pointnet() -> Any:
    x = inputs = keras.Input((64, 3))
    x = layers.Activation("relu")(layers.BatchNormalization()(layers.Conv1D(16, 1)(x)))
    bent = layers.Dense(
        9, kernel_regularizer=keras.regularizers.L2(1e-3), bias_initializer=keras.initializers.Constant(0.5)
    )
    turn = layers.Reshape((3, 3))(bent(layers.GlobalMaxPooling1D()(x)))
    x = layers.Dot(axes=(2, 1))([inputs, turn])
    return compiled(keras.Model(inputs, classes(5)(layers.GlobalMaxPooling1D()(layers.Conv1D(16, 1)(x)))))


def seq2seq() -> Any:
    encoder, decoder = (keras.Input((None, 20), name=name) for name in ("encoder", "decoder"))
    _, *state = layers.LSTM(16, return_state=True)(encoder)
    x = layers.LSTM(16, return_sequences=True)(decoder, initial_state=state)
    return compiled(keras.Model([encoder, decoder], classes(20)(x)), "categorical_crossentropy")


def grn() -> Any:
    named = {name: keras.Input((1,), name=name) for name in ("age", "hours", "gain", "weeks")}
    x = layers.Concatenate()([Gate(8)(one) for one in named.values()])
    return compiled(keras.Model(named, layers.Dense(1, "sigmoid")(Gate(8)(x))), "binary_crossentropy")


def two_outputs() -> Any:
    words = keras.Input((16,), dtype="int32", name="words")
    x = Tokens(100, 16, 16)(words)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True))
    loss = [keras.losses.SparseCategoricalCrossentropy(from_logits=True), None]
    return compiled(keras.Model(words, [layers.Dense(100)(x), x]), loss)


def recommender() -> Any:
    model = Recommender()
    model(ops.zeros((1, 2), "int32"))
    return compiled(model, "binary_crossentropy")


def vit() -> Any:
    inputs = keras.Input((24, 24, 3))
    x = Patches(6, 16)(inputs)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8, dropout=0.1)(x, x))
    return compiled(keras.Model(inputs, classes(10)(layers.Flatten()(x))))


def strict() -> Any:
    return compiled(keras.Sequential([keras.Input((8,)), Strict(16), classes(3)]))


MODELS = (pointnet, seq2seq, grn, two_outputs, recommender, vit, strict)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place / "experts.py").write_text(EXPERTS, "utf-8")
    for model in MODELS:
        model().save(place / f"{model.__name__}.keras")
