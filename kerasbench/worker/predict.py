"""Prediction: NumPy in, NumPy out. Single batches for latency, whole passes for throughput."""

import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kerasbench.backends import Backend
from kerasbench.protocol.measurement import WAYS, Latency, Slice, Slices, Throughput, Turn
from kerasbench.worker.checks import require_equal
from kerasbench.worker.clock import Ask, Pace, measure_slices
from kerasbench.worker.feed import POOL_BYTES, Feed
from kerasbench.worker.model import NativeModel

CALL, COMPILED_CALL, PREDICT_CALL = WAYS
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
    """Time single calls of `predict_on_batch`."""
    batch = min(batch, len(feed.train))
    return _time_calls(model.predict_on_batch, _rotated(feed, batch), batch, pace, ask, warmup_calls)


@dataclass(frozen=True)
class Way:
    """One of WAYS that has been called once."""

    name: str
    call: Callable[[Any], object]
    inputs: Sequence[Any]
    batch: int
    first_ns: int  # the first call, which may have compiled


def first_call(way: str, model: Any, backend: Backend, feed: Feed, batch: int) -> Way | None:
    """Call a model in one of WAYS for the first time; None where the column has no such way.

    Raises:
        TrialFailure (parity): it predicts something else than `predict_on_batch`.
    """
    batch = min(batch, len(feed.train))
    inputs = _rotated(feed, batch)
    expected = model.predict_on_batch(inputs[0])
    call = _caller(way, model, backend, batch)  # afterwards: JAX gives the weights of a prediction away
    if call is None:
        return None
    if way != PREDICT_CALL:
        inputs = [backend.on_device(x) for x in inputs]
    start_ns = time.perf_counter_ns()
    outputs = call(inputs[0])
    first_ns = time.perf_counter_ns() - start_ns
    require_equal(way, outputs, expected)
    return Way(way, call, inputs, batch, first_ns)


def time_way(way: Way, pace: Pace, ask: Ask, warmup_calls: int) -> Latency:
    """Time single calls."""
    latency = _time_calls(way.call, way.inputs, way.batch, pace, ask, warmup_calls)
    return dataclasses.replace(latency, way=way.name, first_ns=way.first_ns)


def _caller(way: str, model: Any, backend: Backend, batch: int) -> Callable[[Any], Any] | None:
    if way == PREDICT_CALL:
        return lambda x: model.predict(x, batch_size=batch, verbose=0)
    compiled = way == COMPILED_CALL
    return model.caller(compiled) if isinstance(model, NativeModel) else backend.caller(model, compiled)


def _time_calls(
    call: Callable[[Any], object], inputs: Sequence[Any], batch: int, pace: Pace, ask: Ask, warmup_calls: int
) -> Latency:
    rotated = itertools.cycle(inputs)
    calls = Calls(lambda: call(next(rotated)), pace)
    calls.warm_up(warmup_calls, pace.protocol.predict_warmup_ns)
    slices = measure_slices(ask, calls.slice)
    return Latency(batch, calls.durations_ns, Slices.of(slices))


def _rotated(feed: Feed, batch: int) -> list[Any]:
    """Return the inputs of so many batches: prepared beforehand, and called in rotation."""
    starts = [start % (len(feed.train) - batch + 1) for start in range(0, ROTATED_INPUTS * batch, batch)]
    return [feed.inputs(feed.train[start : start + batch]) for start in starts]


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


def time_builds(build: Callable[[], object], pace: Pace, ask: Ask) -> Slices:
    """Time a function that makes a model, which is dropped at once."""
    calls = Calls(build, pace, least=1)
    calls.warm_up(2)
    return Slices.of(measure_slices(ask, calls.slice))


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
            self._time()
        began = self.pace.meter.read()
        calls_ns = [self._time() for _ in range(math.ceil(self.pace.protocol.slice_ns / self._typical_ns))]
        measured = self.pace.meter.with_card(self.pace.meter.read().since(began, len(calls_ns), turn))
        measured = dataclasses.replace(measured, ns=sum(calls_ns))  # without what lies between the calls
        if not self.pace.protocol.soaks or not self.durations_ns:  # a soak's calls would be a leak of our own
            self.durations_ns += calls_ns
        self._typical_ns = measured.unit_ns
        return measured

    def _time(self) -> int:
        self.pace.meter.done += 1
        start_ns = time.perf_counter_ns()
        self.call()
        return time.perf_counter_ns() - start_ns
