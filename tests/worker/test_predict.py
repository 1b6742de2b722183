"""Calls and passes in slices, with a model that only counts and a clock that the test moves."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kerasbench.protocol.measurement import KEPT_CALLS, Samples, Slice, Texts, Turn, kept_calls
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.protocol.requests import TrialPlan
from kerasbench.runners.feed import Feed, Rows
from kerasbench.scenario import ScenarioError, Workload
from kerasbench.worker import predict, usage
from kerasbench.worker.clock import Pace, granted
from kerasbench.worker.predict import ROTATED_INPUTS, CallTimer, time_batches, time_passes
from kerasbench.worker.usage import UNKNOWN, Meter
from tests.worker.stand_in_keras import Turns, fed

MS = 1_000_000
PACE = Pace(TrialPlan(), lambda: None, settle_ns=20 * MS, meter=Meter(machine=lambda: UNKNOWN))


class Model:
    """Takes so long for a call, and longer for the first; notes what it was given."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, call_ms: float, outputs: int = 3, feed: Feed | None = None
    ) -> None:
        self.feed = feed or fed()
        self.now_ns, self.outputs = 0, outputs
        self.call_ns = int(call_ms * MS)
        self.seen: list[Any] = []
        clocks = SimpleNamespace(perf_counter_ns=lambda: self.now_ns, process_time_ns=lambda: 2 * self.now_ns)
        monkeypatch.setattr(predict, "time", clocks)
        monkeypatch.setattr(usage, "time", clocks)

    compute_dtypes: frozenset[str] = frozenset()
    to_numpy = staticmethod(np.asarray)
    generate: Any = None

    def predict_on_batch(self, x: Any) -> None:
        self.now_ns += self.call_ns if self.seen else 1000 * MS
        self.seen.append(x)

    def predictor(self, batch: int) -> Any:
        def predict(x: Any) -> Any:
            self.predict_on_batch((len(x), batch))
            return np.zeros((len(x), self.outputs), np.float32)

        return predict


def test_each_slice_discards_some_calls_and_has_as_many_as_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = Model(monkeypatch, call_ms=3)
    calls = time_batches(model, 16, PACE, turns := Turns(2, Turn(5, 1)))
    slices = [dataclasses.replace(slice_, page_faults=0) for slice_ in turns.slices]  # those are real
    assert slices == [Slice(34, 34 * 3 * MS, 5, 1, 2 * 34 * 3 * MS, page_faults=0)] * 2
    assert calls.calls_ns == [3 * MS] * 68
    warm_up, discarded, fresh = 8, 7, 2 * 5  # which take 1,021, 21 and 30 ms
    assert len(model.seen) == warm_up + 2 * (discarded + 34) + fresh
    model.seen.clear()
    CallTimer(lambda: model.predict_on_batch(0), PACE).warm_up(8, 1_100 * MS)  # goes on for so long, too
    assert len(model.seen) == 1 + 34


def test_inputs_go_round_in_batches_and_of_many_calls_some_of_all_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = Model(monkeypatch, call_ms=0.1)
    calls = time_batches(model, 16, PACE, turns := Turns(2))
    assert turns.counts == [1_000] * 2
    assert [len(of_slice) for of_slice in calls.by_slice(Samples.of(turns.slices))] == [KEPT_CALLS] * 2
    for count in (400, 700, 1_000):
        assert {index % ROTATED_INPUTS for index in kept_calls(count)} == set(range(ROTATED_INPUTS))
    model = Model(monkeypatch, call_ms=50)
    time_batches(model, 16, PACE, granted(1))
    firsts = [float(x[0, 0]) for x in model.seen[:-2]]  # then one in rotation, and one that is not
    assert firsts == [16 * (index % 8) for index in range(len(firsts))]
    assert {len(x) for x in model.seen} == {16}
    assert time_batches(model, 1_000, PACE, granted(1)).batch == 320


class Remembering(Model):
    """Needs no time for a row of numbers that it has met."""

    def predict_on_batch(self, x: Any) -> None:
        if not any(np.array_equal(x, met) for met in self.seen):
            self.now_ns += 2 * self.call_ns
        super().predict_on_batch(x)


@pytest.mark.parametrize("batch", [1, 16])
def test_a_model_that_keeps_what_it_has_seen_has_no_number(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful: Any = Model(monkeypatch, call_ms=3)
    assert time_batches(forgetful, batch, PACE, granted(2)).calls_ns
    model: Any = Remembering(monkeypatch, call_ms=3)
    with pytest.raises(TrialFailure, match="3 times as long for inputs that it has not met") as raised:
        time_batches(model, batch, PACE, granted(2))
    assert raised.value.failure.code is Code.INVALID


def test_a_call_that_something_else_slows_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = Model(monkeypatch, call_ms=40)
    more_ms = iter([0, 40])  # of the first two, a call in rotation and a fresh one

    def call(x: Any) -> None:
        model.now_ns += (40 + next(more_ms, 0)) * MS

    timer: Any = SimpleNamespace(typical_ns=40 * MS)
    predict.require_no_memory(predict.PredictMethod("call", call, [0], lambda number: number, 1), timer)


def test_a_single_call_that_was_quick_by_luck_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = Model(monkeypatch, call_ms=40)
    less_ms = iter([30])  # of the first, a call in rotation

    def call(x: Any) -> None:
        model.now_ns += (40 - next(less_ms, 0)) * MS

    timer: Any = SimpleNamespace(typical_ns=4 * MS)
    predict.require_no_memory(predict.PredictMethod("call", call, [0], lambda number: number, 1), timer)


@pytest.mark.parametrize(("pass_ms", "passes", "discarded"), [(30, 4, 1), (5, 20, 4), (150, 1, 1), (300, 1, 0)])
def test_a_slice_has_one_pass(monkeypatch: pytest.MonkeyPatch, pass_ms: int, passes: int, discarded: int) -> None:
    model: Any = Model(monkeypatch, pass_ms)
    measured = time_passes(model, PACE, turns := Turns(3))
    assert turns.counts == [passes] * 3
    assert measured.passes_ns == [pass_ms * MS] * 3 * passes
    assert len(model.seen) == 1 + 2 + 3 * (discarded + passes)  # one batch, which says how much a row returns


def test_the_rows_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # The last returns eight megabytes a row, as a language model does.
    for test, outputs, samples in (30, 3, 30), (0, 3, 320), (30, 2_000_000, 16):
        model: Any = Model(monkeypatch, 300, outputs, fed(Workload(train=320, batch=16, test=test)))
        measured = time_passes(model, PACE, granted(1))
        assert (measured.samples, measured.batch) == (samples, 16)
        assert model.seen[0] == (16, 16) and set(model.seen[1:]) == {(samples, 16)}


class Called(Model):
    """Predicts in every way; a compiled call takes half as long, after a first one that compiles."""

    def place(self, x: Any) -> Any:
        return ("on device", x)

    def caller(self, compiled: bool) -> Any:
        return None if compiled and not self.compiles else self.predict_on_batch

    compiles = True


@pytest.mark.parametrize(("way", "seen"), [("call", "on device"), ("compiled_call", "on device"), ("predict_call", 16)])
def test_every_way_is_compared_before_it_is_timed(monkeypatch: pytest.MonkeyPatch, way: str, seen: object) -> None:
    compared: list[str] = []
    monkeypatch.setattr(predict, "require_equal", lambda way, outputs, expected, runner: compared.append(way))
    model: Any = Called(monkeypatch, 3)
    to_predict = predict.first_call(way, model, 16)
    assert to_predict is not None
    calls = predict.time_way(to_predict, PACE, turns := Turns(2), 8)
    assert (calls.batch, calls.first_ns, turns.counts) == (16, 3 * MS, [34, 34])
    assert compared == [way]
    assert seen in model.seen[2]  # after two predictions, which tell whether it draws random numbers


WORDS, LENGTH = 10, 5


class Writer(Called):
    """Its next word is the last one and one more, which takes so long; texts are rows of five words."""

    def predict_on_batch(self, x: Any) -> Any:
        super().predict_on_batch(x)
        _, texts = x
        return np.eye(WORDS)[(texts + 1) % WORDS]

    def write(self, x: Any, new_tokens: int) -> Any:
        """Write by itself, with a prompt that takes 40 ms."""
        self.now_ns += 40 * MS + new_tokens * self.call_ns
        self.seen.append(new_tokens)
        return (x[:, -1:] + 1 + np.arange(new_tokens)) % WORDS


X: Any = np.resize(np.arange(WORDS, dtype=np.int32), (32, LENGTH))  # they end in 4 and in 9
TEXTS = Feed(Workload(train=32, batch=2), Rows(X, X), Rows(X[:0], X[:0]), Rows(X[:0], X[:0]))


def timed(model: Any, way: str, turns: Turns, generate: Any = None, feed: Feed = TEXTS) -> Texts | None:
    vars(model).update(new_tokens=8, generate=generate, feed=feed)
    return predict.time_texts(way, model, PACE, turns)


@pytest.mark.parametrize("way", ["call", "compiled_call"])
def test_texts_grow_by_a_call_for_each_token_and_keep_their_length(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    model = Writer(monkeypatch, 30)
    texts = timed(model, way, turns := Turns(2, Turn(5, 1)))
    assert texts is not None
    assert (texts.batch, texts.counts) == (2, list(range(1, 9)))
    assert texts.tokens == [[5, 6, 7, 8, 9, 0, 1, 2], [0, 1, 2, 3, 4, 5, 6, 7]]
    assert texts.times_ns == [[30 * MS * count for count in texts.counts]] * 2
    assert [(slice_.count, slice_.ns, slice_.cycle) for slice_ in turns.slices] == [(8, 240 * MS, 5)] * 2
    assert {x.shape for _, x in model.seen} == {(2, LENGTH)}
    warm_up, discarded = 2, 2  # texts, tokens of each slice
    assert len(model.seen) == warm_up * 8 + 2 * (discarded + 8)


def test_a_scenario_s_own_function_is_called_anew_for_each_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Writer(monkeypatch, 5)
    texts = timed(model, "own", turns := Turns(1), model.write)
    assert texts is not None
    assert (texts.counts, texts.times_ns) == ([1, 2, 4, 8], [[(40 + 5 * count) * MS for count in (1, 2, 4, 8)]])
    assert texts.tokens[0] == [5, 6, 7, 8, 9, 0, 1, 2]
    assert turns.counts == [15]
    assert timed(model, "own", Turns(1)) is None  # of a baseline


def test_what_is_no_text_no_scores_or_no_tokens_is_the_scenario_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Writer(monkeypatch, 5)

    def refused(complaint: str, way: str = "call", feed: Feed = TEXTS, generate: Any = None) -> None:
        with pytest.raises(ScenarioError, match=complaint):
            timed(model, way, Turns(1), generate, feed)

    refused("x is not one array of integers", feed=fed())
    refused(r"integers of shape \(2, 1\), not float64", "own", generate=lambda x, tokens: np.zeros((2, tokens)))
    refused(r"not int64 of shape \(2, 9\)", "own", generate=lambda x, tokens: np.zeros((2, 9), np.int64))
    vars(model).update(predict_on_batch=lambda x: np.zeros((2, WORDS)))
    refused(r"must return logits \(samples, length, vocabulary\), not \(2, 10\)")


def test_a_column_that_compiles_nothing_calls_and_writes_nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Called, "compiles", False)
    model: Any = Called(monkeypatch, 3)
    assert predict.first_call("compiled_call", model, 16) is None
    assert timed(Writer(monkeypatch, 5), "compiled_call", Turns(1)) is None


def test_a_soak_keeps_the_calls_of_its_first_slice_and_no_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = dataclasses.replace(PACE, plan=TrialPlan(fixed_time=True), meter=Meter(reads_memory=True))
    model: Any = Model(monkeypatch, 3)
    calls = time_batches(model, 16, pace, turns := Turns(3))
    assert (turns.counts, len(calls.calls_ns)) == ([34] * 3, 34)
    pace.meter.done = 0
    model = Model(monkeypatch, 30)
    predict.time_builds(lambda: model.predict_on_batch(1), pace, turns := Turns(3))
    assert [(slice_.count, slice_.done) for slice_ in turns.slices] == [
        (4, 7),
        (4, 12),
        (4, 17),
    ]  # one is discarded before each
    assert len(model.seen) == pace.meter.done
