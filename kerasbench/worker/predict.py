"""Prediction: NumPy in, NumPy out. Single batches for latency, whole passes for throughput."""

import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kerasbench.protocol.measurement import Latency, Slice, Slices, Throughput, Turn
from kerasbench.worker.clock import Ask, Pace, measure_slices
from kerasbench.worker.feed import POOL_BYTES, Feed

ROTATED_INPUTS = 8  # different inputs in turn, so that no layer of caching answers


def pilot(model: Any, feed: Feed) -> Callable[[], int]:
    """Predict a batch, which may compile; return what predicts it once more and returns how long that took, in ns."""
    x = feed.inputs(feed.train[: feed.predict_batch])
    model.predict_on_batch(x)

    def again() -> int:
        start_ns = time.perf_counter_ns()
        model.predict_on_batch(x)
        return time.perf_counter_ns() - start_ns

    return again


def time_batches(
    model: Any, feed: Feed, batch: int, pace: Pace, ask: Ask, warmup_calls: int = ROTATED_INPUTS
) -> Latency:
    """Time single calls of `predict_on_batch`, over inputs in rotation. The inputs are prepared beforehand."""
    batch = min(batch, len(feed.train))
    starts = [start % (len(feed.train) - batch + 1) for start in range(0, ROTATED_INPUTS * batch, batch)]
    inputs = itertools.cycle([feed.inputs(feed.train[start : start + batch]) for start in starts])
    calls = Calls(lambda: model.predict_on_batch(next(inputs)), pace)
    calls.warm_up(warmup_calls, pace.protocol.predict_warmup_ns)
    slices = measure_slices(ask, calls.slice)
    return Latency(batch, calls.durations_ns, Slices.of(slices))


def time_passes(model: Any, feed: Feed, pace: Pace, ask: Ask, most_batches: int | None = None) -> Throughput:
    """Time `predict` over the test samples, or over the training samples where the publication had no others.

    At most POOL_BYTES of them: what a pass costs once is small beside that.
    """
    wanted = feed.workload.test or len(feed.evaluated)
    source = feed.test if len(feed.test) else feed.train
    samples = max(1, min(wanted, POOL_BYTES // source.row_bytes))
    if most_batches is not None:
        samples = min(samples, most_batches * feed.predict_batch)
    x = feed.inputs(source.repeated(samples))
    calls = Calls(lambda: model.predict(x, batch_size=feed.predict_batch, verbose=0), pace, least=1)
    calls.warm_up(2)  # the first compiles
    slices = measure_slices(ask, calls.slice)
    return Throughput(samples, feed.predict_batch, calls.durations_ns, Slices.of(slices))


@dataclass
class Calls:
    """Times calls of one kind, each by itself."""

    call: Callable[[], object]
    pace: Pace
    least: int = 2  # calls that a slice discards at least, where they are quick
    durations_ns: list[int] = field(default_factory=list)
    _typical_ns: float = 0.0

    def warm_up(self, calls: int, for_ns: int = 0) -> None:
        """Make so many calls at least, and for so long; the later half of them says how long one takes."""
        warmup_ns: list[int] = []
        began_ns = time.perf_counter_ns()
        while len(warmup_ns) < calls or time.perf_counter_ns() - began_ns < for_ns:
            warmup_ns.append(self._time())
        self._typical_ns = statistics.fmean(warmup_ns[len(warmup_ns) // 2 :])

    def slice(self, turn: Turn) -> Slice:
        """Measure one slice, after ``warm_up``: as many calls as fill it, going by those of the slice before.

        To stop by the clock would favour slices whose last call took long.
        """
        for _ in range(self.pace.discarded(self._typical_ns, self.least)):
            self.call()
        began = self.pace.meter.read()
        calls_ns = [self._time() for _ in range(math.ceil(self.pace.protocol.slice_ns / self._typical_ns))]
        measured = self.pace.meter.with_card(self.pace.meter.read().since(began, len(calls_ns), turn))
        measured = dataclasses.replace(measured, ns=sum(calls_ns))  # without what lies between the calls
        self.durations_ns += calls_ns
        self._typical_ns = measured.unit_ns
        return measured

    def _time(self) -> int:
        start_ns = time.perf_counter_ns()
        self.call()
        return time.perf_counter_ns() - start_ns
