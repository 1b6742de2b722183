"""What does Keras' progress bar cost? ``fit`` with ``verbose=1`` against ``verbose=0``, by Keras alone.

    python validation/progress_bar.py 20

One process for each model and backend trains in pairs of calls, one with the bar and one without, in an order that is
drawn again each time. So both meet the same machine, and only their ratio is printed. The bar is written to nowhere:
what a terminal or a notebook takes to draw it comes on top. torch has one thread, or a busy machine would decide.
"""

import contextlib
import json
import os
import random
import runpy
import statistics
import subprocess
import sys
import time
from pathlib import Path

import medians

from kerasbench.host.lock import machine_lock
from kerasbench.worker.failure import refuse_other_frameworks

ROOT = Path(__file__).parents[1]
MODELS = {"iris_mlp": (112, 112, 10), "mnist_dense": (8_000, 32, 1)}  # rows, a batch, epochs of a call
BACKENDS = ("jax", "tensorflow", "torch")


def main(pairs: int) -> None:
    with machine_lock():
        for name in MODELS:
            for backend in BACKENDS:
                found = in_child(name, backend, pairs)
                low, high = medians.interval(found)
                print(f"{name} {backend}: {statistics.median(found):.2f} times ({low:.2f} to {high:.2f})", flush=True)


def in_child(name: str, backend: str, pairs: int) -> list[float]:
    environment = {
        "KERAS_BACKEND": backend,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMP_NUM_THREADS": "1",
    }
    child = [sys.executable, __file__, str(pairs), name, backend]
    done = subprocess.run(child, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(ratio) for ratio in json.loads(done.stdout.splitlines()[-1])]


def ratios(name: str, pairs: int) -> list[float]:
    """Return for each pair the time with the bar over that without; the first pair, which compiles, is left out."""
    import numpy as np

    rows, batch, epochs = MODELS[name]
    scenario = runpy.run_path(str(ROOT / "scenarios" / f"{name}.py"))["scenario"]
    x, y = scenario.data.rows("synthetic", rows, np.random.default_rng(0))
    model = scenario.build(scenario.workloads[0])

    def taken_s(verbose: int) -> float:
        began_s = time.perf_counter()
        model.fit(x, y, batch_size=batch, epochs=epochs, verbose=verbose)
        return time.perf_counter() - began_s

    found: list[float] = []
    for _ in range(pairs + 1):
        taken: dict[int, float] = {verbose: taken_s(verbose) for verbose in random.sample((0, 1), 2)}
        found.append(taken[1] / taken[0])
    return found[1:]


def child(pairs: int, name: str, backend: str) -> None:
    refuse_other_frameworks(backend)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        found = ratios(name, pairs)
    print(json.dumps(found))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        child(int(sys.argv[1]), sys.argv[2], sys.argv[3])
    else:
        main(int(sys.argv[1]))
