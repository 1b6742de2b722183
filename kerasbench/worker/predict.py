"""Prediction: single batches for latency, whole passes for throughput, sequences that are continued token by token."""

import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kerasbench.protocol.measurement import Calls, Passes, Slice, Texts, Turn, kept_calls
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.stages import COMPILED_CALL, ON_BATCH, OWN, PREDICT_CALL
from kerasbench.runners import Call, Predictor
from kerasbench.runners.feed import Feed
from kerasbench.runners.inputs import POOL_BYTES, leaves, mapped
from kerasbench.scenario import ScenarioError
from kerasbench.worker.checks import draws, require_equal, rounding
from kerasbench.worker.clock import Ask, Pace, measure_slices

TEXTS_KEPT = 8  # whose tokens are compared with those of other columns
FLOAT_BYTES = 4  # whatever a column computes in: all predict as many rows
ROTATED_INPUTS = 8  # different inputs in turn, so that no layer of caching answers
# Inputs that no call has met, after the slices: a model that keeps all that it has seen takes far longer for them.
FRESH_CALLS, FRESH_NS = 8, 16_000_000  # so many are enough, or as many as take so long
MOST_FRESH_CALLS = 24  # before it is believed: another program may slow any of them
FRESH_TIMES = 1.5
FRESH_STEP = 1e-3  # by which share floats grow with each, so that none has been there before


def pilot(runner: Predictor) -> Callable[[], int]:
    """Predict a batch, which may compile; return what predicts it once more and returns how long that took, in ns."""
    x, predict = runner.feed.inputs(runner.feed.train[: runner.feed.predict_batch]), runner.predict_on_batch
    predict(x)

    def again() -> int:
        start_ns = time.perf_counter_ns()
        predict(x)
        return time.perf_counter_ns() - start_ns

    return again


def time_batches(runner: Predictor, batch: int, pace: Pace, ask: Ask, warmup_calls: int = ROTATED_INPUTS) -> Calls:
    batch = min(batch, len(runner.feed.train))
    others = partial(_others, runner.feed, batch)
    way = PredictMethod(ON_BATCH, runner.predict_on_batch, _rotated(runner.feed, batch), others, batch)
    return time_way(way, pace, ask, warmup_calls)


@dataclass(frozen=True)
class PredictMethod:
    name: str
    call: Call
    inputs: Sequence[Any]
    others: Callable[[int], Any]  # by a number from 1: inputs that are not among them
    batch: int
    first_ns: int | None = None  # the first call, which may have compiled; None: not measured


def first_call(way: str, runner: Predictor, batch: int) -> PredictMethod | None:
    """None: the column has no such way. TrialFailure (parity): it predicts something else than `predict_on_batch`."""
    batch = min(batch, len(runner.feed.train))
    inputs = _rotated(runner.feed, batch)
    expected, again = runner.predict_on_batch(inputs[0]), runner.predict_on_batch(inputs[0])
    # Afterwards: JAX gives the weights of a prediction away.
    call = runner.predictor(batch) if way == PREDICT_CALL else runner.caller(way == COMPILED_CALL)
    if call is None:
        return None
    place = runner.place if way != PREDICT_CALL else lambda x: x
    inputs = [place(x) for x in inputs]
    start_ns = time.perf_counter_ns()
    outputs = call(inputs[0])
    first_ns = time.perf_counter_ns() - start_ns
    if not draws(expected, again, rounding(runner)):
        require_equal(way, outputs, expected, runner)
    return PredictMethod(way, call, inputs, lambda number: place(_others(runner.feed, batch, number)), batch, first_ns)


def time_way(way: PredictMethod, pace: Pace, ask: Ask, warmup_calls: int) -> Calls:
    call, rotated = way.call, itertools.cycle(way.inputs)
    timer = CallTimer(lambda: call(next(rotated)), pace)
    timer.warm_up(warmup_calls, pace.plan.predict_warmup_ns)
    measure_slices(ask, timer.slice)
    require_no_memory(way, timer)
    return Calls(way.batch, timer.durations_ns, way.first_ns)


def require_no_memory(way: PredictMethod, timer: "CallTimer") -> None:
    """Raise TrialFailure (invalid) where each input that was never predicted takes longer than one in rotation does."""
    in_rotation_ns: list[int] = []
    fresh_ns: list[int] = []
    pairs = max(1, min(FRESH_CALLS, FRESH_NS // max(1, int(timer.typical_ns))))
    for number in range(1, MOST_FRESH_CALLS + 1):
        usual = way.inputs[number % len(way.inputs)]
        leads = number % 2 == 0  # by turns: a thread in the background may take its part of every other call
        for is_fresh in leads, not leads:
            other = way.others(number)  # before both: after it glibc may have to map a call's memory anew
            start_ns = time.perf_counter_ns()
            way.call(other if is_fresh else usual)
            (fresh_ns if is_fresh else in_rotation_ns).append(time.perf_counter_ns() - start_ns)
        # The quickest beside the usual: of two that are the quickest, one may have had luck on a busy machine.
        times = min(fresh_ns) / statistics.median(in_rotation_ns)
        if number >= pairs and times <= FRESH_TIMES:
            return
    cause = (
        f"{way.name} takes {times:.2g} times as long for inputs that it has not met: the model keeps what it has seen"
    )
    remedy = "leave out what keeps results, such as a dictionary or functools.cache in a layer"
    raise TrialFailure(Failure(Code.INVALID, cause, remedy))


def _others(feed: Feed, batch: int, number: int) -> Any:
    """Return inputs that are not in rotation: from other rows, and a little larger where they are floats."""
    start = (ROTATED_INPUTS * batch + number * batch + batch // 2) % (len(feed.train) - batch + 1)
    factor = 1 + number * FRESH_STEP

    def enlarge(array: Any) -> Any:
        return array * array.dtype.type(factor) if array.dtype.kind == "f" else array

    return mapped(enlarge, feed.inputs(feed.train[start : start + batch]))


def _rotated(feed: Feed, batch: int) -> list[Any]:
    """Return the inputs of so many batches: prepared beforehand, and called in rotation."""
    starts = [start % (len(feed.train) - batch + 1) for start in range(0, ROTATED_INPUTS * batch, batch)]
    return [feed.inputs(feed.train[start : start + batch]) for start in starts]


Grow = Callable[[Sequence[int]], tuple[Any, list[int]]]  # tokens, and when there were as many as each count says


def time_texts(way: str, runner: Predictor, pace: Pace, ask: Ask) -> Texts | None:
    """None: the column has no such way. ScenarioError: samples are no token ids, outputs no logits or no tokens."""
    feed, most = runner.feed, runner.new_tokens
    batch = min(feed.predict_batch, len(feed.train))
    x = feed.inputs(feed.train[:batch])
    if way == OWN:
        grow = runner.generate and _by_its_own(runner.generate, runner.to_numpy, x, batch)
        counts = sorted({1, max(1, most // 4), -(-most // 2), most})
    else:
        call = runner.caller(way == COMPILED_CALL)
        grow = call and _by_calls(call, runner, x)
        counts = list(range(1, most + 1))
    if grow is None:
        return None
    return _time_growth(way == OWN, batch, grow, counts, pace, ask)


def _by_calls(call: Call, runner: Predictor, x: Any) -> Grow:
    """Each new token pushes out the first one, so that nothing is compiled again. It counts once the host knows it."""
    if not isinstance(x, np.ndarray) or x.ndim != 2 or x.dtype.kind not in "iu":
        raise ScenarioError(
            "new_tokens needs token ids, and x is not one array of integers, (samples, length)",
            "return that from data(), or leave out new_tokens",
        )
    place, to_numpy = runner.place, runner.to_numpy

    def grow(counts: Sequence[int]) -> tuple[Any, list[int]]:
        sequences, made, ends_ns = x, [], []
        began_ns = time.perf_counter_ns()
        for _ in range(counts[-1]):
            logits = call(place(sequences))
            if len(logits.shape) != 3 or tuple(logits.shape[:2]) != x.shape:
                wanted, given = "logits (samples, length, vocabulary)", tuple(logits.shape)
                raise ScenarioError(f"new_tokens: the model must return {wanted}, not {given}")
            tokens = np.argmax(to_numpy(logits[:, -1]), axis=-1)
            sequences = np.concatenate([sequences[:, 1:], tokens[:, None].astype(x.dtype)], axis=1)
            ends_ns.append(time.perf_counter_ns() - began_ns)
            made.append(tokens)
        return np.stack(made, axis=1), [ends_ns[count - 1] for count in counts]

    return grow


def _by_its_own(generate: Callable[[Any, int], Any], to_numpy: Call, x: Any, batch: int) -> Grow:
    def grow(counts: Sequence[int]) -> tuple[Any, list[int]]:
        tokens, times_ns = None, []
        for count in counts:
            began_ns = time.perf_counter_ns()
            tokens = to_numpy(generate(x, count))
            times_ns.append(time.perf_counter_ns() - began_ns)
            if tokens.shape != (batch, count) or tokens.dtype.kind not in "iu":
                wanted, given = f"integers of shape {(batch, count)}", f"{tokens.dtype} of shape {tokens.shape}"
                raise ScenarioError(f"generate must return the new tokens, {wanted}, not {given}")
        return tokens, times_ns

    return grow


def _time_growth(by_its_own: bool, batch: int, grow: Grow, counts: list[int], pace: Pace, ask: Ask) -> Texts:
    run_tokens = sum(counts) if by_its_own else counts[-1]  # of a text
    tokens, _ = grow(counts)  # may compile
    began_ns = time.perf_counter_ns()
    _, (first_ns, *_) = grow(counts)
    typical_ns: float = time.perf_counter_ns() - began_ns
    times_ns: list[list[int]] = []

    def measure(turn: Turn) -> Slice:
        """As many runs as fill a slice, going by those of the slice before."""
        nonlocal typical_ns
        for _ in range(pace.discarded(first_ns)):
            grow(counts[:1])
        began = pace.meter.read()
        runs = [grow(counts)[1] for _ in range(math.ceil(pace.plan.slice_ns / typical_ns))]
        measured = pace.meter.read().since(began, len(runs) * run_tokens, turn)
        times_ns.append([round(statistics.median(times)) for times in zip(*runs, strict=True)])
        typical_ns = measured.ns / len(runs)
        return pace.meter.with_card(measured)

    measure_slices(ask, measure)
    return Texts(batch, counts, times_ns, tokens[:TEXTS_KEPT].tolist())


def time_passes(runner: Predictor, pace: Pace, ask: Ask, most_batches: int | None = None) -> Passes:
    """Time `predict` over test samples, or else training samples: at most POOL_BYTES of them or of outputs."""
    feed, batch = runner.feed, runner.feed.predict_batch
    predict = runner.predictor(batch)
    source = feed.test if len(feed.test) else feed.train
    one_batch = predict(feed.inputs(source.repeated(batch)))
    row_bytes = max(source.row_bytes, sum(FLOAT_BYTES * array[0].size for _, array in leaves(one_batch)))
    del one_batch
    wanted = feed.workload.test or len(feed.evaluated)
    batches = max(1, POOL_BYTES // row_bytes // batch)
    samples = min(wanted, min(batches, most_batches or batches) * batch)
    timer = CallTimer(partial(predict, feed.inputs(source.repeated(samples))), pace, least=1)
    timer.warm_up(2)  # the first compiles
    measure_slices(ask, timer.slice)
    return Passes(samples, batch, timer.durations_ns)


def time_builds(build: Callable[[], object], pace: Pace, ask: Ask) -> None:
    timer = CallTimer(build, pace, least=1)
    timer.warm_up(2)
    measure_slices(ask, timer.slice)


@dataclass
class CallTimer:
    call: Callable[[], object]
    pace: Pace
    least: int = 2  # calls that a slice discards at least, where they are quick
    durations_ns: list[int] = field(default_factory=list)
    typical_ns: float = 0.0

    def warm_up(self, calls: int, for_ns: int = 0) -> None:
        """Make so many calls at least, and for so long; the later half of them says how long one takes."""
        warmup_ns: list[int] = []
        began_ns = time.perf_counter_ns()
        while len(warmup_ns) < calls or time.perf_counter_ns() - began_ns < for_ns:
            warmup_ns.append(self._time())
        self.typical_ns = statistics.fmean(warmup_ns[len(warmup_ns) // 2 :])

    def slice(self, turn: Turn) -> Slice:
        """Measure as many calls as fill it, by the slice before: to stop by the clock would favour late ends."""
        for _ in range(self.pace.discarded(self.typical_ns, self.least)):
            self._time()
        began = self.pace.meter.read()
        calls_ns = [self._time() for _ in range(math.ceil(self.pace.plan.slice_ns / self.typical_ns))]
        measured = self.pace.meter.with_card(self.pace.meter.read().since(began, len(calls_ns), turn))
        measured = dataclasses.replace(measured, ns=sum(calls_ns))  # without what lies between the calls
        if not self.pace.plan.fixed_time or not self.durations_ns:  # calls of minutes would be a leak of our own
            self.durations_ns += [calls_ns[index] for index in kept_calls(len(calls_ns))]
        self.typical_ns = measured.unit_ns
        return measured

    def _time(self) -> int:
        self.pace.meter.done += 1
        start_ns = time.perf_counter_ns()
        self.call()
        return time.perf_counter_ns() - start_ns
