"""What other processes use of an NVIDIA card, asked of the driver's management library (NVML) itself.

Those count that were on the card before this process first touched it: in a container nobody is told their own number
there, so that whoever comes later cannot be told from this process. Other columns of a bout are stopped meanwhile.
Nobody has seen this on a card yet (docs/gpus.md).
"""

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

from kerasbench.exchange.devices import CUDA, Device

LIBRARY = "libnvidia-ml.so.1"  # of the driver
VISIBLE = "CUDA_VISIBLE_DEVICES"  # has one card, in the order of their bus
SUCCESS = 0
MOST = 1_024  # processes, and samples of them: a second has six of each
LOOK_BACK_US = 1_000_000  # the driver samples six times a second, or once: some slices have no sample of their own

# How much of the card's multiprocessors others may use, by the driver's own samples, before a slice is disturbed.
OF_CARD = 0.05

Share = Callable[[int], float | None]  # of the card: what others used at most in the last so many ns. None: not told


class _Process(ctypes.Structure):  # nvml.h, nvmlProcessInfo_t
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Sample(ctypes.Structure):  # nvml.h, nvmlProcessUtilizationSample_t; percent
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("at_us", ctypes.c_ulonglong),
        ("multiprocessors", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


def untold(_: int) -> float | None:
    """Return nothing: there is no card, or it does not tell."""
    return None


def of(device: Device) -> Share:
    """Return what tells others' use of this process's device; see ``watch``."""
    return watch(os.environ.get(VISIBLE, "")) if device.platform == CUDA else untold


def watch(visible: str, open_library: Callable[[str], Any] = ctypes.CDLL) -> Share:
    """Return what tells others' use of the card that an entry of CUDA_VISIBLE_DEVICES means.

    Call it before a framework touches the card.
    """
    try:
        nvml = open_library(LIBRARY)
        card = _handle(nvml, visible)
        others = None if card is None else _others(nvml, card)
    except (OSError, AttributeError):  # AttributeError: the driver is older than the function
        return untold
    if not others:
        return untold if others is None else lambda ns: 0.0
    samples = (_Sample * MOST)()

    def share(ns: int) -> float | None:
        since_us = time.time_ns() // 1_000 - ns // 1_000 - LOOK_BACK_US
        count = ctypes.c_uint(MOST)
        if nvml.nvmlDeviceGetProcessUtilization(card, samples, ctypes.byref(count), ctypes.c_ulonglong(since_us)):
            return 0.0  # nobody computed
        used: dict[int, int] = {}  # by moment
        for one in samples[: count.value]:
            if one.pid in others and one.at_us >= since_us:
                used[one.at_us] = used.get(one.at_us, 0) + one.multiprocessors
        return max(used.values(), default=0) / 100

    return share


def _handle(nvml: Any, visible: str) -> Any | None:
    """Return the card, by its number or by its UUID; None where it is not told."""
    card = ctypes.c_void_p()
    if nvml.nvmlInit_v2() != SUCCESS:
        return None
    if visible.isdecimal():
        found = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(visible)), ctypes.byref(card))
    else:
        found = nvml.nvmlDeviceGetHandleByUUID(visible.encode(), ctypes.byref(card))
    return card if found == SUCCESS else None


def _others(nvml: Any, card: Any) -> set[int] | None:
    """Return who is on the card: they compute there, or they draw. None: it is not told."""
    found: set[int] = set()
    for ask in (nvml.nvmlDeviceGetComputeRunningProcesses_v3, nvml.nvmlDeviceGetGraphicsRunningProcesses_v3):
        processes, count = (_Process * MOST)(), ctypes.c_uint(MOST)
        if ask(card, ctypes.byref(count), processes) != SUCCESS:
            return None
        found |= {one.pid for one in processes[: count.value]}
    return found
