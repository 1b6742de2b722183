"""The phases of training and their callbacks, with a clock that the test moves and models that take notes."""

import dataclasses
import math
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from kerasbench.protocol.measurement import Batch, Slice, Turn
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import Protocol, Sizes
from kerasbench.scenario import ScenarioError, Workload
from kerasbench.worker import parts
from kerasbench.worker.clock import Pace, SliceClock, WarmUpClock, granted
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.native import NativeModel
from kerasbench.worker.usage import Reading
from tests import made
from tests.worker import stand_in_keras
from tests.worker.stand_in_keras import WORKLOAD, Baseline, fed

MS = 1_000_000
PROTOCOL = Protocol(steps_per_slice=4, warmup_slices=1)


class Machine:
    """A clock that steps and epochs move, and notes who waited for the device."""

    def __init__(self, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = module
        self.now_ns = 0
        self.synchronized: list[int] = []
        self.looked: list[int] = []  # when it looked for the processes that feed it
        self.model = SimpleNamespace(stop_training=False)
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter_ns=lambda: self.now_ns))
        meter: Any = SimpleNamespace(
            read=lambda: Reading(self.now_ns, 0, 0),
            with_card=lambda slice_: slice_,
            look_for_helpers=lambda: self.looked.append(self.now_ns),
            done=0,
        )
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

    def window(self, kind: str, steps_per_epoch: int | None) -> tuple[SliceClock, Any]:
        clock = SliceClock(WarmUpClock(PROTOCOL, steps_per_epoch, sync_ns=0), self.pace)
        return clock, getattr(self.module, kind)(clock, self.pace, self.ask)

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
def machine(train_module: Any, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(train_module, monkeypatch)


def test_slices_of_steps_are_measured_in_turns_and_the_fit_ends_with_the_last(machine: Machine) -> None:
    clock, window = machine.window("StepWindow", 20)
    epochs = machine.fit(window, steps=20, step_ns=2 * MS, epoch_ns=50 * MS)
    assert [(slice_.count, slice_.ns, slice_.cycle) for slice_ in clock.slices] == [(4, 8 * MS, n) for n in range(3)]
    assert machine.told == [None, *clock.slices]
    assert epochs == 2
    assert machine.model.stop_training


def test_the_device_is_waited_for_at_the_marks_and_before_a_turn_alone(machine: Machine) -> None:
    machine.fit(machine.window("StepWindow", 20)[1], steps=20, step_ns=MS)
    warmup = [1, 1 + 4]
    turn, discard, slice_ = 1000, 4, 4  # the first turn discards as many steps as a slice has
    first = [warmup[1], warmup[1] + turn + discard]
    first += [first[-1] + slice_]  # its end, and there the next one's turn
    assert [at // MS for at in machine.synchronized[:6]] == [*warmup, *first, first[-1]]
    assert machine.looked[0] // MS == first[1]  # where what is discarded ends: a feed has its processes by then


def test_slices_of_epochs_hold_what_an_epoch_costs_from_first_step_to_first_step(machine: Machine) -> None:
    clock, window = machine.window("EpochWindow", None)
    machine.fit(window, steps=2, step_ns=MS, epoch_ns=2 * MS, begin_ns=MS)
    assert [(slice_.count, slice_.ns) for slice_ in clock.slices] == [(4, 20 * MS)] * 3
    assert set(machine.synchronized) <= set(machine.first_steps)  # when what fed the epoch before is gone
    assert machine.model.stop_training


def test_a_device_is_kept_busy_for_so_long(train_module: Any, machine: Machine) -> None:
    waited_for: list[float] = []

    def wait(number: Any) -> None:
        waited_for.append(float(number))
        machine.now_ns += 3 * MS

    train_module.keras.ops = SimpleNamespace(full=np.full, matmul=np.matmul, convert_to_numpy=wait)
    train_module.BUSY_PRODUCTS = 2
    train_module.keep_busy(10 * MS)
    assert waited_for == [1 / 256] * 4


def test_spans_are_of_every_epoch_and_wait_for_nothing(train_module: Any, machine: Machine) -> None:
    machine.fit(spans := train_module.EpochSpans(), steps=2, step_ns=MS, epoch_ns=MS, most=4)
    assert (spans.epochs_ns, machine.synchronized) == ([3 * MS] * 4, [])


def test_a_synchronisation_costs_the_least_of_five(train_module: Any, machine: Machine) -> None:
    costs = iter([100, 9, 7, 8, 30, 9])

    def synchronize(model: object) -> None:
        machine.now_ns += next(costs)

    assert (train_module.measure_sync_ns(synchronize, machine.model), list(costs)) == (7, [])


@pytest.mark.parametrize("name", ["StepWindow", "EpochWindow", "EpochSpans"])
def test_no_clock_listens_to_the_end_of_a_step(train_module: Any, name: str) -> None:
    """One that did would have Keras wait for every step on torch and JAX."""
    assert not hasattr(getattr(train_module, name), "on_train_batch_end")


PACE = Pace(Protocol(slice_ns=1, steps_per_slice=2, warmup_slices=1), lambda model: None, settle_ns=0)


@pytest.fixture
def train(train_module: Any) -> Any:
    vars(train_module).update(measure_sync_ns=lambda synchronize, model: 0)  # not of this machine, which may be busy
    return train_module


def begun(**given: Any) -> tuple[Baseline, NativeModel]:
    baseline = Baseline(**given)
    return baseline, NativeModel(baseline)


def test_the_first_step_is_one_batch_in_the_given_order_and_the_spy_goes_in_any_case(train: Any) -> None:
    baseline, model = begun()
    first_step_ns, loss, batch = train.first_step(model, fed())
    assert baseline.epochs == [(16, 16, False)]
    assert (loss, batch) == (100_000.0, Batch("float32[16, 1]", "int32[16]"))
    assert first_step_ns > 0
    assert "compute_loss" not in vars(baseline)  # the spy has gone
    baseline.losses = iter([math.inf])
    with pytest.raises(TrialFailure, match="inf") as raised:
        train.first_step(model, fed())
    assert raised.value.failure.code is Code.NONFINITE
    assert "compute_loss" not in vars(baseline)


def test_what_a_user_s_model_calls_its_baseline_is_not_spied_on(train: Any) -> None:
    model: Any = SimpleNamespace(baseline="its own", compute_loss=lambda x, y: 0.0)
    with train.BatchSpy(model, fed()) as spy:
        model.compute_loss(np.zeros(3, np.float32), np.zeros(3, np.int32))
    assert spy.batch == Batch("float32[3]", "int32[3]")


def test_single_steps_take_one_batch_after_another_and_then_the_first_again(train: Any) -> None:
    baseline, model = begun()
    steps = train.single_steps(model, fed(Workload(train=40, batch=16)), 4, first=1)
    assert baseline.first_rows == [16, 0, 16, 0]  # two whole batches; the partial one is not taken
    assert baseline.epochs == [(16, 16, False)] * 4
    assert (steps.losses, len(steps.fits_ns)) == ([100_000, 99_999, 99_998, 99_997], 4)


def sized(learn_steps: int = 65, parity_steps: int = 6) -> Callable[[Callable[[], int]], Sizes]:
    """Return what has as many steps measured as parity needs anyway, and then knows the sizes."""

    def sizes(measure: Callable[[], int]) -> Sizes:
        assert all(measure() >= 0 for _ in range(parity_steps - 1))
        return dataclasses.replace(made.SIZES, parity_steps=parity_steps, learn_steps=learn_steps)

    return sizes


@pytest.mark.parametrize(
    ("workload", "parity", "asked", "steps"),
    [
        (Workload(train=50_000, batch=32), 6, 65, 65),
        (WORKLOAD, 6, 65, 66),  # three epochs of 20 steps after the first six
        (Workload(train=4_096, batch=1_024), 6, 18, 18),  # twelve after six, in epochs of 4
        (Workload(train=20_000), 6, 6, 6),
        (WORKLOAD, 2, 2, 2),
        (WORKLOAD, 6, 8, 8),
    ],
)
def test_a_model_learns_for_so_many_steps(train: Any, workload: Any, parity: int, asked: int, steps: int) -> None:
    baseline, model = begun()
    first_loss = train.first_step(model, fed(workload))[1]
    learning, following, _ = train.learn(model, fed(workload), first_loss, sized(asked, parity))
    assert learning.steps == baseline.steps == steps
    assert len(following.losses) == len(following.steps_ns) == parity - 1
    assert not any(shuffled for _, _, shuffled in baseline.epochs)
    # The loss of the first batch, after the first step and at the end; the fake's is its number of steps.
    assert (learning.batch_loss_before, learning.batch_loss_after) == (1.0, steps)
    assert baseline.evaluated[:1] == [workload.batch_size]


def test_it_learns_by_less_where_rows_are_large_steps_slow_or_many_sizes_swept(train: Any) -> None:
    baseline, model = begun()
    learning, following, _ = train.learn(model, fed(), train.first_step(model, fed())[1], sized(), brief=True)
    assert learning.steps == baseline.steps == 6
    assert (len(following.losses), learning.accuracy, baseline.evaluated) == (5, None, [16, 16])
    baseline, model = begun()
    few = dataclasses.replace(made.SIZES, evaluated_batches=1)
    train.learn(model, fed(), train.first_step(model, fed())[1], lambda measure: few)
    assert baseline.evaluated == [16, 16, 16]
    train.LEARN_BYTES = 8 * 16 * 4  # of eight batches
    assert train.learn(begun()[1], fed(), 1.0, sized())[0].steps == 9


CLASSES: Any = np.arange(30, dtype=np.int32) % 3
SCORES = np.eye(3, dtype=np.float32)[CLASSES]
HALF = np.concatenate([np.roll(SCORES[:15], 1, axis=1), SCORES[15:]])  # of the rows are right


def turned(x: Any, y: Any, batch: int) -> list[tuple[Any, Any]]:
    return [(x[::-1], y[::-1])]


@pytest.mark.parametrize(
    ("targets", "scores", "accuracy"),
    [
        (CLASSES, SCORES, 1.0),
        (CLASSES, HALF, 0.5),
        (CLASSES.reshape(-1, 1), HALF, 0.5),  # a column of classes, as keras.datasets has CIFAR's
        (SCORES, HALF, 0.5),  # one-hot
        (0.8 * SCORES + np.float32(0.2 / 3), HALF, 0.5),  # smoothed
        (CLASSES, np.zeros((30, 1)), None),  # one output: a regression, or a logistic one
        (np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32), SCORES, None),  # three numbers
        (1 - SCORES, SCORES, None),  # several labels
        (CLASSES, np.zeros((30, 4, 3)), None),  # a sequence
        (CLASSES.astype(np.float32), HALF, 0.5),
        (CLASSES + np.float32(0.5), SCORES, None),  # numbers, of which the outputs are quantiles
        (CLASSES.reshape(-1, 1) + np.float32(0.5), SCORES, None),
    ],
)
def test_accuracy_is_the_share_of_rows_that_are_right(train: Any, targets: Any, scores: Any, accuracy: Any) -> None:
    assert train.learn(begun(scores=scores)[1], fed(targets=targets), 1.0, sized())[0].accuracy == accuracy
    feed = fed(dataclasses.replace(WORKLOAD, feed=turned), targets=CLASSES)  # a pipeline has an order of its own
    model = SimpleNamespace(predict=lambda x, **options: np.eye(3)[x[:, 0].astype(int) % 3])
    assert train._accuracy(model, feed, feed.evaluated) == 1.0


def test_slices_are_of_whole_batches_or_of_whole_epochs_with_all_that_belongs_to_them(train: Any) -> None:
    baseline, model = begun()
    clock = train.measure_steps(model, fed(Workload(train=330, batch=16, validation=20)), [], PACE, granted(3))
    assert [slice_.count for slice_ in (*clock.warmup.slices, *clock.slices)] == [2] * 4
    assert (set(baseline.epochs), baseline.evaluated) == ({(320, 16, True)}, [])
    baseline, model = begun()
    workload = Workload(train=50, batch=16, validation=20, test=30, test_each_epoch=True)
    clock = train.measure_steps(model, fed(workload), [], PACE, granted(3))
    assert [slice_.count for slice_ in clock.slices] == [2] * 3
    assert (set(baseline.epochs), baseline.evaluated[:2]) == ({(50, 16, True)}, [20, 30])


def test_a_callback_that_ends_training_early_is_the_scenario_s_fault(train: Any) -> None:
    class EarlyStopping(stand_in_keras.Callback):
        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            self._model.stop_training = True

    for phase in (train.measure_steps, train.measure_epochs):
        with pytest.raises(TrialFailure) as raised:
            phase(begun()[1], fed(), [EarlyStopping()], PACE, granted(30))
        assert raised.value.failure.code is Code.INVALID
        assert "EarlyStopping" in raised.value.failure.remedy


def test_a_short_epoch_has_two_steps_the_partial_batch_and_the_published_rest(train: Any) -> None:
    baseline, model = begun()
    workload = Workload(train=330, batch=16, validation=20, test=30, test_each_epoch=True)
    # How many short epochs a slice has is not the steps' affair.
    pace = Pace(Protocol(slice_ns=1, steps_per_slice=64, warmup_slices=9), PACE.synchronize, settle_ns=0)
    assert train.measure_epochs(model, fed(workload), [], pace, granted(4)).count == [1] * 4
    # The first begins the pipeline, two find out how many a slice has; each turn discards one; in the last, fit ends.
    assert baseline.epochs == [(2 * 16 + 330 % 16, 16, True)] * (1 + 2 + 4 * 2 + 1)
    assert baseline.evaluated == [20, 30] * len(baseline.epochs)


def test_the_published_epochs_are_all_run_shuffled_and_predicted_twice(train: Any) -> None:
    baseline = Baseline()
    model: Any = NativeModel(baseline)
    workload = dataclasses.replace(WORKLOAD, epochs=3)
    published, learning, batch = train.run_published(model, fed(workload), [])
    assert baseline.epochs == [(320, 16, True)] * 3
    assert (len(published.epochs_ns), len(published.predict_ns), published.predict_samples) == (3, 2, 30)
    assert {name: len(values) for name, values in published.history.items()} == {"loss": 3, "val_loss": 3}
    assert learning.steps == baseline.steps == 60
    assert batch == Batch("float32[16, 1]", "int32[16]")
    assert learning.batch_loss_before == 0.0 and learning.batch_loss_after == 60.0
    model = silent({"loss": 1.5})  # a metric that is no finite number is left out
    model.baseline.train_epoch = lambda *_: {"loss": 2.0, "accuracy": 0.5, "f1": np.ones(3), "auc": math.nan}
    published, *_ = train.run_published(model, fed(dataclasses.replace(WORKLOAD, test=0)), [])
    assert published.history == {"loss": [2.0], "val_loss": [1.5], "accuracy": [0.5]}
    assert published.predict_ns == []  # there is no test set


def silent(said: Any, kind: type[NativeModel] = NativeModel) -> Any:
    """A model with a step of its own, which never asks for ``compute_loss``, and what comes of evaluating it."""
    baseline: Any = Baseline()
    baseline.train_epoch = lambda *given: {"loss": next(baseline.losses)}
    baseline.evaluate = Mock(return_value=said, side_effect=said if isinstance(said, Exception) else None)
    model: Any = kind(baseline)
    model.loss = None  # of compile()
    return model


def test_a_step_of_its_own_need_not_ask_for_the_loss_which_may_be_zero(train: Any) -> None:
    class Evaluated(NativeModel):
        def test_step(self, data: Any) -> None: ...

    _, learning, batch = train.run_published(silent({"loss": 1.5}), fed(), [])
    assert (learning.loss, batch) == (1.5, Batch("float32[16, 1]", "int32[16]"))
    native = silent({"loss": 0.0})
    del native.loss
    for model in (native, silent({"loss": 0.0}, Evaluated)):
        assert train.learn(model, fed(), 1.0, sized())[0].loss == 0


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (ValueError("No loss to compute. Provide a `loss` argument in `compile()`."), "has no loss: give compile"),
        ({"loss": 0.0}, "has no loss: give compile"),  # what Keras returns on JAX
        ({"accuracy": 1.0}, "own test_step must return its loss"),
    ],
)
def test_a_step_of_its_own_is_evaluated(train: Any, said: Any, complaint: str) -> None:
    for phase, arguments in ((train.learn, (1.0, sized())), (train.run_published, ([],))):
        with pytest.raises(ScenarioError, match=complaint):
            phase(silent(said), fed(), *arguments)
        with pytest.raises(ValueError, match="another"):
            phase(silent(ValueError("another")), fed(), *arguments)


def test_a_step_is_taken_apart_with_the_scenario_s_own_callbacks(train: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, counts = fed(), stand_in_keras.Callback()
    backend: Any = SimpleNamespace(
        on_device=lambda arrays: arrays,
        ready=lambda batch, steps: feed.training_arguments(feed.train[: steps * feed.batch]),
        bare_steps=lambda model, batch: lambda: nullcontext(lambda steps: None),
    )
    monkeypatch.setattr(parts, "peak_flops", lambda: 1.0)
    monkeypatch.setattr(counts, "on_train_end", ended := Mock())
    measured = parts.measure_parts(begun()[1], feed, [counts], backend, PACE, granted(3))
    assert [len(samples) for samples in (measured.arrays, measured.ready, measured.bare)] == [3, 3, 3]
    assert ended.call_count == 2 * 3  # one from arrays and one that is ready, in each turn
