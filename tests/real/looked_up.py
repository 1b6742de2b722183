"""Says of small models whether their rows look up one row alone; run by a test, with Keras on one backend."""

import keras
from keras import layers, ops

from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.worker.source import _require_different_rows, inputs_of


class Tokens(layers.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Embedding(2000, 4)

    def call(self, x: object) -> object:
        return self.inner(x)


class Places(layers.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Embedding(16, 8)

    def call(self, x: object) -> object:
        return x + self.inner(ops.arange(16))


def built(shape: tuple[int, ...], body: object, name: str = "x") -> keras.Model:
    inputs = keras.Input(shape, name=name)
    return keras.Model(inputs, body(inputs))  # type: ignore[operator]


MODELS = {
    "direct": built((100,), layers.Embedding(2000, 4)),
    "own layer": built((100,), Tokens()),
    "nested": built((100,), built((100,), layers.Embedding(2000, 4), "inner")),
    "slice": built((2,), lambda x: layers.Embedding(50, 4)(x[:, 0])),
    "places of a picture": built((16, 8), Places()),
}
for name, model in MODELS.items():
    try:
        _require_different_rows(model, inputs_of(model, ModelConfig()))
        print(f"{name}: fine")
    except ModelError as error:
        print(f"{name}: {error.remedy.partition(' gives')[0]}")
remedied = MODELS["own layer"]
_require_different_rows(remedied, inputs_of(remedied, ModelConfig([Input("x", [100], "int32")])))
