"""What a training step is made of: the same step fed from arrays, fed with what lies ready, and by itself.

All three in one process and in turn, so that a machine which drifts hits them alike. Imported only after keras.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import keras

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Parts, Slice, Turn
from kerasbench.worker.clock import Ask, Pace, SliceClock, WarmUpClock, granted, measured
from kerasbench.worker.feed import Feed
from kerasbench.worker.train import StepWindow

ENDLESS = 1_000_000
# A product of this duration is long enough for its clock and for every core; the largest is 4 GiB in float32.
PEAK_PRODUCT_S = 0.05
PEAK_SMALLEST, PEAK_LARGEST = 256, 16_384
PEAK_REPEATS = 5


def measure(model: Any, feed: Feed, backend: Backend, pace: Pace, ask: Ask) -> Parts:
    """Return slices of the step in each of the three ways, and the peak of matrix products on the device.

    The pace has the steps of a slice, which the steps' phase calibrated, and the workload's epochs have room for them.
    A slice has a slice of each of the three ways, another one first in each cycle. What is said of it is their sum.
    """
    in_slice, full_steps = pace.protocol.steps_per_slice or 1, len(feed.train) // feed.batch
    on_device = backend.on_device(feed.step(feed.train[: feed.batch]))
    bare = backend.bare_steps(model, on_device)
    kept: tuple[list[Slice], list[Slice], list[Slice]] = ([], [], [])

    def from_arrays(turn: Turn) -> Slice:
        return _fit(model, feed.training_arguments(feed.train[: full_steps * feed.batch]), full_steps, pace, turn)

    def from_ready(turn: Turn) -> Slice:
        return _fit(model, backend.ready(on_device, full_steps), full_steps, pace, turn)

    def by_itself(turn: Turn) -> Slice:
        return _timed(bare, in_slice, pace, turn)

    def slice_of_all(turn: Turn) -> Slice:
        ways = list(zip(kept, (from_arrays, from_ready, by_itself), strict=True))
        first = turn.cycle % len(ways)
        for slices, way in ways[first:] + ways[:first]:
            slices.append(way(turn))
        return _sum([slices[-1] for slices in kept], turn)

    bare(1)  # traced and compiled before it is timed
    measured(ask, slice_of_all)
    return Parts(*kept, peak_flops())


def _fit(model: Any, given: dict[str, Any], full_steps: int, pace: Pace, turn: Turn) -> Slice:
    """Return a slice of one `fit`, after a slice that warms up."""
    warmed = dataclasses.replace(pace.protocol, warmup_slices=1)
    clock = SliceClock(WarmUpClock(warmed, full_steps, 0), pace, alone=True)
    window = StepWindow(clock, pace, granted(1, turn))
    model.fit(**given, verbose=0, epochs=ENDLESS, callbacks=[window])
    (slice_,) = clock.slices
    return slice_


def _timed(bare: Callable[[int], None], steps: int, pace: Pace, turn: Turn) -> Slice:
    """Return a slice of the step by itself, after one that warms up."""
    bare(steps)
    began = pace.meter.read()
    bare(steps)
    return pace.meter.with_card(pace.meter.read().since(began, steps, turn))


def _sum(slices: list[Slice], turn: Turn) -> Slice:
    count, ns, cpu_ns = (sum(column) for column in zip(*((b.count, b.ns, b.cpu_ns or 0) for b in slices), strict=True))
    return Slice(count, ns, turn.cycle, turn.position, cpu_ns, disturbed=any(slice_.disturbed for slice_ in slices))


def peak_flops() -> float:
    """Return the highest rate of square matrix products on the device, in operations a second.

    In the compute dtype of the policy and the rounding mode that are in force, as a model's own products have them.
    The size doubles until a product takes PEAK_PRODUCT_S; at each size the quickest of several counts, as for a peak.
    """
    dtype = keras.config.dtype_policy().compute_dtype
    best, size = 0.0, PEAK_SMALLEST
    while size <= PEAK_LARGEST:
        a = keras.ops.full((size, size), 1.0 / size, dtype)  # made on the device, whose memory it is to take
        taken_s = min(_product_s(a) for _ in range(PEAK_REPEATS))
        best = max(best, 2 * size**3 / taken_s)
        if taken_s >= PEAK_PRODUCT_S:
            break
        size *= 2
    return best


def _product_s(a: Any) -> float:
    start_ns = time.perf_counter_ns()
    product = keras.ops.matmul(a, a)
    keras.ops.convert_to_numpy(product[0, 0])  # waits for it
    return (time.perf_counter_ns() - start_ns) / 1e9
