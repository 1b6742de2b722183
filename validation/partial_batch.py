"""Does a step take longer in an epoch whose last batch is a partial one? Plain Keras, without kerasbench.

    python validation/partial_batch.py tensorflow jax --pairs 20

kerasbench measures steps inside an epoch of whole batches; most published epochs end with a partial one. With it,
``fit`` on TensorFlow traces a step for batches of any size. Each backend has a process of its own. It trains two models
of a scenario, one on rows of whole batches and one on half a batch more, in turns. Printed is the time of a step, from
the tenth to the fifth from the end, with half a batch more over that without: the geometric mean over pairs, with
Student's t interval.
"""

import argparse
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kerasbench.analysis.estimates import estimate
from kerasbench.host.lock import machine_lock

ROOT = Path(__file__).parents[1]
STEPS = {"cifar10_cnn": 60, "cifar10_mlp": 120, "mnist_dense": 200}
FIRST, LAST = 10, 5  # steps at the beginning and at the end that are not timed


def main(backends: list[str], pairs: int) -> None:
    with machine_lock():
        for backend in backends:
            chosen = {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
            child = [sys.executable, __file__, backend, "--pairs", str(pairs), "--child"]
            subprocess.run(child, env=os.environ | chosen, check=True)


def in_child(backend: str, pairs: int) -> None:
    for name in STEPS:
        found = estimate(in_pairs(name, pairs))
        print(f"{backend} {name}: {found.value:.3f} ({found.low:.3f} to {found.high:.3f})", flush=True)


def in_pairs(name: str, pairs: int) -> list[float]:
    """Return the time of a step with a partial batch over that without, for each pair but the first, which compiles."""
    import keras
    import numpy as np

    scenario = runpy.run_path(str(ROOT / "scenarios" / f"{name}.py"))["scenario"]
    workload, steps = scenario.workloads[0], STEPS[name]
    whole = steps * workload.batch
    x, y = scenario.data.rows("synthetic", whole + workload.batch // 2, np.random.default_rng(0))

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        began = step_ns = 0.0

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if batch == FIRST:
                self.began = time.perf_counter_ns()
            elif batch == steps - LAST:
                self.step_ns = (time.perf_counter_ns() - self.began) / (steps - LAST - FIRST)

    def step_ns(model: Any, rows: int) -> float:
        clock = Clock()
        model.fit(x[:rows], y[:rows], batch_size=workload.batch, verbose=0, callbacks=[clock])
        return clock.step_ns

    models = [(scenario.build(workload), rows) for rows in (len(x), whole)]
    ratios = []
    for index in range(pairs + 1):
        times = {rows: step_ns(model, rows) for model, rows in (models if index % 2 else models[::-1])}
        ratios.append(times[len(x)] / times[whole])
    return ratios[1:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backends", nargs="+")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        in_child(asked.backends[0], asked.pairs)
    else:
        main(asked.backends, asked.pairs)
