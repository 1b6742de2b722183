"""Do steps that wait for a planted feed, and feeds by themselves, read what a plain loop over them takes?

    python validation/feeds.py                                three turns on every backend
    python validation/feeds.py --backend jax --turns 1 --quick  whether it runs

A training script with a planted PyDataset first loops over it by itself, and then calls `fit`: items that sleep 2 ms,
and items that compute for 2 ms, 32 in a batch. A step has little else to do, so it reads as much, within 3 %. Feeds of
mnist_dense, and of batches of 10 MB, take turns with a script that loops, as Keras does, over what their printed lines
make: a batch from a feed alone reads as much, within 2 %.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kerasbench.runners.feeders import to_paste

PLANTED, ALONE = 0.03, 0.02
ITEMS = {"sleep": "time.sleep(0.002)", "compute": "compute()"}
SCRIPT = """\
import statistics, sys, time
import keras
import numpy as np

def compute():
    until = time.thread_time_ns() + 2_000_000
    while time.thread_time_ns() < until:
        pass

class Slow(keras.utils.PyDataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        for _ in range(32):
            {item}
        return np.ones((32, 4), "float32"), np.ones((32, 1), "float32")

def batch_ms(batches=Slow()):
    began = time.perf_counter()
    for index in range(10):
        batches[index]
    return (time.perf_counter() - began) * 100

with open(sys.argv[1], "a") as file:
    print(statistics.median([batch_ms() for _ in range(3)]), file=file)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(Slow(), epochs=2)
"""
SCENARIO = """\
import keras
import numpy as np
from kerasbench import Scenario, Workload

def build(workload):
    model = keras.Sequential([keras.layers.Input(({width},)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-7), "mse")  # 81,920 inputs of about a half
    return model

def data(samples, rng):
    return rng.random((samples, {width}), "float32"), rng.random((samples, 1), "float32")

scenario = Scenario(build=build, data=data, workloads=(Workload(name="default", train={rows}, batch=32, epochs=1),))
"""
LOOP = """\
import statistics, time
import keras
import numpy as np
from kerasbench import backends, private

x, y, batch_size = np.random.rand({rows}, {width}).astype("float32"), np.random.rand({rows}, 1).astype("float32"), 32
{lines}
adapter = private.ADAPTER.find()(batches)  # as Keras takes them
def epoch_of():
    adapter.on_epoch_begin()
    yield from getattr(adapter, backends.get(keras.backend.backend()).ITERATOR)()
    adapter.on_epoch_end()
def batch_ms():
    epoch, count = epoch_of(), {rows} // 32 - 21
    for _ in range(20):
        next(epoch)
    began = time.perf_counter()
    for _ in range(count):
        next(epoch)
    took_ms = (time.perf_counter() - began) * 1000
    for _ in epoch:  # to its end: an adapter begins no epoch before it has ended the last one
        pass
    return took_ms / count
print(statistics.median([batch_ms() for _ in range(9)]))
"""
SHAPES = {"narrow": (784, 6_400), "10 MB": (81_920, 1_280)}  # numbers of a sample, and samples
FEEDS = ("tf.data", "dataloader", "pydataset")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", nargs="*", default=["tensorflow", "torch", "jax"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    more = ["--quick"] if chosen.quick else []
    with tempfile.TemporaryDirectory() as scratch:
        readings = dict[tuple[str, ...], tuple[float, float]]()
        for backend in chosen.backend:
            for item in ITEMS:
                readings[backend, item] = planted(Path(scratch), backend, item, chosen.turns, more)
            for shape in SHAPES:
                for feed, pair in alone(Path(scratch), backend, shape, chosen.turns, more).items():
                    readings[backend, shape, feed] = pair
    worst = 0.0
    for name, (read_ms, loop_ms) in readings.items():
        ratio, bound = read_ms / loop_ms, ALONE if len(name) > 2 else PLANTED
        worst = max(worst, abs(ratio - 1) / bound)
        print(f"{', '.join(name)}: reads {read_ms:.4g} ms, a loop takes {loop_ms:.4g} ms: {ratio:.3f}")
    return int(worst > 1)


def planted(scratch: Path, backend: str, item: str, turns: int, more: list[str]) -> tuple[float, float]:
    """Return what a step reads that waits for such items, and what a loop over a batch of them takes, in ms."""
    script, looped = scratch / f"{item}.py", scratch / f"{backend}-{item}.txt"
    script.write_text(SCRIPT.format(item=ITEMS[item]))
    steps = [
        of_metric(kerasbench(scratch, [str(script), "--backend", backend, *more, "--", str(looped)]), "steady_step_ms")[
            ""
        ]
        for _ in range(turns)
    ]
    return statistics.median(steps), statistics.median(map(float, looped.read_text().split()))


def alone(scratch: Path, backend: str, shape: str, turns: int, more: list[str]) -> dict[str, tuple[float, float]]:
    """Return by feed what a batch of it reads, and what a loop over its printed lines takes, in ms."""
    width, rows = SHAPES[shape]
    scenario = scratch / f"rows_{width}.py"
    scenario.write_text(SCENARIO.format(width=width, rows=rows))
    read = dict[str, list[float]]()
    looped = dict[str, list[float]]()
    for _ in range(turns):
        words = ["--scenario", str(scenario), "--backend", backend, "--feed", ",".join(FEEDS), *more]
        for feed, ms in of_metric(kerasbench(scratch, words), "feed_batch_ms").items():
            read.setdefault(feed, []).append(ms)
        for feed in FEEDS:
            script = scratch / "loop.py"
            script.write_text(LOOP.format(width=width, rows=rows, lines="\n".join(to_paste(feed))))
            told = subprocess.run(
                [sys.executable, script],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1"},
            )
            looped.setdefault(feed, []).append(float(told.stdout.split()[-1]))
    return {feed: (statistics.median(read.get(feed, [math.nan])), statistics.median(looped[feed])) for feed in FEEDS}


def kerasbench(scratch: Path, words: list[str]) -> dict[str, Any]:
    own = words.index("--") if "--" in words else len(words)
    words = [*words[:own], "--json", "--wait", "--results", str(scratch / "results"), *words[own:]]
    told = subprocess.run([sys.executable, "-m", "kerasbench", "run", *words], check=True, stdout=subprocess.PIPE)
    document: dict[str, Any] = json.loads(told.stdout)
    return document


def of_metric(document: dict[str, Any], metric: str) -> dict[str, float]:
    """Return a metric by feed; that of what has none is under the empty one."""
    results = [result for result in document["results"] if result["metric"] == metric]
    return {result["configuration"]["options"].get("feed", ""): result["value"] for result in results}


if __name__ == "__main__":
    sys.exit(main())
