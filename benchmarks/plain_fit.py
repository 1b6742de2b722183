"""Ratios of backends by plain ``fit``, without kerasbench: what somebody else would measure, and how far bouts are off.

    python benchmarks/plain_fit.py 20            twenty epochs of mnist_dense on each backend, in turn; then bouts

One process for each backend builds the model of scenarios/mnist_dense.py by hand and waits. It is told to run one epoch
with `fit`, says how long that took, and the next one is told. The order is drawn again each time. Then kerasbench
measures the same in bouts, and both ratios are printed with their intervals.
"""

import json
import math
import os
import random
import subprocess
import sys
import time
from itertools import combinations

BACKENDS = ("jax", "tensorflow", "torch")
TRAIN, VALIDATION, BATCH = 51_000, 9_000, 32
MOST_BOUTS = 6


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

    def epoch() -> float:
        began_s = time.perf_counter()
        model.fit(x[:TRAIN], y[:TRAIN], batch_size=BATCH, verbose=0, validation_data=(x[TRAIN:], y[TRAIN:]))
        return time.perf_counter() - began_s

    epoch()
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        print(json.dumps(epoch()), flush=True)


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
    assert told(process) == "ready"
    return process


def told(process: "subprocess.Popen[str]") -> object:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


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
            epochs_s[backend].append(float(str(told(processes[backend]))))
    for process in processes.values():
        process.kill()
    return epochs_s


def main(count: int) -> None:
    from columns import Column, bouts, chosen

    from kerasbench.analysis.cells import HEADLINE
    from kerasbench.analysis.estimates import percentile_interval
    from kerasbench.analysis.ratios import between
    from kerasbench.exchange.requests import Protocol
    from kerasbench.machine.lock import machine_lock

    with machine_lock():
        epochs_s = by_hand(count)
        (selected, *_) = chosen("mnist_dense")
        found = bouts([Column(name, selected, name) for name in BACKENDS], MOST_BOUTS, Protocol())
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
