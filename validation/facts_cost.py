"""What do facts and the memory of phases cost a training step?

    python validation/facts_cost.py          mnist_dense on each backend, two minutes each

A trial reads facts from one more step, after all that is timed. What comes near a step are the compiler's counters,
read right before and after a turn, and the memory, read where a phase begins and ends. Here a plain ``fit`` is timed in
slices of 20 ms, and one of each pair, drawn by chance, has both right before and after it.
Printed is what that adds, in us and as a share of a slice of 100 ms: the median over the pairs, with its 95 %
order-statistic interval.
"""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping

import medians
from in_turns import BATCH, ENDLESS, TRAIN, compiled, settle

BACKENDS = ("jax", "tensorflow", "torch")
SLICE_S, WARM_UP_S = 0.02, 5.0
OF_SLICE_S = 0.1
PAIRS = 2_500


def time_pairs() -> None:  # noqa: C901
    import keras
    import numpy as np

    from kerasbench import backends
    from kerasbench.protocol.columns import CPU, Device
    from kerasbench.worker.memory import DeviceCounter, HostCounter, PhaseMemory

    backend = backends.get(keras.backend.backend())
    memory = [PhaseMemory(HostCounter()), PhaseMemory(DeviceCounter(backend, Device(CPU)))]

    class Pairs(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.steps, self.step = 1, 0  # of a slice; those of it that are done
            self.began_s, self.warm_s = 0.0, float("inf")
            self.reads, self.later = False, list[bool]()  # whether this slice reads, and those that are drawn
            self.slices_s: dict[bool, list[float]] = {False: [], True: []}

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self.step = 0  # a slice that an epoch's end cuts off is begun again
            self.warm_s = min(self.warm_s, time.perf_counter() + WARM_UP_S)

        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
            if self.step == self.steps:
                self.end()
                self.step = 0
            if self.step == 0:
                settle(self._model)
                self.read()
                self.began_s = time.perf_counter()
            self.step += 1

        def end(self) -> None:
            settle(self._model)
            now_s = time.perf_counter()
            self.read()
            if now_s < self.warm_s:
                self.steps = min(TRAIN // BATCH // 4, max(1, round(self.steps * SLICE_S / (now_s - self.began_s))))
                self.later = []
            else:
                self.slices_s[self.reads].append(now_s - self.began_s)
            self.later = self.later or random.sample([False, True], 2)
            self.reads = self.later.pop()
            self._model.stop_training = min(map(len, self.slices_s.values())) == PAIRS

        def read(self) -> None:
            if self.reads:
                backend.compiler(self._model)
                for counter in memory:
                    counter.end()
                    counter.begin()

    pairs = Pairs()
    x, y = np.random.random((TRAIN, 28, 28)).astype("float32"), np.random.randint(0, 10, TRAIN)
    compiled().fit(x, y, batch_size=BATCH, epochs=ENDLESS, verbose=0, callbacks=[pairs])
    report(pairs.slices_s, pairs.steps)


def report(slices_s: Mapping[bool, list[float]], steps: int) -> None:
    added_s = [more - less for less, more in zip(slices_s[False], slices_s[True], strict=True)]
    numbers = [statistics.median(added_s), *medians.interval(added_s)]
    microseconds, shares = (
        (f"{1e6 * number:+.0f}" for number in numbers),
        (f"{number / OF_SLICE_S:+.3%}" for number in numbers),
    )
    print(*microseconds, "us,", *shares, f"of 100 ms; {steps} steps a slice", flush=True)


def main() -> None:
    for backend in BACKENDS:
        variables = {**os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        print(f"{backend:10}", end=" ", flush=True)
        subprocess.run([sys.executable, __file__, "child"], env=variables, check=True)


if __name__ == "__main__":
    time_pairs() if sys.argv[1:] else main()
