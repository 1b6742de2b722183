"""Ratios of backends by plain ``fit``, without kerasbench: what somebody else would measure, and how far bouts are off.

    python benchmarks/plain_fit.py 20            twenty epochs of mnist_dense on each backend, in turn; then bouts

One process for each backend builds the model of scenarios/mnist_dense.py by hand and begins a long `fit`. Before each
epoch it waits until it is told to go on, and after it says how long it took, validation included. The order is drawn
again each time. Then kerasbench measures the same in bouts. Printed are the epochs of both, and both ratios with their
intervals.
"""

import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from itertools import combinations

BACKENDS = ("jax", "tensorflow", "torch")
TRAIN, VALIDATION, BATCH = 51_000, 9_000, 32
ENDLESS = 1_000_000
BOUTS = 6


def child() -> None:
    import keras
    import numpy as np

    rng = np.random.default_rng(0)
    x, y = rng.random((TRAIN + VALIDATION, 28, 28), "float32"), rng.integers(0, 10, TRAIN + VALIDATION, "int32")
    model = keras.Sequential(
        [
            keras.layers.Input((28, 28)),
            keras.layers.Flatten(),
            keras.layers.Dense(300, activation="relu"),
            keras.layers.Dense(100, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

    class InTurn(keras.callbacks.Callback):  # type: ignore[misc]
        began_s = 0.0

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            if epoch and not sys.stdin.readline():
                sys.exit()
            self.began_s = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            print(json.dumps(time.perf_counter() - self.began_s), flush=True)  # the first is no more than a warm-up

    model.fit(
        x[:TRAIN],
        y[:TRAIN],
        batch_size=BATCH,
        epochs=ENDLESS,
        verbose=0,
        validation_data=(x[TRAIN:], y[TRAIN:]),
        callbacks=[InTurn()],
    )


def started(backend: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(
        [sys.executable, __file__, "child"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    told_s(process)
    return process


def told_s(process: "subprocess.Popen[str]") -> float:
    """Return what a process says of its epoch, in s."""
    assert process.stdout is not None
    return float(json.loads(process.stdout.readline()))


def by_hand(count: int) -> dict[str, list[float]]:
    """Return the epochs of each backend, in s, one of each in turn."""
    processes = {backend: started(backend) for backend in BACKENDS}
    epochs_s: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
    for _ in range(count):
        for backend in random.sample(BACKENDS, len(BACKENDS)):
            stdin = processes[backend].stdin
            assert stdin is not None
            stdin.write("go\n")
            stdin.flush()
            epochs_s[backend].append(told_s(processes[backend]))
    for process in processes.values():
        process.kill()
    return epochs_s


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main(count: int) -> None:
    from columns import Column, bouts, chosen

    from kerasbench.analysis.cells import HEADLINE
    from kerasbench.analysis.estimates import percentile_interval
    from kerasbench.analysis.metrics import BY_NAME
    from kerasbench.analysis.ratios import between
    from kerasbench.exchange.requests import Protocol
    from kerasbench.machine.lock import machine_lock

    with machine_lock():
        epochs_s = by_hand(count)
        (selected, *_) = chosen("mnist_dense")
        found = bouts([Column(name, selected, name) for name in BACKENDS], BOUTS, Protocol())
    for name in BACKENDS:
        bouts_s = found[name].values(BY_NAME["epoch_s"])
        print(
            f"{name}: an epoch takes {spread(epochs_s[name])} s by plain fit, {spread(bouts_s)} s by bouts", flush=True
        )
    for a, b in combinations(BACKENDS, 2):
        pairs = sorted(math.log(one / other) for one, other in zip(epochs_s[a], epochs_s[b], strict=True))
        plain = math.exp((pairs[(len(pairs) - 1) // 2] + pairs[len(pairs) // 2]) / 2)
        low, high = (math.exp(one) for one in percentile_interval(pairs, 0.5) or (math.nan, math.nan))
        ratio = between(found[a], found[b], HEADLINE, ())
        assert ratio is not None and ratio.low is not None and ratio.high is not None
        print(
            f"{a} / {b}: plain fit {plain:.4f} [{low:.4f}, {high:.4f}], bouts {ratio.value:.4f} "
            f"[{ratio.low:.4f}, {ratio.high:.4f}], bouts over plain {ratio.value / plain:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child()
    else:
        main(int(sys.argv[1]))
