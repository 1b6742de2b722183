"""Goes wrong in another way in each workload, mostly while the model is built."""

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

import base
import keras

from kerasbench import Workload

GOLDEN = Path(__file__).parents[1] / "golden" / "recorded.json"
PART_BYTES, PARTS = 64 << 20, 40  # 2.5 GiB in all, should nobody stop it


class Broken(keras.layers.Layer):
    def call(self, x, training=None):
        if training:
            raise ArithmeticError("only in training")
        return x


def raises_in_fit():
    return base.model(keras.layers.Dense(2), Broken())


def segfaults():
    ctypes.string_at(0)


def is_killed():
    print("\x1b[31mgood\x1b[0m | <b>bye</b>", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGKILL)


def eats_memory():
    eaten = []
    for _ in range(PARTS):
        eaten.append(b"x" * PART_BYTES)
        time.sleep(0.1)


def forges_a_measurement():
    """Find the pipe, write the measurement of another trial to it, and leave as a trial does."""
    (first, *_) = json.loads(GOLDEN.read_text())["trials"]
    os.write(int(sys.argv[1]), json.dumps({"measurement": first["measurement"]}).encode() + b"\n")
    os._exit(0)


def uses_another_framework():
    import torch

    return torch.nn.Linear(4, 2)


WAYS = (raises_in_fit, segfaults, is_killed, eats_memory, forges_a_measurement, uses_another_framework)
BY_NAME = {way.__name__: way for way in WAYS}


def build(workload):
    return BY_NAME[workload.name]()


spoiled = base.scenario(build=build, workloads=tuple(Workload(train=320, batch=16, name=name) for name in BY_NAME))
