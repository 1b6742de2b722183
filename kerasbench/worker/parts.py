"""What a step is made of: fed from arrays, fed with a batch that lies ready on the device, and by itself."""

import dataclasses
import time
from typing import Any

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import Parts, Samples, Slice, Turn
from kerasbench.worker.clock import Ask, Pace, SliceClock, WarmUpClock, granted, measure_slices
from kerasbench.worker.feed import Feed

PEAK_PRODUCT_S = 0.05  # long enough for the clock and for every core
PEAK_SIDES = (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)  # the largest takes 4 GiB in float32
PEAK_REPEATS = 5


def measure_parts(model: Any, feed: Feed, callbacks: list[Any], backend: Backend, pace: Pace, ask: Ask) -> Parts:
    """Measure a slice in each way in each turn: a machine which drifts hits them alike. The turn's slice is their sum.

    The pace has the steps of a slice, which the steps' phase calibrated, and the workload's epochs have room for them.
    """
    from kerasbench.worker.train import ENDLESS, StepWindow, each_epoch  # late: it imports Keras

    steps = pace.protocol.steps_per_slice or 1
    full_steps = len(feed.train) // feed.batch
    on_device = backend.on_device(feed.step(feed.train[: feed.batch]))
    bare = backend.bare_steps(model, on_device)
    warmed = dataclasses.replace(pace.protocol, warmup_slices=1)

    def of_fit(arguments: dict[str, Any], turn: Turn) -> Slice:
        warmup = WarmUpClock(warmed, full_steps, 0, steps_per_execution=model.steps_per_execution)
        clock = SliceClock(warmup, pace, alone=True)
        extra = each_epoch(feed, callbacks) if callbacks else {"callbacks": []}
        extra["callbacks"].append(StepWindow(clock, pace, granted(1, turn)))
        model.fit(**(arguments | extra), verbose=0, epochs=ENDLESS)
        (slice_,) = clock.slices
        return slice_

    def by_itself(turn: Turn) -> Slice:
        with bare() as run:
            run(steps)  # warms up
            began = pace.meter.read()
            run(steps)
            return pace.meter.with_card(pace.meter.read().since(began, steps, turn))

    rows = feed.train[: full_steps * feed.batch]
    ways = (
        lambda turn: of_fit(feed.training_arguments(rows), turn),
        lambda turn: of_fit(backend.ready(on_device, full_steps), turn),
        by_itself,
    )
    arrays, ready, alone = slices = (list[Slice](), list[Slice](), list[Slice]())

    def measure(turn: Turn) -> Slice:
        for place in range(len(ways)):
            way = (turn.cycle + place) % len(ways)
            slices[way].append(ways[way](turn))
        return _sum([of_way[-1] for of_way in slices], turn)

    with bare() as run:
        run(1)  # traced and compiled before it is timed
    measure_slices(ask, measure)
    return Parts(Samples.of(arrays), Samples.of(ready), Samples.of(alone), peak_flops())


def _sum(slices: list[Slice], turn: Turn) -> Slice:
    def total(times_ns: list[int | None]) -> int | None:
        told_ns = [ns for ns in times_ns if ns is not None]  # not every system tells
        return sum(told_ns) if told_ns else None

    return Slice(
        count=sum(slice_.count for slice_ in slices),
        ns=sum(slice_.ns for slice_ in slices),
        cycle=turn.cycle,
        position=turn.position,
        cpu_ns=sum(slice_.cpu_ns or 0 for slice_ in slices),
        others_ns=total([slice_.others_ns for slice_ in slices]),
        steal_ns=total([slice_.steal_ns for slice_ in slices]),
        disturbed=any(slice_.disturbed for slice_ in slices),
    )


def peak_flops() -> float:
    """Return the highest rate of square matrix products in the dtype and rounding in force, in operations a second."""
    import keras

    def product_s(a: Any) -> float:
        start_ns = time.perf_counter_ns()
        product = keras.ops.matmul(a, a)
        keras.ops.convert_to_numpy(product[0, 0])  # waits for it
        return (time.perf_counter_ns() - start_ns) / 1e9

    dtype = keras.config.dtype_policy().compute_dtype
    best = 0.0
    for size in PEAK_SIDES:
        a = keras.ops.full((size, size), 1.0 / size, dtype)  # made on the device, whose memory it is to take
        taken_s = min(product_s(a) for _ in range(PEAK_REPEATS))
        best = max(best, 2 * size**3 / taken_s)
        if taken_s >= PEAK_PRODUCT_S:
            break
    return best
