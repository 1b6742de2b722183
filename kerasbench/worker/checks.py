"""Proof that a trial ran as requested: on the device, with the options, and computing what other backends compute.

- Cards and processors: which of them the process can see and may use.
- Configuration: what was in force, against the options.
- Placement: where weights, optimizer state and outputs live.
- Parity: whether all ways to predict give the same.
"""

import ctypes
import itertools
import math
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kerasbench.protocol.columns import CPU, CUDA, Device, Malloc, Options, has_glibc
from kerasbench.protocol.measurement import Proof, Resolved, Usage
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners import Runner
from kerasbench.runners.inputs import leaves
from kerasbench.runners.layers import can_be_silenced
from kerasbench.text import format_ranges, parse_ranges

CUDA_LIBRARY = "libcuda.so.1"  # of the driver; a framework that uses CUDA has loaded it
CPUS = Path("/sys/devices/system/cpu")

THREADS_TOLERANCE = 0.1  # of a processor: the clock's own thread and the parent's watcher

MALLINFO = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")

# How far an output may lie from that of another way to predict, as a share of the largest: what compiles otherwise sums
# in another order, and rounds otherwise.
CALLED_FULL, CALLED_ROUNDED, TINY = 1e-3, 1e-1, 1e-6
REPEATED = 1e-5  # by one program on one CPU, which differs by less from one run to the next
OUTPUT_NUMBERS = 64  # of each output: enough to see another computation, few enough to be kept


class _Mallinfo(ctypes.Structure):  # malloc.h
    _fields_ = tuple((name, ctypes.c_int) for name in MALLINFO)


def visible_cards(device: Device) -> list[str]:
    """Return the UUIDs of the cards that CUDA shows to this process, in the order of its numbers; of CUDA's device.

    The driver itself is asked, so the answer is the same for every framework. A part of a card (MIG) has a UUID of its
    own. The prefixes of NVML (``GPU-``, ``MIG-``) are left out. Empty without a driver, or if it does not answer.
    """
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


def limit_processors(count: int, root: Path = CPUS) -> None:
    """Keep this process on ``count`` processors, each a core of its own while there are any; Linux alone can do it.

    The two threads of a core share its units for computing. Their numbers may be neighbours (0 and 1), or lie half the
    machine apart (0 and 64).
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    # The first thread of every core comes before the second thread of any.
    thread = {cpu: sum(sibling < cpu for sibling in siblings(cpu, root) & allowed) for cpu in allowed}
    os.sched_setaffinity(0, sorted(allowed, key=lambda cpu: (thread[cpu], cpu))[:count])


def siblings(cpu: int, root: Path = CPUS) -> set[int]:
    """Return all processors of a processor's core; that one alone where the kernel does not say."""
    try:
        return {cpu} | parse_ranges((root / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text("ascii"))
    except (OSError, ValueError):
        return {cpu}


def of_process() -> dict[str, Any]:
    """Return the fields of ``Resolved`` that no runner knows.

    The allocator keeps what is freed if glibc has mapped nothing by itself, as it does with what is large.
    """
    malloc: Malloc | None = None
    if has_glibc():
        ask = ctypes.CDLL(None).mallinfo
        ask.restype = _Mallinfo
        malloc = None if ask().hblks else "keep"
    processors = format_ranges(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ""
    return {"processors": processors, "malloc": malloc}


def check_options(options: Options, actual: Resolved, usage: Usage) -> None:
    """Raise TrialFailure (unsupported)."""
    for option, wanted, used in differences(options, actual, usage):
        cause = f"asked for {option} {wanted}, but it ran with {used}"
        remedy = f"leave {option} out, or choose another value for this case"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy))


def differences(options: Options, actual: Resolved, usage: Usage) -> Iterator[tuple[str, str, str]]:
    """Yield each option that came out otherwise: its name, the value asked for, the value in force."""
    switch = {None: None, True: "on", False: "off"}
    exact = (
        ("--jit", switch[options.jit], switch[actual.jit]),
        ("--fp32", options.fp32 if options.fp32 in ("tf32", "ieee") else None, actual.fp32),
        ("--steps-per-execution", options.steps_per_execution, actual.steps_per_execution),
        ("--malloc", options.malloc, actual.malloc or "memory that is returned to the system"),
    )
    yield from ((option, str(wanted), str(used)) for option, wanted, used in exact if wanted not in (None, used))
    if options.dtype is not None:
        # The layers have the policy, and real weights its dtype: JAX makes float32 of float64 with a warning.
        computed = options.dtype.removeprefix("mixed_")
        stored = "float32" if options.dtype != computed else computed
        computes = computed in actual.compute_dtypes and stored in actual.weight_dtypes
        if options.dtype != actual.dtype_policy or not computes:
            layers, weights = " and ".join(actual.compute_dtypes), " and ".join(actual.weight_dtypes)
            yield "--dtype", options.dtype, f"{actual.dtype_policy}, layers in {layers}, weights in {weights}"
    if options.threads is not None:
        if actual.threads is not None and actual.threads != options.threads:
            yield "--threads", str(options.threads), f"{actual.threads} threads"
        elif usage.processors > options.threads + THREADS_TOLERANCE:
            yield "--threads", str(options.threads), f"{usage.processors:.1f} CPU cores busy"
    if options.warm_cache and actual.cached == 0:
        yield "--warm-cache", "on", "nothing that an earlier process had compiled"


def check_device(device: Device, proof: Proof) -> None:
    """Raise TrialFailure (wrong-device). Which of several NVIDIA cards it was, only the parent can check."""
    wanted, cause = f"{device.platform}:{device.index}", ""
    for part in ("weights", "optimizer", "output", "runtime"):
        strays = [place for place in getattr(proof, part) if place.startswith(CPU) != (device.platform == CPU)]
        if strays:
            cause = f"asked for {wanted}, but found {part} on {', '.join(strays)}"
            break
    else:
        if device.platform != CPU and len(proof.runtime) > 1:
            cause = f"asked for {wanted} alone, but the process sees {', '.join(proof.runtime)}"
        elif len(proof.cards) > 1:
            cause = f"asked for {wanted} alone, but CUDA shows {', '.join(proof.cards)}"
    if cause:
        raise TrialFailure(Failure(Code.WRONG_DEVICE, cause, f"--device {CPU}, to measure the CPU"))


def require_equal(way: str, outputs: Any, expected: Any, runner: Runner) -> None:
    """Raise TrialFailure (parity) where one way to predict gives something else than ``predict_on_batch``."""
    bound = rounding(runner)
    for (name, array), (_, tensor) in zip(leaves(expected, "output"), leaves(outputs), strict=True):
        apart, largest = _apart(array, runner.to_numpy(tensor))
        if not apart <= bound * largest:
            cause = f"{name} of {way} lies {apart:.2g} from that of predict_on_batch, with the same weights and samples"
            remedy = "look for a layer that computes something else when it is called"
            raise TrialFailure(Failure(Code.PARITY, cause, remedy))


def rounding(runner: Runner) -> float:
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


def sample_outputs(runner: Runner) -> list[list[float]]:
    """Return some numbers of each output of the first batch, evenly spread, by a model that was not trained here.

    None of a model that predicts at random, by a layer of its own or by dropout that is always on: backends draw
    different numbers.
    """
    feed, bound = runner.feed, rounding(runner)
    if runner.request.device.kind == CPU and bound == CALLED_FULL:
        bound = REPEATED
    x, predict = feed.inputs(feed.first_batch), runner.predictor(feed.predict_batch)
    outputs, again = predict(x), predict(x)
    if draws(outputs, again, bound) or not can_be_silenced(runner.layers):
        return []
    return [_sample(name, array.reshape(-1)) for name, array in leaves(outputs, "output")]


def _sample(name: str, flat: Any) -> list[float]:
    size = len(flat)
    # A stride that has no factor in common with any dimension comes past every column.
    stride = next(step for step in itertools.count(size // OUTPUT_NUMBERS + 1) if math.gcd(step, size) == 1)
    numbers = [float(flat[index * stride % size]) for index in range(min(OUTPUT_NUMBERS, size))]
    if not all(map(math.isfinite, numbers)):
        cause = f"{name} has numbers that are not finite"
        raise TrialFailure(Failure(Code.NONFINITE, cause, "samples of your own, by kerasbench.run(model, data=...)"))
    return numbers
