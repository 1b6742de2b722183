"""What does a wait that is planted behind each step cost beyond itself? Keras alone, without kerasbench.

    python validation/spinning.py torch

``planted.py`` lets each step be followed by a wait of a tenth of what it took. Here one process trains epochs with that
wait and without it in turn, and reads a clock on both sides of the wait. If the wait did nothing else, an epoch would
take 1.10 times as long, and the steps themselves 1.00 times.
"""

import os
import random
import statistics
import sys
import time
from typing import Any

from in_turns import compiled, settle

SHARE = 0.1
SAMPLES, BATCH, CYCLES = 12_800, 32, 12


def main(backend: str) -> None:
    os.environ |= {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1"}
    import keras
    import numpy as np

    class Pace(keras.callbacks.Callback):  # type: ignore[misc]
        """Wait for the step before, but for the first of an epoch, and then for a share of its time."""

        share = 0.0
        steps_ns = began_ns = 0

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            settle(self._model)  # the property would copy JAX's state back
            now_ns = time.perf_counter_ns()
            if batch:
                self.steps_ns += now_ns - self.began_ns
                until_ns = now_ns + self.share * (now_ns - self.began_ns)
                while time.perf_counter_ns() < until_ns:
                    pass
            self.began_ns = time.perf_counter_ns()

    rng, pace = np.random.default_rng(0), Pace()
    x, y = rng.random((SAMPLES, 28, 28), dtype="float32"), rng.integers(0, 10, SAMPLES)
    model = compiled()

    def epoch(share: float) -> tuple[float, float]:
        """Train an epoch; return how long it took, and how long its steps took without their waits, in ns."""
        pace.share, pace.steps_ns = share, 0
        began_ns = time.perf_counter_ns()
        model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[pace])
        return time.perf_counter_ns() - began_ns, pace.steps_ns

    epoch(0)  # compiles
    found = []
    for _ in range(CYCLES):
        of = {share: epoch(share) for share in random.sample([0.0, SHARE], 2)}
        found.append([planted / plain for planted, plain in zip(of[SHARE], of[0.0], strict=True)])
    epochs, steps = (statistics.median(ratios) for ratios in zip(*found, strict=True))
    print(f"{backend}: an epoch takes {epochs:.3f} times as long, its steps without their waits {steps:.3f} times")


if __name__ == "__main__":
    main(sys.argv[1])
