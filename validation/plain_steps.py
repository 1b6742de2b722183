"""What subnormal numbers and returned memory cost plain Keras: steps of ``fit``, without kerasbench.

    python validation/plain_steps.py 5 --backend torch cifar10_mlp cifar100_dense     five processes of each kind
    python validation/plain_steps.py 5 --backend jax cifar10_cnn

Each process trains 1,200 steps of a scenario. ``flush``: after torch.set_flush_denormal(True). ``keep``: with the
variables of ``--malloc keep``. Printed are the median of steps 200 to 400 and that of the last 300, over processes with
their lowest and highest, pages of memory that a step took from the system, and which share of the optimizer's numbers
was subnormal in the end.
"""

import argparse
import json
import os
import random
import resource
import runpy
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kerasbench.host.lock import machine_lock
from kerasbench.variants.malloc import KEEPS_MEMORY

ROOT = Path(__file__).parents[1]
STEPS, EARLY = 1_200, (200, 400)
SUBNORMAL = 2.0**-126  # below it, of float32
KINDS = {"torch": ("plain", "flush", "keep", "flush+keep")}


def main(scenarios: list[str], backend: str, processes: int) -> None:
    kinds = KINDS.get(backend, ("plain", "keep"))
    with machine_lock():
        for name in scenarios:
            found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
            for _ in range(processes):
                for kind in random.sample(kinds, len(kinds)):
                    found[kind].append(in_child(name, backend, kind))
            for kind, ran in found.items():
                early, late, pages = (spread([one[key] for one in ran]) for key in ("early_ms", "late_ms", "pages"))
                share = statistics.median(one["subnormal"] for one in ran)
                print(
                    f"{name} {backend} {kind}: {early} ms, late {late} ms, {pages} pages, {share:.0%} subnormal",
                    flush=True,
                )


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def in_child(name: str, backend: str, kind: str) -> dict[str, float]:
    chosen = {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    chosen |= KEEPS_MEMORY if "keep" in kind else {}
    child = [sys.executable, __file__, "--child", kind, "1", name]
    done = subprocess.run(child, env=os.environ | chosen, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def steps(name: str, kind: str) -> dict[str, float]:
    import keras
    import numpy as np

    if "flush" in kind:
        import torch

        torch.set_flush_denormal(True)
    scenario = runpy.run_path(str(ROOT / "scenarios" / f"{name}.py"))["scenario"]
    workload = scenario.workloads[0]
    keras.utils.set_random_seed(0)
    x, y = scenario.data.rows("synthetic", 200 * workload.batch, np.random.default_rng(0))

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        """Notes the time and the page faults so far after each step, as it has been computed."""

        def __init__(self) -> None:
            super().__init__()
            self.ends: list[float] = []
            self.faults: list[int] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.ends.append(time.perf_counter())
            self.faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)

    model, clock = scenario.build(workload), Clock()
    model.fit(x, y, batch_size=workload.batch, epochs=STEPS // 200, verbose=0, callbacks=[clock])
    each_ms = 1e3 * np.diff(np.array(clock.ends))
    state = [np.abs(keras.ops.convert_to_numpy(one)) for one in model.optimizer.variables if one.dtype == "float32"]
    numbers = np.concatenate([one.ravel() for one in state])
    return {
        "early_ms": float(np.median(each_ms[slice(*EARLY)])),
        "late_ms": float(np.median(each_ms[-300:])),
        "pages": (clock.faults[-1] - clock.faults[EARLY[0]]) / (STEPS - EARLY[0]),
        "subnormal": float(np.mean((numbers > 0) & (numbers < SUBNORMAL))),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", choices=["plain", "flush", "keep", "flush+keep"])
    parser.add_argument("--backend", default="torch")
    parser.add_argument("processes", type=int)
    parser.add_argument("scenarios", nargs="+")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(steps(given.scenarios[0], given.child)))
    else:
        main(given.scenarios, given.backend, given.processes)
