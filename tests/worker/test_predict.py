"""Calls and passes in slices, with a model that only counts and a clock that the test moves."""

import dataclasses
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.protocol.measurement import KEPT_CALLS, Turn, kept_calls
from kerasbench.protocol.requests import Protocol
from kerasbench.scenario import Scenario, ScenarioError, Workload
from kerasbench.worker import predict, usage
from kerasbench.worker.clock import Pace, granted
from kerasbench.worker.feed import Feed, Rows
from kerasbench.worker.native import NativeModel
from kerasbench.worker.predict import ROTATED_INPUTS, Calls, time_batches, time_passes
from kerasbench.worker.usage import UNKNOWN, Meter
from tests.worker.stand_in_keras import Baseline, fed

MS = 1_000_000
PACE = Pace(Protocol(), lambda model: None, settle_ns=20 * MS, meter=Meter(machine=lambda: UNKNOWN))


class Model:
    """Takes so long for a call, and longer for the first; notes what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call_ms: float, outputs: int = 3) -> None:
        self.now_ns, self.outputs = 0, outputs
        self.call_ns = int(call_ms * MS)
        self.seen: list[Any] = []
        clocks = SimpleNamespace(perf_counter_ns=lambda: self.now_ns, process_time_ns=lambda: 2 * self.now_ns)
        monkeypatch.setattr(predict, "time", clocks)
        monkeypatch.setattr(usage, "time", clocks)

    def _flatten_layers(self, include_self: bool = True) -> list[Any]:
        return []

    def predict_on_batch(self, x: Any) -> None:
        self.now_ns += self.call_ns if self.seen else 1000 * MS
        self.seen.append(x)

    def predict(self, x: Any, batch_size: int, verbose: int) -> Any:
        self.predict_on_batch((len(x), batch_size))
        return np.zeros((len(x), self.outputs), np.float32)


def test_each_slice_discards_some_calls_and_has_as_many_as_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(monkeypatch, call_ms=3)
    latency = time_batches(model, fed(), 16, PACE, granted(2, Turn(5, 1)))
    (one, other) = (dataclasses.replace(slice_, page_faults=0) for slice_ in latency.slices)  # those are real
    assert one == other
    assert (one.count, one.ns, one.cycle, one.position, one.cpu_ns) == (34, 34 * 3 * MS, 5, 1, 2 * 34 * 3 * MS)
    assert latency.calls_ns == [3 * MS] * 68
    warm_up, discarded = 8, 7  # which take 1,021 and 21 ms
    assert len(model.seen) == warm_up + 2 * (discarded + 34)


def test_inputs_go_round_in_batches_and_of_many_calls_some_of_all_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(monkeypatch, call_ms=0.1)
    latency = time_batches(model, fed(), 16, PACE, granted(2))
    assert [slice_.count for slice_ in latency.slices] == [1_000] * 2
    assert [len(calls) for calls in latency.calls_of_slices] == [KEPT_CALLS] * 2
    for count in (400, 700, 1_000):
        assert {index % ROTATED_INPUTS for index in kept_calls(count)} == set(range(ROTATED_INPUTS))
    model = Model(monkeypatch, call_ms=50)
    time_batches(model, fed(), 16, PACE, granted(1))
    firsts = [float(x[0, 0]) for x in model.seen]
    assert firsts == [16 * (index % 8) for index in range(len(firsts))]
    assert {len(x) for x in model.seen} == {16}
    assert time_batches(Model(monkeypatch, 50), fed(), 1_000, PACE, granted(1)).batch == 320


@pytest.mark.parametrize(("pass_ms", "passes", "discarded"), [(30, 4, 1), (5, 20, 4), (150, 1, 1), (300, 1, 0)])
def test_a_slice_has_one_pass_at_least(
    monkeypatch: pytest.MonkeyPatch, pass_ms: float, passes: int, discarded: int
) -> None:
    model = Model(monkeypatch, pass_ms)
    throughput = time_passes(model, fed(), PACE, granted(3))
    assert [slice_.count for slice_ in throughput.slices] == [passes] * 3
    assert throughput.passes_ns == [int(pass_ms * MS)] * 3 * passes
    assert len(model.seen) == 1 + 2 + 3 * (discarded + passes)  # one batch, which says how much a row returns


@pytest.mark.parametrize(("test", "samples"), [(30, 30), (0, 320)])
def test_a_pass_is_over_the_test_samples_or_else_those_that_are_trained_on(
    monkeypatch: pytest.MonkeyPatch, test: int, samples: int
) -> None:
    model = Model(monkeypatch, 300)
    throughput = time_passes(model, fed(Workload(train=320, batch=16, test=test)), PACE, granted(1))
    assert (throughput.samples, throughput.batch) == (samples, 16)
    assert model.seen[0] == (16, 16) and set(model.seen[1:]) == {(samples, 16)}


def test_a_pass_returns_no_more_than_the_rows_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(monkeypatch, 300, outputs=2_000_000)  # eight megabytes a row, as of a language model
    throughput = time_passes(model, fed(Workload(train=320, batch=16, test=30)), PACE, granted(1))
    assert throughput.samples == 16


def test_the_warm_up_goes_on_for_so_many_calls_and_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(monkeypatch, 3)
    calls = Calls(lambda: model.predict_on_batch(0), PACE)
    calls.warm_up(8, 1_100 * MS)
    assert len(model.seen) == 1 + 34
    assert calls.durations_ns == []


class Called(Model):
    """Predicts in every way; a compiled call takes half as long, after a first one that compiles."""

    def on_device(self, x: Any) -> Any:
        return ("on device", x)

    def caller(self, model: Any, compiled: bool) -> Any:
        assert model is self
        return None if compiled and not self.compiles else self.predict_on_batch

    compiles = True


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways whose outputs were compared with those of predict_on_batch."""
    ways: list[str] = []
    monkeypatch.setattr(predict, "require_equal", lambda way, outputs, expected, model: ways.append(way))
    return ways


@pytest.mark.parametrize(("way", "seen"), [("call", "on device"), ("compiled_call", "on device"), ("predict_call", 16)])
def test_every_way_is_compared_before_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, compared: list[str], way: str, seen: object
) -> None:
    model = Called(monkeypatch, 3)
    called = predict.first_call(way, model, model, fed(), 16)  # type: ignore[arg-type]
    assert called is not None
    latency = predict.time_way(called, PACE, granted(2), 8)
    assert (latency.way, latency.batch, latency.first_ns) == (way, 16, 3 * MS)
    assert [slice_.count for slice_ in latency.slices] == [34, 34]
    assert compared == [way]
    assert seen in model.seen[2]  # after two predictions, which tell whether it draws random numbers


def test_a_baseline_is_called_by_its_own_function(monkeypatch: pytest.MonkeyPatch, compared: list[str]) -> None:
    model = Called(monkeypatch, 3)
    baseline: Any = Baseline()
    native = NativeModel(baseline)
    for way, found in {"call": baseline.forward, "compiled_call": None}.items():
        assert predict._caller(way, native, model, 16) == found  # type: ignore[arg-type]


def test_a_soak_keeps_the_calls_of_its_first_slice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = dataclasses.replace(PACE, protocol=Protocol(soaks=True))
    latency = time_batches(Model(monkeypatch, 3), fed(), 16, pace, granted(3))
    assert [slice_.count for slice_ in latency.slices] == [34] * 3
    assert len(latency.calls_ns) == 34


def test_a_column_that_compiles_nothing_has_no_compiled_call(
    monkeypatch: pytest.MonkeyPatch, compared: list[str]
) -> None:
    model = Called(monkeypatch, 3)
    model.compiles = False
    assert predict.first_call("compiled_call", model, model, fed(), 16) is None  # type: ignore[arg-type]
    assert compared == []


WORDS, LENGTH = 10, 5


class Writer(Called):
    """Its next word is the last one and one more, which takes so long; texts are rows of five words."""

    def predict_on_batch(self, x: Any) -> Any:
        super().predict_on_batch(x)
        _, texts = x
        return np.eye(WORDS)[(texts + 1) % WORDS]

    def generate(self, x: Any, new_tokens: int) -> Any:
        """Write by its own, with a prompt that takes 40 ms."""
        self.now_ns += 40 * MS + new_tokens * self.call_ns
        self.seen.append(new_tokens)
        return (x[:, -1:] + 1 + np.arange(new_tokens)) % WORDS


def texts() -> Feed:
    x: Any = np.resize(np.arange(WORDS, dtype=np.int32), (32, LENGTH))  # they end in 4 and in 9
    rows = Rows(x, x)
    return Feed(Workload(train=32, batch=2), rows, rows[:0], rows[:0])


def writes(generate: Any = None, new_tokens: int = 8) -> Scenario:
    workloads = (Workload(train=32, batch=2),)
    return Scenario(build=len, data=texts, workloads=workloads, new_tokens=new_tokens, generate=generate)  # type: ignore[arg-type]


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A keras whose tensors are NumPy's arrays."""
    keras: Any = ModuleType("keras")
    keras.ops = SimpleNamespace(convert_to_numpy=np.asarray)
    monkeypatch.setitem(sys.modules, "keras", keras)


@pytest.mark.usefixtures("numbers")
@pytest.mark.parametrize("way", ["call", "compiled_call"])
def test_texts_grow_by_a_call_for_each_token_and_keep_their_length(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    model: Any = Writer(monkeypatch, 30)
    found = predict.time_texts(way, model, model, writes(), texts(), PACE, granted(2, Turn(5, 1)))
    assert found is not None
    assert (found.way, found.batch, found.counts) == (way, 2, list(range(1, 9)))
    assert found.tokens == [[5, 6, 7, 8, 9, 0, 1, 2], [0, 1, 2, 3, 4, 5, 6, 7]]
    assert found.times_ns == [[30 * MS * count for count in found.counts]] * 2
    assert [(one.count, one.ns, one.cycle, one.position) for one in found.slices] == [(8, 240 * MS, 5, 1)] * 2
    assert {x.shape for _, x in model.seen} == {(2, LENGTH)}
    warm_up, discarded = 2, 2  # texts, tokens of each slice
    assert len(model.seen) == warm_up * 8 + 2 * (discarded + 8)


@pytest.mark.usefixtures("numbers")
def test_a_scenario_s_own_function_is_called_anew_for_each_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = Writer(monkeypatch, 5)
    found = predict.time_texts("own", model, model, writes(Writer.generate), texts(), PACE, granted(1))
    assert found is not None
    assert (found.counts, found.times_ns) == ([1, 2, 4, 8], [[(40 + 5 * count) * MS for count in (1, 2, 4, 8)]])
    assert found.tokens[0] == [5, 6, 7, 8, 9, 0, 1, 2]
    assert [one.count for one in found.slices] == [15]
    baseline: Any = Baseline()
    native = NativeModel(baseline)
    assert predict.time_texts("own", native, model, writes(Writer.generate), texts(), PACE, granted(1)) is None


@pytest.mark.usefixtures("numbers")
def test_what_is_no_text_no_scores_or_no_tokens_is_the_scenario_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = Writer(monkeypatch, 5)

    def refused(complaint: str, way: str = "call", feed: Feed | None = None, generate: Any = None) -> None:
        with pytest.raises(ScenarioError, match=complaint):
            predict.time_texts(way, model, model, writes(generate), feed or texts(), PACE, granted(1))

    refused("x must be one array of integers", feed=fed())
    refused(r"integers of shape \(2, 1\), not float64", "own", generate=lambda model, x, tokens: np.zeros((2, tokens)))
    refused(r"not int64 of shape \(2, 9\)", "own", generate=lambda model, x, tokens: np.zeros((2, 9), np.int64))
    model.predict_on_batch = lambda x: np.zeros((2, WORDS))
    refused(r"must return logits \(samples, length, vocabulary\), not \(2, 10\)")


@pytest.mark.usefixtures("numbers")
def test_a_column_that_compiles_nothing_writes_nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = Writer(monkeypatch, 5)
    model.compiles = False
    assert predict.time_texts("compiled_call", model, model, writes(), texts(), PACE, granted(1)) is None


def test_builds_are_counted_as_calls_are_and_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model, meter = Model(monkeypatch, 30), usage.Meter(soaks=True)
    pace = dataclasses.replace(PACE, protocol=Protocol(soaks=True), meter=meter)
    slices = predict.time_builds(lambda: model.predict_on_batch(1), pace, granted(3))
    assert (slices.count, slices.done) == ([4] * 3, [7, 12, 17])  # one is discarded before each
    assert len(model.seen) == meter.done
