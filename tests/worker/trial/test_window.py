"""The callbacks that read the clock inside ``fit``, with a clock that the test moves and a model that only stops."""

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.exchange.requests import Protocol
from kerasbench.worker.trial.blocks import LEAD_STEPS, BlockClock
from tests.worker.trial import fake_keras

MS = 1_000_000


@pytest.fixture
def window() -> Iterator[Any]:
    with fake_keras.imported("window") as module:
        yield module


class Machine:
    """A clock that steps and epochs move, and notes who waited for the device."""

    def __init__(self, window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        self.synchronized: list[int] = []
        self.evaluated: list[dict[str, Any]] = []
        self.model = SimpleNamespace(stop_training=False, evaluate=lambda **given: self.evaluated.append(given))
        monkeypatch.setattr(window, "time", SimpleNamespace(perf_counter_ns=lambda: self.now_ns))

    def synchronize(self, model: Any) -> None:
        assert model is self.model
        self.synchronized.append(self.now_ns)

    def fit(self, callback: Any, steps: int, step_ns: int, epoch_ns: int = 0, most: int = 50) -> int:
        """Train until the callback ends it, as Keras does: at the end of a step, or of an epoch; return the epochs."""
        callback.set_model(self.model)
        for epoch in range(most):
            callback.on_epoch_begin(epoch)
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


FROZEN = Protocol(blocks=3, steps_per_block=4, warmup_blocks=1)


def test_blocks_of_steps_are_marked_and_the_fit_ends_with_the_last(window: Any, machine: Machine) -> None:
    clock = BlockClock(FROZEN, 10, sync_ns=0)
    epochs = machine.fit(window.StepWindow(clock, machine.synchronize), steps=10, step_ns=2 * MS, epoch_ns=50 * MS)
    assert [(block.count, block.ns) for block in (*clock.warmup, *clock.blocks)] == [(4, 8 * MS)] * 4
    assert epochs == 2
    assert machine.model.stop_training


def test_the_device_is_waited_for_at_the_marks_alone(window: Any, machine: Machine) -> None:
    clock = BlockClock(FROZEN, 10, sync_ns=0)
    machine.fit(window.StepWindow(clock, machine.synchronize), steps=10, step_ns=MS)
    epochs_ms = (0, 10)
    assert machine.synchronized == [(began + LEAD_STEPS + step) * MS for began in epochs_ms for step in (0, 4, 8)]


def test_blocks_of_epochs_hold_what_an_epoch_costs(window: Any, machine: Machine) -> None:
    clock = BlockClock(FROZEN, None, sync_ns=0)
    machine.fit(window.EpochWindow(clock, machine.synchronize), steps=2, step_ns=MS, epoch_ns=3 * MS)
    assert [(block.count, block.ns) for block in clock.blocks] == [(4, 20 * MS)] * 3
    assert machine.model.stop_training


def test_neither_the_first_epoch_nor_the_last_is_timed(window: Any, machine: Machine) -> None:
    timer = window.EpochTimer(machine.synchronize, max_ns=10**12)
    epochs = machine.fit(timer, steps=2, step_ns=MS, epoch_ns=3 * MS, most=7)
    assert (epochs, timer.epochs_ns) == (7, [5 * MS] * 5)
    assert len(machine.synchronized) == 7


@pytest.mark.parametrize(("max_ns", "timed"), [(1, 1), (5 * MS, 1), (6 * MS, 2)])
def test_no_epoch_is_begun_once_its_time_is_up_and_one_is_timed_at_least(
    window: Any, machine: Machine, max_ns: int, timed: int
) -> None:
    timer = window.EpochTimer(machine.synchronize, max_ns)
    machine.fit(timer, steps=2, step_ns=MS, epoch_ns=3 * MS, most=7)
    assert timer.epochs_ns == [5 * MS] * timed
    assert machine.model.stop_training


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


@pytest.mark.parametrize("name", ["StepWindow", "EpochWindow", "EpochTimer", "EpochSpans"])
def test_no_clock_listens_to_the_end_of_a_step(window: Any, name: str) -> None:
    """One that did would have Keras wait for every step on torch and JAX."""
    assert not hasattr(getattr(window, name), "on_train_batch_end")
