"""What a training step is made of: the same step fed from arrays, fed with what lies ready, and by itself.

All three in one process and in turn, so that a machine which drifts hits them alike. Imported only after keras.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import keras

from kerasbench.backends import Backend
from kerasbench.exchange.measurement import Block, Parts
from kerasbench.exchange.requests import Protocol
from kerasbench.worker.trial.blocks import BlockClock
from kerasbench.worker.trial.feed import Feed
from kerasbench.worker.trial.window import StepWindow, measure_sync_ns

TURNS = 5
BLOCKS_PER_TURN = 2
ENDLESS = 1_000_000
# A product of this duration is long enough for its clock and for every core; the largest is 4 GiB in float32.
PEAK_PRODUCT_S = 0.05
PEAK_SMALLEST, PEAK_LARGEST = 256, 16_384
PEAK_REPEATS = 5


def measure(model: Any, feed: Feed, backend: Backend, protocol: Protocol, steps_per_block: int) -> Parts:
    """Return blocks of the step in each of the three ways, and the peak of matrix products on the device.

    ``steps_per_block`` is what the steps' phase calibrated. The regime's epochs have blocks of steps.
    """
    batch = feed.inputs(feed.train[: feed.batch]), _targets(feed)
    on_device = backend.on_device(batch)
    bare = backend.bare_steps(model, on_device)
    frozen = dataclasses.replace(
        protocol, blocks=BLOCKS_PER_TURN, steps_per_block=steps_per_block, warmup_blocks=1, kind="steady"
    )
    full_steps = len(feed.train) // feed.batch
    arrays, ready, by_itself = list[Block](), list[Block](), list[Block]()
    bare(1)  # traced and compiled before it is timed
    for _ in range(TURNS):
        arrays += _fit(model, feed.arguments(feed.train[: full_steps * feed.batch]), frozen, full_steps, backend)
        ready += _fit(model, backend.ready(on_device, full_steps), frozen, full_steps, backend)
        by_itself += [_timed(bare, steps_per_block) for _ in range(1 + BLOCKS_PER_TURN)][1:]
    return Parts(arrays, ready, by_itself, peak_flops())


def _targets(feed: Feed) -> Any:
    """Return the targets of the first batch as the model takes them, through the regime's pipeline where it has one."""
    rows = feed.train[: feed.batch]
    return rows.y if feed.regime.feed is None else feed.regime.feed(rows.x, rows.y, len(rows))[0][1]


def _fit(model: Any, given: dict[str, Any], protocol: Protocol, full_steps: int, backend: Backend) -> list[Block]:
    clock = BlockClock(protocol, full_steps, measure_sync_ns(backend.synchronize, model))
    model.fit(**given, verbose=0, epochs=ENDLESS, callbacks=[StepWindow(clock, backend.synchronize)])
    return clock.blocks


def _timed(bare: Callable[[int], None], steps: int) -> Block:
    start_ns = time.perf_counter_ns()
    bare(steps)
    return Block(steps, time.perf_counter_ns() - start_ns)


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
