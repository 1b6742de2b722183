"""Proof that a trial ran as requested: on the device, with the options, and computing what other backends compute."""

import ctypes
import itertools
import math
import os
import uuid
from typing import Any

import numpy as np

from kerasbench import variants
from kerasbench.protocol.columns import CPU, CUDA, Device, Options, has_glibc
from kerasbench.protocol.measurement import Proof, Resolved, Usage
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners import Predictor
from kerasbench.runners.inputs import leaves
from kerasbench.runners.layers import can_be_silenced
from kerasbench.runners.trainer import Trainer
from kerasbench.sources.rows import names_of_loss
from kerasbench.text import format_ranges

CUDA_LIBRARY = "libcuda.so.1"  # of the driver; a framework that uses CUDA has loaded it

# How far an output may lie from that of another way to predict, as a share of the largest: what compiles otherwise sums
# in another order, and rounds otherwise.
CALLED_FULL, CALLED_ROUNDED, TINY = 1e-3, 1e-1, 1e-6
REPEATED = 1e-5  # by one program on one CPU, which differs by less from one run to the next
CLIPPED = 1e-6  # of a probability: Keras clips those below 1e-7, and float32 has none between 1 - 6e-8 and 1
OUTPUT_NUMBERS = 64  # of each output: enough to see another computation, few enough to be kept


class _Mallinfo(ctypes.Structure):  # malloc.h
    _fields_ = (("before", 3 * ctypes.c_int), ("hblks", ctypes.c_int), ("after", 6 * ctypes.c_int))


def visible_cards(device: Device) -> list[str]:
    """Return the UUIDs (without NVML's prefixes) of cards, or parts of them, that CUDA's driver shows, in its order."""
    if device.platform != CUDA:
        return []
    try:
        driver = ctypes.CDLL(CUDA_LIBRARY)
        _call(driver.cuInit, 0)
        count = ctypes.c_int()
        _call(driver.cuDeviceGetCount, ctypes.byref(count))
        cards = []
        for number in range(count.value):
            handle, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
            _call(driver.cuDeviceGet, ctypes.byref(handle), number)
            _call(driver.cuDeviceGetUuid_v2, ctypes.byref(raw), handle)  # the first version knows no parts of cards
            if not any(raw):  # nothing but zeros is no answer
                return []
            cards.append(str(uuid.UUID(bytes=bytes(raw))))
    except (OSError, AttributeError):  # AttributeError: the driver is older than the function
        return []
    return cards


def _call(function: Any, *arguments: Any) -> None:
    if function(*arguments) != 0:
        raise OSError("the driver returned an error")


def of_process() -> dict[str, Any]:
    """Return the fields of ``Resolved`` that no runner knows."""
    malloc = None
    if has_glibc():
        ask = ctypes.CDLL(None).mallinfo
        ask.restype = _Mallinfo
        malloc = None if ask().hblks else "keep"  # where glibc has mapped nothing by itself, as it does what is large
    processors = format_ranges(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ""
    return {"processors": processors, "malloc": malloc}


def check_options(options: Options, actual: Resolved, usage: Usage) -> None:
    """Raise TrialFailure (unsupported) for a choice that came out otherwise."""
    for variant, value in variants.chosen(options):
        if used := variant.ran_as(value, actual, usage):
            cause = f"asked for --{variant.flag} {variant.word(value)}, but it ran with {used}"
            remedy = f"leave --{variant.flag} out, or choose another value for this case"
            raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy))


def check_device(device: Device, proof: Proof) -> None:
    """Raise TrialFailure (wrong-device). Which of several NVIDIA cards it was, only the parent can check."""
    strays = []
    for part in ("weights", "optimizer", "output", "runtime"):
        places = [place for place in getattr(proof, part) if place.startswith(CPU) != (device.platform == CPU)]
        if places:
            strays.append(f", but found {part} on {', '.join(places)}")
    if device.platform != CPU and len(proof.runtime) > 1:
        strays.append(f" alone, but the process sees {', '.join(proof.runtime)}")
    if len(proof.cards) > 1:
        strays.append(f" alone, but CUDA shows {', '.join(proof.cards)}")
    if strays:
        cause = f"asked for {device.platform}:{device.index}{strays[0]}"
        raise TrialFailure(Failure(Code.WRONG_DEVICE, cause, f"--device {CPU}, to measure the CPU"))


def require_equal(way: str, outputs: Any, expected: Any, runner: Predictor) -> None:
    """Raise TrialFailure (parity) where one way to predict gives something else than ``predict_on_batch``."""
    bound = rounding(runner)
    for (name, array), (_, tensor) in zip(leaves(expected, "output"), leaves(outputs), strict=True):
        apart, largest = _apart(array, runner.to_numpy(tensor))
        if not apart <= bound * largest:
            cause = f"{name} of {way} lies {apart:.2g} from that of predict_on_batch, with the same weights and samples"
            remedy = "look for a layer that computes something else when it is called"
            raise TrialFailure(Failure(Code.PARITY, cause, remedy))


def rounding(runner: Predictor) -> float:
    """Return by what share of the largest two ways to compute the same may differ."""
    return CALLED_FULL if runner.compute_dtypes <= {"float32", "float64"} else CALLED_ROUNDED


def draws(outputs: Any, again: Any, bound: float) -> bool:
    """Tell whether two predictions of the same rows differ by more than that: the model draws random numbers."""
    pairs = zip(leaves(outputs), leaves(again), strict=True)
    distances = (_apart(output, repeated) for (_, output), (_, repeated) in pairs)
    return any(apart > bound * largest for apart, largest in distances)


def _apart(expected: Any, array: Any) -> tuple[float, float]:
    """Return by how much two arrays differ at most, and the largest number of the first."""
    numbers = np.asarray(expected, np.float64)
    apart = float(np.max(np.abs(np.asarray(array, np.float64) - numbers), initial=0.0))
    return apart, max(float(np.max(np.abs(numbers), initial=0.0)), TINY)


def sample_outputs(runner: Trainer) -> list[list[float]]:
    """Return numbers of each output of the first batch, untrained; none if it is random, as backends draw their own."""
    feed, bound = runner.feed, rounding(runner)
    if runner.request.device.kind == CPU and bound == CALLED_FULL:
        bound = REPEATED
    x, predict = feed.inputs(feed.first_batch), runner.predictor(feed.predict_batch)
    outputs, again = predict(x), predict(x)
    if draws(outputs, again, bound) or not can_be_silenced(runner.layers):
        return []
    return numbers_of(outputs)


def numbers_of(outputs: Any) -> list[list[float]]:
    return [_sample(name, array.reshape(-1)) for name, array in leaves(outputs, "output")]


def saturates(runner: Trainer, steps: int) -> bool:
    """Tell whether the loss of these first steps is a cross-entropy of probabilities that clipping changes.

    The answer is by what the untrained model predicts: a trained classifier is often sure of its class, and wrong about
    random rows.
    """
    if not any("crossentropy" in name.replace("_", "").lower() for name in loss_names(runner.model)):
        return False
    feed, predict = runner.feed, runner.predictor(runner.feed.predict_batch)
    rows = feed.train.repeated(steps * feed.batch)
    predictions = (np.asarray(array, np.float64) for _, array in leaves(predict(feed.inputs(rows))))
    return any(
        array.size > 0
        and array.min() >= 0
        and array.max() <= 1
        and (array.min() < CLIPPED or array.max() > 1 - CLIPPED)
        for array in predictions
    )


def loss_names(model: Any) -> list[str]:
    """Return the names of all losses that `compile` was given, of each of their classes, and of its function."""
    return [name for _, loss in leaves(getattr(model, "loss", None)) for name in names_of_loss(loss)]


def _sample(name: str, flat: Any) -> list[float]:
    size = len(flat)
    # A stride that has no factor in common with any dimension comes past every column.
    stride = next(step for step in itertools.count(size // OUTPUT_NUMBERS + 1) if math.gcd(step, size) == 1)
    numbers = [float(flat[index * stride % size]) for index in range(min(OUTPUT_NUMBERS, size))]
    if not all(map(math.isfinite, numbers)):
        cause = f"{name} has numbers that are not finite"
        raise TrialFailure(Failure(Code.NONFINITE, cause, "samples of your own, by kerasbench.run(model, data=...)"))
    return numbers
