"""The phases of training and their hooks, with a clock that the test moves and models that take notes."""

import dataclasses
import math
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest

from kerasbench.protocol.measurement import Batch, Slice, Turn
from kerasbench.protocol.messages import Code, TrialFailure
from kerasbench.protocol.requests import Sizes, TrialPlan
from kerasbench.protocol.stages import PARTS_OF_STEP
from kerasbench.runners.baseline import BaselineRunner
from kerasbench.runners.feed import Feed
from kerasbench.scenario import Workload
from kerasbench.worker import parts, train
from kerasbench.worker.clock import Pace, SliceClock, WarmUpClock, granted
from kerasbench.worker.train import measure_sync_ns
from kerasbench.worker.usage import Reading
from tests import made
from tests.worker.stand_in_keras import WORKLOAD, Baseline, Turns, fed, runner_of

MS = 1_000_000
PLAN = TrialPlan(steps_per_slice=4, warmup_slices=1)


class Machine:
    """A clock that steps and epochs move, and notes who waited for the device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        self.synchronized: list[int] = []
        self.looked: list[int] = []  # when it looked for the processes that feed it
        self.stopped = False
        monkeypatch.setattr(train, "time", SimpleNamespace(perf_counter_ns=lambda: self.now_ns))
        meter: Any = SimpleNamespace(
            read=lambda: Reading(self.now_ns, 0, 0),
            with_card=lambda slice_: slice_,
            look_for_helpers=lambda: self.looked.append(self.now_ns),
            done=0,
        )
        self.pace = Pace(PLAN, self.synchronize, settle_ns=0, meter=meter)
        self.told: list[Slice | None] = []
        self.first_steps: list[int] = []  # when those of the epochs began

    def stop(self) -> None:
        self.stopped = True

    def synchronize(self) -> None:
        self.synchronized.append(self.now_ns)

    def ask(self, slice_: Slice | None) -> Turn | None:
        """Grant three turns, each after some time in which others have theirs."""
        assert self.synchronized[-1] == self.now_ns  # nothing of this one's is left to be done
        self.told.append(slice_)
        self.now_ns += 1000 * MS
        return Turn(len(self.told) - 1, 0) if len(self.told) <= 3 else None

    def window(self, kind: str, steps_per_epoch: int | None) -> tuple[SliceClock, Any]:
        clock = SliceClock(WarmUpClock(PLAN, steps_per_epoch, sync_ns=0), self.pace)
        clock.begin_epoch()
        return clock, getattr(train, kind)(self, clock, self.pace, self.ask)

    def fit(self, hooks: Any, steps: int, step_ns: int, epoch_ns: int = 0, most: int = 50, begin_ns: int = 0) -> int:
        """Train until a hook ends it, as Keras does: at the end of a step, or of an epoch; return the epochs."""
        for epoch in range(most):
            hooks.on_epoch_begin(epoch)
            self.now_ns += begin_ns
            self.first_steps.append(self.now_ns)
            for step in range(0 if self.stopped else steps):
                hooks.on_train_batch_begin(step)
                self.now_ns += step_ns
                if self.stopped:
                    break
            self.now_ns += epoch_ns
            if self.stopped:
                break
        hooks.on_train_end()
        return epoch + 1


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_slices_of_steps_are_measured_in_turns_and_the_fit_ends_with_the_last(machine: Machine) -> None:
    clock, window = machine.window("StepWindow", 20)
    epochs = machine.fit(window, steps=20, step_ns=2 * MS, epoch_ns=50 * MS)
    assert [(slice_.count, slice_.ns, slice_.cycle) for slice_ in clock.slices] == [(4, 8 * MS, n) for n in range(3)]
    assert machine.told == [None, *clock.slices]
    assert epochs == 2
    assert machine.stopped


@pytest.mark.parametrize("epoch_ms", [0, 50])
def test_what_the_end_of_an_epoch_takes_is_noted_where_no_other_column_had_a_turn(
    epoch_ms: int, machine: Machine
) -> None:
    clock, window = machine.window("StepWindow", 20)
    machine.fit(window, steps=20, step_ns=2 * MS, epoch_ns=epoch_ms * MS)
    assert clock.epoch_ends_ns == [epoch_ms * MS]  # of the first epoch: the second was cut short
    assert window.ended_ns > 0


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
    assert machine.stopped


def test_spans_are_of_every_epoch_and_wait_for_nothing(machine: Machine) -> None:
    machine.fit(spans := train.EpochSpans(), steps=2, step_ns=MS, epoch_ns=MS, most=4)
    assert (spans.epochs_ns, machine.synchronized) == ([3 * MS] * 4, [])


def test_a_synchronisation_costs_the_least_of_five(machine: Machine) -> None:
    costs = iter([100, 9, 7, 8, 30, 9])

    def synchronize() -> None:
        machine.now_ns += next(costs)

    assert (measure_sync_ns(synchronize), list(costs)) == (7, [])


PACE = Pace(TrialPlan(slice_ns=1, steps_per_slice=2, warmup_slices=1), lambda: None, settle_ns=0)


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A synchronisation costs nothing: this machine may be busy."""
    monkeypatch.setattr(train, "measure_sync_ns", lambda synchronize: 0)


def begun(feed: Feed | None = None, scores: Any = None) -> tuple[Baseline, BaselineRunner]:
    baseline = Baseline(scores)
    return baseline, runner_of(baseline, feed or fed())


def test_the_first_step_is_one_batch_in_the_given_order_and_the_spy_goes_in_any_case() -> None:
    baseline, runner = begun()
    first_step_ns, loss, batch = train.first_step(runner)
    assert baseline.epochs == [(16, 16, False)]
    assert (loss, batch) == (100_000.0, Batch("float32[16, 1]", "int32[16]"))
    assert first_step_ns > 0
    assert "compute_loss" not in vars(baseline)  # the spy has gone
    baseline.losses = iter([math.inf])
    with pytest.raises(TrialFailure, match="inf") as raised:
        train.first_step(runner)
    assert raised.value.failure.code is Code.NONFINITE
    assert "compute_loss" not in vars(baseline)


def test_single_steps_take_one_batch_after_another_and_then_the_first_again() -> None:
    baseline, runner = begun(fed(Workload(train=40, batch=16)))
    steps = [train.single_step(runner, index) for index in range(1, 5)]
    assert baseline.first_rows == [16, 0, 16, 0]  # two whole batches; the partial one is not taken
    assert baseline.epochs == [(16, 16, False)] * 4
    assert [step.loss for step in steps] == [100_000, 99_999, 99_998, 99_997]


@pytest.mark.parametrize(
    ("steps_per_epoch", "step_ms", "ends_ms"),
    [
        (20, 2, [2, 4, 6]),
        (2, 2, [2, 4 + 50, 6 + 50]),  # the third is the first of another epoch
        (20, 2_000, [2_000, 4_000]),  # so slow that one more would be too much
    ],
)
def test_the_first_steps_of_a_stream_end_where_the_next_one_begins(
    steps_per_epoch: int, step_ms: int, ends_ms: list[int], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "STREAM_START_NS", 1_500 * MS)
    start = train.StreamStart(cast("Any", SimpleNamespace(wait=machine.synchronize, stop=machine.stop)), 3)
    machine.fit(start, steps_per_epoch, step_ms * MS, epoch_ns=50 * MS)
    assert [at // MS for at in start.ends_ns] == ends_ms
    assert machine.synchronized == start.ends_ns  # each until the device is done with it
    assert machine.stopped


def test_a_stream_s_first_steps_are_those_of_one_fit(machine: Machine) -> None:
    feed = dataclasses.replace(fed(), stream={"x": None}, kind="a generator")
    given: list[Any] = []

    def fit(stream: Any, hooks: Any, epochs: int) -> Any:
        given.append(stream)
        machine.stopped = False
        machine.now_ns += 100 * MS  # before its first step
        machine.fit(hooks, 20, 2 * MS)
        return {"loss": [1.0]}

    model = SimpleNamespace(compute_loss=lambda x=None, y=None: 0.0)
    runner: Any = SimpleNamespace(feed=feed, fit=fit, model=model, wait=machine.synchronize, stop=machine.stop)
    first_ns, following_ns, batch = train.first_stream_steps(runner, 4)
    assert (first_ns // MS, [ns // MS for ns in following_ns]) == (102, [2, 2, 2])
    assert batch.x == "float32[16, 1]" and given == [{"x": None}]
    assert train.one_more_ns(runner) == 2 * MS


@pytest.mark.parametrize(("steps", "queued"), [(100, 3), (4, 0)])  # of so few steps, epochs are counted
def test_slices_of_a_stream_outweigh_its_lead_and_come_after_what_it_has_put_by(
    steps: int, queued: int, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = dataclasses.replace(fed(Workload(train=16 * steps, batch=16)), stream={"x": None}, queue=3)
    paces: list[Pace] = []

    def measure(runner: Any, rows: Any, pace: Pace, *arguments: Any) -> Any:
        paces.append(pace)
        return "its clock", {"loss": [1.0]}

    monkeypatch.setattr(train, "_measure", measure)
    runner: Any = SimpleNamespace(feed=feed)
    assert train.measure_steps(runner, machine.pace, machine.ask) == "its clock"  # type: ignore[comparison-overlap]
    assert [(pace.asynchronous, pace.queued) for pace in paces] == [(True, queued)]


def test_a_stream_that_ends_before_two_steps_is_no_script_s_fault_in_silence() -> None:
    feed = dataclasses.replace(fed(), stream={"x": None}, kind="a generator")

    def fit(given: Any, hooks: Any, epochs: int) -> Any:
        hooks.on_train_batch_begin(0)
        return {"loss": [1.0]}

    runner: Any = SimpleNamespace(feed=feed, fit=fit)
    with pytest.raises(TrialFailure, match="a generator ended before the second step"):
        train.one_more_ns(runner)


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
def test_a_model_learns_for_so_many_steps(workload: Any, parity: int, asked: int, steps: int) -> None:
    baseline, runner = begun(fed(workload))
    first_loss = train.first_step(runner)[1]
    learning, following = train.learn(runner, first_loss, sized(asked, parity))
    assert learning is not None
    assert learning.steps == baseline.steps == steps
    assert len(following) == parity - 1
    assert not any(shuffled for _, _, shuffled in baseline.epochs)
    # The loss of the first batch, after the first step and at the end; the fake's is its number of steps.
    assert (learning.batch_loss_before, learning.batch_loss_after) == (1.0, steps)
    assert baseline.evaluated[:1] == [workload.batch_size]


def test_it_learns_by_less_where_rows_are_large_steps_slow_or_many_sizes_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    baseline, runner = begun()
    learning, following = train.learn(runner, train.first_step(runner)[1], sized(), brief=True)
    assert learning is not None
    assert learning.steps == baseline.steps == 7
    assert (len(following), learning.accuracy, baseline.evaluated) == (5, None, [])  # the first batch once more
    baseline, runner = begun()
    runner.overrides = ["train_step"]
    learning, following = train.learn(runner, train.first_step(runner)[1], sized(), brief=True)
    assert learning is not None
    assert (learning.steps, len(following), baseline.evaluated) == (6, 5, [16, 16])
    slow = dataclasses.replace(made.SIZES, left_out=["epoch"])
    assert train.learn(runner, 1.0, lambda measure: slow, brief=True)[0] is None
    baseline, runner = begun()
    few = dataclasses.replace(made.SIZES, evaluated_batches=1)
    train.learn(runner, train.first_step(runner)[1], lambda measure: few)
    assert baseline.evaluated == [16, 16, 16]
    monkeypatch.setattr(train, "LEARN_BYTES", 8 * 16 * 4)  # of eight batches
    learning, _ = train.learn(begun()[1], 1.0, sized())
    assert learning is not None and learning.steps == 9


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
def test_accuracy_is_the_share_of_rows_that_are_right(targets: Any, scores: Any, accuracy: Any) -> None:
    learning, _ = train.learn(begun(fed(targets=targets), scores)[1], 1.0, sized())
    assert learning is not None and learning.accuracy == accuracy
    feed = fed(dataclasses.replace(WORKLOAD, feed=turned), targets=CLASSES)  # a pipeline has an order of its own
    runner: Any = SimpleNamespace(feed=feed, predictor=lambda batch: lambda x: np.eye(3)[x[:, 0].astype(int) % 3])
    assert train._accuracy(runner, feed.evaluated) == 1.0


def test_slices_are_of_whole_batches_or_of_whole_epochs_with_all_that_belongs_to_them() -> None:
    baseline, runner = begun(fed(Workload(train=330, batch=16, validation=20)))
    clock = train.measure_steps(runner, PACE, granted(3))
    assert [slice_.count for slice_ in (*clock.warmup.slices, *clock.slices)] == [2] * 4
    assert (set(baseline.epochs), baseline.evaluated) == ({(320, 16, True)}, [])
    baseline, runner = begun(fed(Workload(train=50, batch=16, validation=20, test=30, test_each_epoch=True)))
    clock = train.measure_steps(runner, PACE, granted(3))
    assert [slice_.count for slice_ in clock.slices] == [2] * 3
    assert (set(baseline.epochs), baseline.evaluated[:2]) == ({(50, 16, True)}, [20, 30])


def test_a_callback_that_ends_training_early_is_the_scenario_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    phases: list[Callable[..., object]] = [train.measure_steps, train.measure_epochs]
    for phase in phases:
        baseline, runner = begun()
        runner.callbacks = ["EarlyStopping"]
        monkeypatch.setattr(baseline, "evaluate", lambda *given, end=runner.stop: end() or {"loss": 1.0})  # of an epoch
        with pytest.raises(TrialFailure) as raised:
            phase(runner, PACE, granted(30))
        assert raised.value.failure.code is Code.INVALID
        assert "EarlyStopping" in raised.value.failure.remedy


def test_a_short_epoch_has_two_steps_the_partial_batch_and_the_published_rest() -> None:
    baseline, runner = begun(fed(Workload(train=330, batch=16, validation=20, test=30, test_each_epoch=True)))
    # How many short epochs a slice has is not the steps' affair.
    pace = Pace(TrialPlan(slice_ns=1, steps_per_slice=64, warmup_slices=9), PACE.synchronize, settle_ns=0)
    train.measure_epochs(runner, pace, turns := Turns(4))
    assert turns.counts == [1] * 4
    # The first begins the pipeline, one fills a slice by far; each turn discards one; in the last, fit ends.
    assert baseline.epochs == [(2 * 16 + 330 % 16, 16, True)] * (1 + 1 + 4 * 2 + 1)
    assert baseline.evaluated == [20, 30] * len(baseline.epochs)


def test_the_published_epochs_are_all_run_shuffled_and_predicted_twice() -> None:
    baseline, runner = begun(fed(dataclasses.replace(WORKLOAD, epochs=3)))
    published, learning, batch = train.run_published(runner)
    assert baseline.epochs == [(320, 16, True)] * 3
    assert (len(published.epochs_ns), len(published.predict_ns)) == (3, 2)
    assert {name: len(values) for name, values in published.history.items()} == {"loss": 3, "val_loss": 3}
    assert learning.steps == baseline.steps == 60
    assert batch == Batch("float32[16, 1]", "int32[16]")
    assert learning.batch_loss_before == 0.0 and learning.batch_loss_after == 60.0


def test_what_an_epoch_logs_and_is_no_finite_number_is_left_out() -> None:
    baseline, runner = begun(fed(dataclasses.replace(WORKLOAD, test=0)))
    logs: Any = {"loss": 2.0, "accuracy": 0.5, "f1": np.ones(3), "auc": math.nan}
    vars(baseline).update(train_epoch=lambda *given: dict(logs), evaluate=lambda *given: {"loss": 1.5})
    published, learning, batch = train.run_published(runner)
    assert published.history == {"loss": [2.0], "val_loss": [1.5], "accuracy": [0.5]}
    assert published.predict_ns == []  # there is no test set
    assert (learning.loss, batch) == (1.5, Batch("float32[16, 1]", "int32[16]"))  # nobody asked for ``compute_loss``


def test_a_step_is_taken_apart_with_the_scenario_s_own_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    _, runner = begun()
    assert parts.measure_parts(runner, PACE, granted(3)) is None  # of a baseline
    fitted, rows = Mock(wraps=runner.fit), runner.feed.train
    monkeypatch.setattr(runner, "callbacks", ["their own"])
    monkeypatch.setattr(runner, "fit", fitted)
    monkeypatch.setattr(runner.backend, "ready", lambda batch, steps: rows[: steps * 16], raising=False)
    monkeypatch.setattr(runner, "bare_steps", lambda batch: lambda: nullcontext(lambda steps: None))
    monkeypatch.setattr(runner, "peak_flops", lambda: 1.0)
    measured = parts.measure_parts(runner, PACE, turns := Turns(3))
    assert measured is not None
    assert {name: samples.count for name, samples in measured.samples.items()} == {
        name: [2] * 3 for name in PARTS_OF_STEP
    }
    assert turns.counts == [2 + 2 + 2] * 3  # the parent is told the sum
    assert [call.kwargs["whole"] for call in fitted.call_args_list] == [True] * 6  # two in each turn
