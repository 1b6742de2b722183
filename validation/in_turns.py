"""A long plain ``fit`` of scenarios/mnist_dense.py's model, without kerasbench: the child of plain_fit.py.

Every 200 steps, and before each epoch, it waits for a line, and then says how long its turn took, in s.
"""

import json
import sys
import time
from typing import Any

TRAIN, VALIDATION, BATCH = 51_000, 9_000, 32
STEPS_OF_TURN = 200
TURNS = -(-TRAIN // BATCH // STEPS_OF_TURN)  # of an epoch
ENDLESS = 1_000_000


def main() -> None:
    import keras
    import numpy as np

    rng = np.random.default_rng(0)
    x, y = rng.random((TRAIN + VALIDATION, 28, 28), "float32"), rng.integers(0, 10, TRAIN + VALIDATION, "int32")
    model = compiled()

    class InTurn(keras.callbacks.Callback):  # type: ignore[misc]
        began_s: float | None = None

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self.turn()

        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:  # of which Keras waits for nothing
            if batch and batch % STEPS_OF_TURN == 0:
                self.turn()

        def turn(self) -> None:
            settle(self._model)
            if self.began_s is not None:
                print(json.dumps(time.perf_counter() - self.began_s), flush=True)
            if not sys.stdin.readline():
                sys.exit()
            self.began_s = time.perf_counter()

    model.fit(
        x[:TRAIN],
        y[:TRAIN],
        batch_size=BATCH,
        epochs=ENDLESS,
        verbose=0,
        validation_data=(x[TRAIN:], y[TRAIN:]),
        callbacks=[InTurn()],
    )


def compiled() -> Any:
    """Return the model of scenarios/mnist_dense.py."""
    import keras

    dense = [keras.layers.Dense(300, "relu"), keras.layers.Dense(100, "relu"), keras.layers.Dense(10, "softmax")]
    model = keras.Sequential([keras.Input((28, 28)), keras.layers.Flatten(), *dense])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def settle(model: Any) -> None:
    """Wait for the steps that JAX has only begun, or they would run in another's turn; the others are done then."""
    if state := getattr(model, "_jax_state", None):
        import jax

        jax.block_until_ready([array for arrays in state.values() for array in arrays])


if __name__ == "__main__":
    main()
