"""The callbacks that read the clock inside ``fit``, with a clock that the test moves and a model that only stops."""

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.protocol.measurement import Slice, Turn
from kerasbench.protocol.requests import Protocol
from kerasbench.worker.clock import LEAD_STEPS, Pace, SliceClock, WarmUpClock
from kerasbench.worker.usage import Reading
from tests.worker import stand_in_keras

MS = 1_000_000
PROTOCOL = Protocol(steps_per_slice=4, warmup_slices=1)


@pytest.fixture
def window() -> Iterator[Any]:
    with stand_in_keras.train_module() as module:
        yield module


class Machine:
    """A clock that steps and epochs move, and notes who waited for the device."""

    def __init__(self, window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        self.synchronized: list[int] = []
        self.evaluated: list[dict[str, Any]] = []
        self.model = SimpleNamespace(stop_training=False, evaluate=lambda **given: self.evaluated.append(given))
        monkeypatch.setattr(window, "time", SimpleNamespace(perf_counter_ns=lambda: self.now_ns))
        meter: Any = SimpleNamespace(read=lambda: Reading(self.now_ns, 0, 0), with_card=lambda slice_: slice_)
        self.pace = Pace(PROTOCOL, self.synchronize, settle_ns=0, meter=meter)
        self.told: list[Slice | None] = []
        self.first_steps: list[int] = []  # when those of the epochs began

    def synchronize(self, model: Any) -> None:
        assert model is self.model
        self.synchronized.append(self.now_ns)

    def ask(self, slice_: Slice | None) -> Turn | None:
        """Grant three turns, each after some time in which others have theirs."""
        assert self.synchronized[-1] == self.now_ns  # nothing of this one's is left to be done
        self.told.append(slice_)
        self.now_ns += 1000 * MS
        return Turn(len(self.told) - 1, 0) if len(self.told) <= 3 else None

    def fit(self, callback: Any, steps: int, step_ns: int, epoch_ns: int = 0, most: int = 50, begin_ns: int = 0) -> int:
        """Train until the callback ends it, as Keras does: at the end of a step, or of an epoch; return the epochs."""
        callback.set_model(self.model)
        for epoch in range(most):
            callback.on_epoch_begin(epoch)
            self.now_ns += begin_ns
            self.first_steps.append(self.now_ns)
            for step in range(0 if self.model.stop_training else steps):
                callback.on_train_batch_begin(step)
                self.now_ns += step_ns
                if self.model.stop_training:
                    break
            self.now_ns += epoch_ns
            callback.on_epoch_end(epoch)
            if self.model.stop_training:
                break
        callback.on_train_end()
        return epoch + 1


@pytest.fixture
def machine(window: Any, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(window, monkeypatch)


def clock_of(machine: Machine, steps_per_epoch: int | None) -> SliceClock:
    return SliceClock(WarmUpClock(PROTOCOL, steps_per_epoch, sync_ns=0), machine.pace)


def test_slices_of_steps_are_measured_in_turns_and_the_fit_ends_with_the_last(window: Any, machine: Machine) -> None:
    clock = clock_of(machine, 20)
    callback = window.StepWindow(clock, machine.pace, machine.ask)
    epochs = machine.fit(callback, steps=20, step_ns=2 * MS, epoch_ns=50 * MS)
    assert [(slice_.count, slice_.ns, slice_.cycle) for slice_ in clock.slices] == [(4, 8 * MS, n) for n in range(3)]
    assert machine.told == [None, *clock.slices]
    assert epochs == 2
    assert machine.model.stop_training


def test_the_device_is_waited_for_at_the_marks_and_before_a_turn_alone(window: Any, machine: Machine) -> None:
    clock = clock_of(machine, 20)
    machine.fit(window.StepWindow(clock, machine.pace, machine.ask), steps=20, step_ns=MS)
    warmup = [LEAD_STEPS, LEAD_STEPS + 4]
    turn, discard, slice_ = 1000, 4, 4  # the first turn discards as many steps as a slice has
    first = [warmup[1], warmup[1] + turn + discard]
    first += [first[-1] + slice_]  # its end, and there the next one's turn
    assert [at // MS for at in machine.synchronized[:6]] == [*warmup, *first, first[-1]]


def test_slices_of_epochs_hold_what_an_epoch_costs(window: Any, machine: Machine) -> None:
    clock = clock_of(machine, None)
    callback = window.EpochWindow(clock, machine.pace, machine.ask)
    machine.fit(callback, steps=2, step_ns=MS, epoch_ns=3 * MS)
    assert [(slice_.count, slice_.ns) for slice_ in clock.slices] == [(4, 20 * MS)] * 3
    assert machine.model.stop_training


def test_an_epoch_begins_at_its_first_step_when_what_fed_the_one_before_is_gone(window: Any, machine: Machine) -> None:
    clock = clock_of(machine, None)
    machine.fit(window.EpochWindow(clock, machine.pace, machine.ask), steps=2, step_ns=MS, begin_ns=3 * MS)
    assert [(slice_.count, slice_.ns) for slice_ in clock.slices] == [(4, 20 * MS)] * 3
    assert set(machine.synchronized) <= set(machine.first_steps)


def test_a_callback_of_the_scenario_s_that_ends_training_is_not_overruled(window: Any, machine: Machine) -> None:
    callback = window.StepWindow(clock_of(machine, 20), machine.pace, machine.ask)
    callback.set_model(machine.model)
    callback.on_epoch_begin(0)
    machine.model.stop_training = True
    for step in range(7):
        callback.on_train_batch_begin(step)
        machine.now_ns += MS
    assert machine.told == [None]
    assert machine.model.stop_training


def test_a_device_is_kept_busy_for_as_long_as_it_is_asked_to(
    window: Any, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    products: list[int] = []

    def waited_for(product: Any) -> None:
        machine.now_ns += 3 * MS

    class Ones:
        def __getitem__(self, place: tuple[int, int]) -> None:
            products.append(machine.now_ns)

    ops = SimpleNamespace(ones=lambda shape: None, matmul=lambda a, b: Ones(), convert_to_numpy=waited_for)
    monkeypatch.setattr(window.keras, "ops", ops, raising=False)
    window.keep_busy(10 * MS)
    assert len(products) == 4


def test_spans_are_of_every_epoch_and_wait_for_nothing(window: Any, machine: Machine) -> None:
    spans = window.EpochSpans()
    machine.fit(spans, steps=2, step_ns=MS, epoch_ns=MS, most=4)
    assert spans.epochs_ns == [3 * MS] * 4
    assert machine.synchronized == []


def test_the_test_set_is_passed_over_at_the_end_of_each_epoch(window: Any, machine: Machine) -> None:
    machine.fit(window.TestPass({"x": 1}), steps=1, step_ns=MS, most=3)
    assert machine.evaluated == [{"x": 1, "verbose": 0}] * 3


def test_a_synchronisation_costs_the_least_of_five(window: Any, machine: Machine) -> None:
    costs = iter([100, 9, 7, 8, 30, 9])
    readings = count()

    def synchronize(model: object) -> None:
        next(readings)
        machine.now_ns += next(costs)

    assert window.measure_sync_ns(synchronize, machine.model) == 7
    assert next(readings) == 6


@pytest.mark.parametrize("name", ["StepWindow", "EpochWindow", "EpochSpans"])
def test_no_clock_listens_to_the_end_of_a_step(window: Any, name: str) -> None:
    """One that did would have Keras wait for every step on torch and JAX."""
    assert not hasattr(getattr(window, name), "on_train_batch_end")
