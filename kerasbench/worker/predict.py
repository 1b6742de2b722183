"""Prediction: NumPy in, NumPy out."""

import time
from typing import Any

from kerasbench.wire import Latency, Protocol
from kerasbench.worker.feed import Feed

ROTATED_INPUTS = 8  # different inputs in turn, so that no layer of caching answers


def time_predict(model: Any, feed: Feed, batch: int, protocol: Protocol) -> Latency:
    """Time single calls of `predict_on_batch`, over inputs in rotation. The inputs are prepared beforehand."""
    batch = min(batch, len(feed.train))
    starts = [start % (len(feed.train) - batch + 1) for start in range(0, ROTATED_INPUTS * batch, batch)]
    inputs = [feed.inputs(feed.train[start : start + batch]) for start in starts]
    for given in inputs:
        model.predict_on_batch(given)
    calls_ns: list[int] = []
    began_ns = time.perf_counter_ns()
    while _goes_on(len(calls_ns), time.perf_counter_ns() - began_ns, protocol):
        given = inputs[len(calls_ns) % ROTATED_INPUTS]
        start_ns = time.perf_counter_ns()
        model.predict_on_batch(given)
        calls_ns.append(time.perf_counter_ns() - start_ns)
    return Latency(batch, calls_ns)


def _goes_on(calls: int, spent_ns: int, protocol: Protocol) -> bool:
    return calls < protocol.predict_min_calls and spent_ns < protocol.predict_max_ns
