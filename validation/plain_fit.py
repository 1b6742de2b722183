"""Ratios of backends by plain ``fit``, without kerasbench: what others would measure, and how far blocks are off.

    python validation/plain_fit.py 12            twelve blocks of mnist_dense, and two epochs by hand before each

One process for each backend has a long `fit` (in_turns.py). They run 200 steps of it in turn, in an order that is drawn
again each time. An epoch's first turn holds its start, its last one the validation; those between are steps alone.
A block of kerasbench follows every two epochs, so that both ways meet the same hour. Printed are both ways' steps and
epochs, and their ratios with their intervals.
"""

import json
import math
import os
import random
import statistics
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import medians
from columns import Column, blocks, chosen
from in_turns import STEPS_OF_TURN, TURNS

from kerasbench.analysis.cases import HEADLINE, STEADY, Measured
from kerasbench.analysis.ratios import estimate_ratio
from kerasbench.host.lock import machine_lock
from kerasbench.protocol.requests import TrialPlan

BACKENDS = ("jax", "tensorflow", "torch")
CHILD = Path(__file__).with_name("in_turns.py")
EPOCHS = 2  # before each block


def started(backend: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [sys.executable, CHILD],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def turn_s(process: "subprocess.Popen[str]") -> float:
    """Let a process have a turn and return how long it took, in s."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(json.loads(process.stdout.readline()))


def train_epoch(processes: "dict[str, subprocess.Popen[str]]", epochs: dict[str, list[list[float]]]) -> None:
    """Train an epoch on each backend, in turn; add its turns, in s."""
    for turns in epochs.values():
        turns.append([])
    for _ in range(TURNS):
        for backend in random.sample(BACKENDS, len(BACKENDS)):
            epochs[backend][-1].append(turn_s(processes[backend]))


def steps_ms(epochs: list[list[float]]) -> list[float]:
    return [1e3 * turn / STEPS_OF_TURN for turns in epochs for turn in turns[1:-1]]


def epochs_s(epochs: list[list[float]]) -> list[float]:
    return [math.fsum(turns) for turns in epochs]


def starts_s(epochs: list[list[float]]) -> list[float]:
    """Return how long each epoch's start takes: its first turn less its next one."""
    return [turns[0] - turns[1] for turns in epochs]


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def compare(what: str, by_hand: dict[str, list[float]], found: dict[str, Measured], shown: str, metric: str) -> None:
    """Print a quantity of each backend by hand and in blocks, and the ratios of each two."""
    for name in BACKENDS:
        in_blocks = found[name].values(shown)
        print(f"{what} of {name}: {spread(by_hand[name])} by hand, {spread(in_blocks)} in blocks", flush=True)
    for a, b in combinations(BACKENDS, 2):
        pairs = sorted(math.log(one / other) for one, other in zip(by_hand[a], by_hand[b], strict=True))
        hand = math.exp(statistics.median(pairs))
        low, high = (math.exp(one) for one in medians.interval(pairs))
        ratio = estimate_ratio(found[a], found[b], metric)
        assert ratio is not None and ratio.low is not None and ratio.high is not None
        print(
            f"{what}, {a} / {b}: by hand {hand:.4f} [{low:.4f}, {high:.4f}], in blocks {ratio.value:.4f} "
            f"[{ratio.low:.4f}, {ratio.high:.4f}], blocks over hand {ratio.value / hand:.3f}",
            flush=True,
        )


def main(count: int) -> None:
    processes = {backend: started(backend) for backend in BACKENDS}
    hand: dict[str, list[list[float]]] = {backend: [] for backend in BACKENDS}

    def before_a_block() -> None:
        for _ in range(EPOCHS):
            train_epoch(processes, hand)

    try:
        with machine_lock():
            train_epoch(processes, {backend: [] for backend in BACKENDS})  # a warm-up
            (selected, *_) = chosen("mnist_dense")
            columns = [Column(name, selected, name) for name in BACKENDS]
            found = blocks(columns, count, TrialPlan(), before=before_a_block)
    finally:
        for process in processes.values():
            process.kill()
    compare("step in ms", {name: steps_ms(hand[name]) for name in BACKENDS}, found, STEADY, STEADY)
    compare("epoch in s", {name: epochs_s(hand[name]) for name in BACKENDS}, found, "epoch_s", HEADLINE)
    for name in BACKENDS:
        print(f"an epoch's start of {name}: {spread(starts_s(hand[name]))} s by hand")


if __name__ == "__main__":
    main(int(sys.argv[1]))
