"""Prediction: NumPy in, NumPy out. Single batches for latency, whole passes for throughput."""

import time
from collections.abc import Callable
from typing import Any

from kerasbench.exchange.measurement import Latency, Throughput
from kerasbench.exchange.requests import Protocol
from kerasbench.worker.trial.feed import POOL_BYTES, Feed

ROTATED_INPUTS = 8  # different inputs in turn, so that no layer of caching answers
MAX_PASSES = 5


def time_batches(model: Any, feed: Feed, batch: int, protocol: Protocol) -> Latency:
    """Time single calls of `predict_on_batch`, over inputs in rotation. The inputs are prepared beforehand."""
    batch = min(batch, len(feed.train))
    starts = [start % (len(feed.train) - batch + 1) for start in range(0, ROTATED_INPUTS * batch, batch)]
    inputs = [feed.inputs(feed.train[start : start + batch]) for start in starts]

    def call(index: int) -> int:
        given = inputs[index % ROTATED_INPUTS]
        start_ns = time.perf_counter_ns()
        model.predict_on_batch(given)
        return time.perf_counter_ns() - start_ns

    _repeat(call, lambda calls, spent_ns: calls < ROTATED_INPUTS or spent_ns < protocol.predict_warmup_ns)
    return Latency(batch, _repeat(call, lambda calls, spent_ns: goes_on(calls, spent_ns, protocol)))


def time_passes(model: Any, feed: Feed, protocol: Protocol) -> Throughput | None:
    """Time `predict` over the test samples, or over the training samples where the publication had no others.

    At most POOL_BYTES of them: what a pass costs once is small beside that.
    """
    wanted = feed.regime.test or len(feed.evaluated)
    source = feed.test if len(feed.test) else feed.train
    samples = max(1, min(wanted, POOL_BYTES // source.x[:1].nbytes))
    x = feed.inputs(source.repeated(samples))

    def call(index: int) -> int:
        start_ns = time.perf_counter_ns()
        model.predict(x, batch_size=feed.predict_batch, verbose=0)
        return time.perf_counter_ns() - start_ns

    call(0)
    passes_ns = _repeat(call, lambda calls, spent_ns: calls < MAX_PASSES and spent_ns < protocol.predict_max_ns)
    return Throughput(samples, feed.predict_batch, passes_ns)


def goes_on(calls: int, spent_ns: int, protocol: Protocol) -> bool:
    """Tell whether more calls are wanted: 200 of them and a second, at most 1,000 of them or three seconds."""
    if calls >= protocol.predict_max_calls or spent_ns >= protocol.predict_max_ns:
        return False
    return calls < protocol.predict_min_calls or spent_ns < protocol.predict_min_ns


def _repeat(call: Callable[[int], int], wanted: Callable[[int, int], bool]) -> list[int]:
    """Call for as long as it is wanted, by the number of calls and the time spent; return their durations in ns."""
    calls_ns: list[int] = []
    began_ns = time.perf_counter_ns()
    while wanted(len(calls_ns), time.perf_counter_ns() - began_ns):
        calls_ns.append(call(len(calls_ns)))
    return calls_ns
