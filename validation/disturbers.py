"""Things that disturb a measurement, each a process of its own, for ``holds.py``.

python validation/disturbers.py one-core       until it is ended, or whoever started it has gone
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MIB = 1 << 20
MANY_BYTES = 256 * MIB  # more than any cache holds
TICK_S = 0.05


def spin(seconds: float) -> None:
    """Keep one processor busy."""
    until_s = time.perf_counter() + seconds
    while time.perf_counter() < until_s:
        pass


def always() -> None:
    spin(TICK_S)


def bursts() -> None:
    """Be busy for 20 ms in every 100."""
    spin(0.02)
    time.sleep(0.08)


def one_second_in_five() -> None:
    spin(1)
    time.sleep(4)


def niced() -> None:
    os.nice(19 - os.nice(0))
    always()


def memory() -> None:
    """Copy more bytes than a cache holds, over and over."""
    import numpy as np

    source = np.ones(MANY_BYTES // 8)
    target = np.empty_like(source)
    until_s = time.perf_counter() + 10
    while time.perf_counter() < until_s:
        np.copyto(target, source)


def disk() -> None:
    """Write a file and have it reach the disk."""
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(64):
            file.write(os.urandom(MIB))
            file.flush()
            os.fsync(file.fileno())


def training() -> None:
    """Train another model, on all processors."""
    os.environ |= {"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    import keras
    import numpy as np

    x, y = np.random.rand(4096, 32, 32, 3).astype("float32"), np.random.randint(0, 10, 4096)
    layers = [keras.layers.Conv2D(32, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(10)]
    model = keras.Sequential([keras.Input((32, 32, 3)), *layers])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    parent = os.getppid()
    while os.getppid() == parent:
        model.fit(x, y, verbose=0)


HALF = max(1, (os.cpu_count() or 2) // 2)
KINDS: dict[str, tuple[int, Callable[[], None]]] = {  # how many processes, and what each does over and over
    "one-core": (1, always),
    "half-the-cores": (HALF, always),
    "bursts": (1, bursts),
    "one-second-in-five": (1, one_second_in_five),
    "memory": (1, memory),
    "disk": (1, disk),
    "training": (1, training),
    "niced": (1, niced),
}


def go_on(act: Callable[[], None], parent: int) -> None:
    """Do it until whoever asked for it has gone."""
    while os.getppid() == parent:
        act()


@contextmanager
def disturbed(count: int, act: Callable[[], None]) -> Iterator[None]:
    """Have so many processes do it meanwhile."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=go_on, args=(act, os.getpid()), daemon=True) for _ in range(count)]
    for one in others:
        one.start()
    try:
        yield
    finally:
        for one in others:
            one.kill()


def main(kind: str) -> None:
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with disturbed(*KINDS[kind]):
        while os.getppid() == parent:
            time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1])
