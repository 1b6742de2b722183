"""Why do TensorFlow's epochs sometimes begin late? Keras alone, without kerasbench.

    python validation/late_epochs.py 6

Every epoch of ``fit`` on TensorFlow makes a new tf.data iterator and drops the one before. Here one process trains
``mnist_mlp/full_batch``, an epoch of which is one step, in turns of ten epochs: with tf.data's autotuning, as Keras
leaves it, and without. An epoch that keeps the processors less than two thirds as busy as the others do has waited.
"""

import os
import random
import statistics
import sys
import time
from typing import Any

ROWS, EPOCHS = 52_500, 10


def main(turns: int) -> None:
    os.environ |= {"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    import keras
    import numpy as np
    import tensorflow as tf

    rng, options = np.random.default_rng(0), tf.data.Options
    x, y = rng.random((ROWS, 784), dtype="float32"), rng.integers(0, 10, ROWS)
    dense = [keras.layers.Dense(units, "relu") for units in (400, 200, 100)]
    model = keras.Sequential([keras.Input((784,)), *dense, keras.layers.Dense(10, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        """Keep each epoch's time and CPU time in s, but for the first, which has no iterator to drop."""

        def __init__(self) -> None:
            super().__init__()
            self.epochs: list[tuple[float, float]] = []
            self.began = 0.0, 0.0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.began = time.perf_counter(), time.process_time()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch:
                now = time.perf_counter(), time.process_time()
                self.epochs.append((now[0] - self.began[0], now[1] - self.began[1]))

    def train(epochs: int, autotunes: bool) -> list[tuple[float, float]]:
        """Train; return the time and the CPU time in s of each epoch but the first."""

        def chosen() -> Any:
            made = options()
            made.autotune.enabled = autotunes
            return made

        clock, tf.data.Options = Clock(), chosen  # Keras makes its options anew in every fit
        model.fit(x, y, batch_size=ROWS, epochs=epochs, verbose=0, callbacks=[clock])
        return clock.epochs

    train(1, autotunes=True)  # compiles
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for _ in range(turns):
        for autotunes in random.sample([True, False], 2):
            found[autotunes] += train(EPOCHS + 1, autotunes)
    busy = statistics.median(cpu / wall for epochs in found.values() for wall, cpu in epochs)
    for autotunes, epochs in found.items():
        walls = [wall for wall, _ in epochs]
        idle = [wall - cpu / busy for wall, cpu in epochs if cpu / wall < busy * 2 / 3]
        waits = f", {min(idle):.2f} to {max(idle):.2f} s each" if idle else ""
        print(
            f"{'with' if autotunes else 'without'} autotuning: {len(idle)} of {len(epochs)} epochs waited{waits}; "
            f"an epoch took {statistics.median(walls):.2f} s (median), {min(walls):.2f} to {max(walls):.2f} s"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
