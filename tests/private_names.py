"""Looks up every private name of the Keras of this interpreter, and prints as JSON what it has found.

``KERAS_BACKEND=jax python tests/private_names.py``, with kerasbench in PYTHONPATH.
"""

import contextlib
import json
from typing import Any

import keras
import numpy as np

from kerasbench import backends, private
from kerasbench.facts.recurrent import Recurrent

STEPS, AT_ONCE = 8, 4


def names_of(backend: str) -> dict[str, private.PrivateName]:
    values = [*vars(private).values(), *private.RECURRENT.values()]
    names = [value for value in values if isinstance(value, private.PrivateName)]
    others = [f"backend.{other}." for other in backends.names() if other != backend]
    return {name.name: name for name in names if not any(other in name.places[0] for other in others)}


def model(*layers: Any, steps: int = 1) -> Any:
    made = keras.Sequential([keras.layers.Input((4, 1)), *layers, keras.layers.Dense(1)])
    made.compile("sgd", "mse", steps_per_execution=steps)
    return made


def trained(steps: int, backend: Any) -> dict[str, Any]:
    """Train a model by ``fit`` and then by bare steps; tell how many those were, and what was traced."""
    x: Any = np.ones((32, 4, 1), "float32")
    y: Any = np.ones((32, 1), "float32")
    recurrent = model(keras.layers.LSTM(2), steps=steps)
    with Recurrent().watch(recurrent.layers, keras.backend.backend()) as code:
        recurrent.fit(x, y, batch_size=4, verbose=0)
    compiler = backend.compiler(recurrent)
    with backend.bare_steps(recurrent, backend.on_device((x[:4], y[:4])))() as run:
        before = int(keras.ops.convert_to_numpy(recurrent.optimizer.iterations))
        run(STEPS)
    after = int(keras.ops.convert_to_numpy(recurrent.optimizer.iterations))
    return {"bare": after - before, "code": dict(code), "traces": compiler and compiler.traces}


def attributes(backend: str) -> list[str]:
    """Return those that are nowhere on a trained model, its layers and its optimizer."""
    layers = [keras.layers.Embedding(9, 4), keras.layers.MultiHeadAttention(1, 2, dropout=0.1)]
    ids = keras.Input((4,), dtype="int32")
    embedded = layers[0](ids)
    functional = keras.Model(ids, keras.layers.Dense(1)(layers[1](embedded, embedded)))
    functional.compile("sgd", "mse", metrics=["mae"])
    functional.fit(np.ones((4, 4), "int32"), np.ones((4, 4, 1), "float32"), verbose=0)
    objects = [functional, functional.optimizer, functional.weights[0], functional.output, *layers]
    wanted = set(private.ATTRIBUTES) - ({"_jax_state", "_mlx_state"} - {f"_{backend}_state"})
    return sorted(name for name in wanted if not any(hasattr(thing, name) for thing in objects))


def main() -> None:
    backend = keras.config.backend()
    found: dict[str, Any] = {"keras": keras.__version__, "places": {}, "bare": STEPS}
    for name, private_name in names_of(backend).items():
        with contextlib.suppress(private.LostNameError):
            found["places"][name] = callable(private_name.find())
    for name, steps in ("single steps", 1), ("several steps", AT_ONCE):
        try:
            found[name] = trained(steps, backends.get(backend))
        except ValueError as error:
            if backend != "torch":  # which takes several from 3.16 on
                raise
            found[name] = str(error)
    print(json.dumps(found | {"absent": attributes(backend), "lost": private.lost()}))


if __name__ == "__main__":
    main()
