"""Makes saved models in a folder, loads hostile copies, and says of models whether their rows look up one row alone.

It runs on torch in a child of a test, prints a line for each, and imports no other framework, as a trial's child.
"""

import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from kerasbench.runners.failure import refuse_other_frameworks

refuse_other_frameworks("torch")

import h5py  # noqa: E402
import keras  # noqa: E402
from keras import layers, ops  # noqa: E402

from kerasbench.protocol.requests import Input, ModelConfig  # noqa: E402
from kerasbench.scenario import ModelError  # noqa: E402
from kerasbench.sources import loading as saved  # noqa: E402
from kerasbench.sources.rows import _require_different_rows, inputs_of  # noqa: E402


def save(folder: Path) -> None:
    tokens, numbers = keras.Input((None,), dtype="int32", name="tokens"), keras.Input((5,), name="numbers")
    both = layers.Concatenate()([layers.GlobalAveragePooling1D()(layers.Embedding(50, 8)(tokens)), numbers])
    both = layers.Dropout(0.5)(both)
    outputs = {"price": layers.Dense(1)(both), "kind": layers.Dense(7, activation="softmax")(both)}
    model = keras.Model({"tokens": tokens, "numbers": numbers}, outputs)
    model.compile("sgd", {"price": "mse", "kind": "sparse_categorical_crossentropy"}, jit_compile=False)
    model.save(folder / "two.keras")
    keras.Sequential([keras.Input((8,)), layers.Dense(4, name="dense")]).save(folder / "one.keras")
    keras.Sequential([keras.Input((8,)), layers.Lambda(lambda x: 2 * x)]).save(folder / "lambda.keras")


def rewritten(file: Path, name: str, ending: str, change: Callable[[bytes], bytes]) -> Path:
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(file.with_name(name), "w") as new:
        for part in old.namelist():
            content = old.read(part)
            new.writestr(part, change(content) if part.endswith(ending) else content)
    return file.with_name(name)


def claiming(side: int, content: bytes) -> bytes:
    """Claim a matrix of that side where a layer's weights are, with nothing of it stored."""
    weights, place = BytesIO(content), "layers/dense/vars/0"
    with h5py.File(weights, "a") as file:
        del file[place]
        file.create_dataset(place, (side, side), "float32", chunks=(1000, 1000), compression="gzip")
    return weights.getvalue()


def hostile(folder: Path) -> Iterator[str]:
    file = folder / "one.keras"
    for bad in (
        folder / "lambda.keras",
        rewritten(file, "claims.keras", ".h5", partial(claiming, 50_000)),
        rewritten(file, "large.keras", ".h5", partial(claiming, 30_000)),
        rewritten(file, "wide.keras", ".json", lambda content: content.replace(b'"units": 4', b'"units": 400000000')),
    ):
        try:
            saved.load(bad, ModelConfig(), saved.outline(bad, trusted=True, custom=True))
        except Exception as error:
            yield f"{type(error).__name__}: {error}"


class Own(layers.Layer):  # type: ignore[misc]
    def __init__(self, rows: int, width: int, by_place: bool) -> None:
        super().__init__()
        self.rows, self.by_place = rows, by_place
        self.inner = layers.Embedding(rows, width)

    def call(self, x: Any) -> Any:
        return x + self.inner(ops.arange(self.rows)) if self.by_place else self.inner(x)


def built(shape: tuple[int, ...], body: Any, name: str = "x") -> keras.Model:
    inputs = keras.Input(shape, name=name)
    return keras.Model(inputs, body(inputs))


def looked_up() -> Iterator[str]:
    models = {
        "direct": built((100,), layers.Embedding(2000, 4)),
        "own layer": built((100,), Own(2000, 4, by_place=False)),
        "nested": built((100,), built((100,), layers.Embedding(2000, 4), "inner")),
        "slice": built((2,), lambda x: layers.Embedding(50, 4)(x[:, 0])),
        "places of a picture": built((16, 8), Own(16, 8, by_place=True)),
    }
    for name, model in models.items():
        try:
            _require_different_rows(model, inputs_of(model, ModelConfig()))
            yield f"{name}: fine"
        except ModelError as error:
            yield f"{name}: {error.remedy.partition(' gives')[0]}"
    remedied = models["own layer"]
    _require_different_rows(remedied, inputs_of(remedied, ModelConfig([Input("x", [100], "int32")])))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    save(place)
    print(*hostile(place), *looked_up(), sep="\n")
