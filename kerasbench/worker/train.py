"""Training as a user does it, by `fit`, and the clock inside it: hooks that leave asynchronous dispatch alone."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kerasbench.protocol.measurement import Batch, Learning, Published
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.protocol.requests import Sizes, TrialPlan, counts_epochs
from kerasbench.runners import Hooks, Logs
from kerasbench.runners.feed import Fed, Rows
from kerasbench.runners.inputs import describe, is_nested, mapped
from kerasbench.runners.layers import random_layers
from kerasbench.runners.trainer import Trainer
from kerasbench.scenario import ScenarioError, Workload
from kerasbench.worker.clock import LEAST_STEPS, MS, Ask, Pace, SliceClock, State, WarmUpClock

ENDLESS = 1_000_000  # epochs; a window ends the fit when there are no more turns
SHORT_EPOCH_STEPS = 2  # the fewer steps, the larger the share of the cost per epoch in an epoch
STREAM_START_NS = 3_000 * MS  # so long the first steps on a stream may take, after the very first
# Of rows in the steps of learning: a network that takes pictures of 224 pixels needs seconds for each step.
LEARN_BYTES = 64 << 20
LEAST_QUEUES = 4  # times what a feed's workers put by is an epoch long, so that the rest of it holds slices
SHARES_TOLERANCE = 1e-3  # float32 targets that were smoothed over a thousand classes sum to one within a ten-thousandth


def measure_sync_ns(synchronize: Callable[[], None]) -> int:
    """Return the cost of one clock reading with its synchronisation on an idle device, in ns: the least of five."""
    marks_ns = []
    for _ in range(6):
        synchronize()
        marks_ns.append(time.perf_counter_ns())
    return min(later - earlier for earlier, later in pairwise(marks_ns))


class _Window(Hooks):
    """Measure slices inside a `fit`, which waits here for its turns and ends when there are no more."""

    def __init__(self, runner: Trainer, clock: SliceClock, pace: Pace, ask: Ask) -> None:
        self._stop = runner.stop
        self._clock = clock
        self._pace = pace
        self._ask = ask
        self._slice_end: tuple[int, int] | None = (
            None  # the step before which it ended, and when; None: others had turns
        )
        self.ended_ns = 0  # when there were no more turns

    def _reached(self, step: int) -> None:
        # Several things may be due before one step: the end of a slice, then the turn for the next.
        while self._clock.wants(step):
            if self._clock.state is State.DISCARDING:  # a feed's own processes were started meanwhile
                self._pace.meter.look_for_helpers()
            self._pace.synchronize()  # before a turn too: nothing shall go on while others have theirs
            if self._clock.state is State.WAITING:
                turn = self._ask(self._clock.slices[-1] if self._clock.slices else None)
                self._clock.take(step, turn)
                self._slice_end = None
                if turn is None:
                    self.ended_ns = time.perf_counter_ns()
                    self._stop()
            else:
                now = self._pace.meter.read()
                if self._clock.state is State.MEASURING:
                    self._slice_end = step, now.ns
                self._clock.mark(step, now)


class StepWindow(_Window):
    """Measure slices of steps. An epoch whose rest holds no slice ends in the turn of its last: it is timed, too."""

    _last = 0  # step of this epoch so far

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        if epoch:
            self._clock.warmup.shorten(self._last + self._clock.warmup.execution)
        self._clock.begin_epoch()

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self._last = batch
        if batch == 0:
            self._note_epoch_end()
        self._reached(batch)
        self._pace.meter.done += self._clock.warmup.execution

    def _note_epoch_end(self) -> None:
        if self._clock.state is State.WAITING and self._slice_end is not None:
            step, end_ns = self._slice_end
            warmup = self._clock.warmup
            rest = (warmup.last_step or 0) + warmup.execution - step
            passed_ns = time.perf_counter_ns() - end_ns
            self._clock.epoch_ends_ns.append(round(passed_ns - rest * self._clock.slices[-1].unit_ns))


class EpochWindow(_Window):
    """Measure slices of whole epochs, each from its first step to that of the next one, where it waits for its turn.

    After a wait at ``on_epoch_begin`` TensorFlow drops late what fed the last (docs/make-it-faster.md, "Late epochs").
    """

    _epoch = 0

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        if batch == 0:
            self._reached(self._epoch)
            self._pace.meter.done += 1


class EpochSpans(Hooks):
    """From an epoch's beginning to the next one's, without a synchronisation: `fit` ends an epoch with one."""

    def __init__(self) -> None:
        self._marks_ns: list[int] = []

    @property
    def epochs_ns(self) -> list[int]:
        return [later - earlier for earlier, later in pairwise(self._marks_ns)]

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._marks_ns.append(time.perf_counter_ns())

    def on_train_end(self, logs: object = None) -> None:
        self._marks_ns.append(time.perf_counter_ns())


class StepBegin(Hooks):
    """Note when the last step began: a `fit` of one batch takes some time before, which is no step's."""

    began_ns = 0

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self.began_ns = time.perf_counter_ns()


class StreamStart(Hooks):
    """Time the first steps of a `fit` on a stream, each until the device is done with it, and end it after these."""

    def __init__(self, runner: Trainer, steps: int) -> None:
        self._runner, self._steps = runner, steps
        self._began = False
        self.ends_ns: list[int] = []  # when each has ended

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        if not self._began:
            self._began = True
            return
        self._runner.wait()
        self.ends_ns.append(time.perf_counter_ns())
        is_slow = self.ends_ns[-1] - self.ends_ns[0] > STREAM_START_NS
        if len(self.ends_ns) >= self._steps or is_slow:
            self._runner.stop()


@contextmanager
def batch_of_loss(runner: Trainer) -> Iterator[list[Batch]]:
    """Note what the loss is computed from, last of the list, in the step that is traced or run meanwhile."""
    # A step of the model's own may compute no loss by this method: then the rows as they are fed.
    rows, compute_loss = runner.feed.first_batch, runner.model.compute_loss
    batches = [Batch(describe(rows.x), describe(rows.y))]

    def note(x: Any = None, y: Any = None, *rest: Any, **options: Any) -> Any:
        batches.append(Batch(describe(x), describe(y)))
        return compute_loss(x, y, *rest, **options)

    runner.model.compute_loss = note
    try:
        yield batches
    finally:
        del runner.model.compute_loss


def first_step(runner: Trainer) -> tuple[int, float, Batch]:
    """Trace, compile and run one step; return its time in ns: `fit` ends an epoch synchronised."""
    with batch_of_loss(runner) as batches:
        start_ns = time.perf_counter_ns()
        history = runner.fit(runner.feed.first_batch, shuffle=False)
        first_step_ns = time.perf_counter_ns() - start_ns
    return first_step_ns, _last_loss(history), batches[-1]


def first_stream_steps(runner: Trainer, steps: int) -> tuple[int, list[int], Batch]:
    """Return what the first step of a script's `fit` on a stream takes, with its start, and what each later one does.

    No array has been trained on before. Where one has, TensorFlow's steps on a stream may take a third less: glibc then
    keeps memory that each step else asks for anew (docs/limitations.md, "Returning memory").
    """
    start_ns = time.perf_counter_ns()
    with batch_of_loss(runner) as batches:
        ends_ns = _begin_stream(runner, steps)
    return ends_ns[0] - start_ns, [later - earlier for earlier, later in pairwise(ends_ns)], batches[-1]


def one_more_ns(runner: Trainer) -> int:
    """Return what a step on a stream takes: the second one of a new `fit`."""
    first_ns, second_ns = _begin_stream(runner, 2)
    return second_ns - first_ns


def _begin_stream(runner: Trainer, steps: int) -> list[int]:
    """Return when each of the first steps of a `fit` on a stream has ended."""
    feed = runner.feed
    assert feed.stream is not None
    start = StreamStart(runner, steps)
    logs = runner.fit(feed.stream, start, ENDLESS)
    if len(start.ends_ns) < min(2, steps):
        cause = f"{feed.kind} ended before the second step of fit()"
        raise TrialFailure(Failure(Code.INVALID, cause, "let it give batches for as long as fit() asks for them"))
    _last_loss(logs)
    return start.ends_ns


class Step(NamedTuple):
    loss: float
    fit_ns: int
    ns: int  # without what a `fit` does before its step


def single_step(runner: Trainer, index: int) -> Step:
    """Train on the batch of that number in the given order; after the last full one comes the first again."""
    feed, begin = runner.feed, StepBegin()
    start = index % (len(feed.train) // feed.batch) * feed.batch
    start_ns = time.perf_counter_ns()
    history = runner.fit(feed.train[start : start + feed.batch], begin, shuffle=False)
    ended_ns = time.perf_counter_ns()
    return Step(_last_loss(history), ended_ns - start_ns, ended_ns - begin.began_ns)


Sized = Callable[[Callable[[], int]], Sizes]  # has one unit measured, which returns its ns; returns the row's sizes


def learn(runner: Trainer, first_loss: float, sized: Sized, brief: bool = False) -> tuple[Learning | None, list[Step]]:
    """Train as many steps as all columns do, in the given order, and evaluate, to compare what backends learned.

    Return also the steps after the first, by which parity is judged; ``brief``: train these alone, and
    the first batch once more, whose loss tells the same as an evaluation where a step draws nothing at random. None: a
    step takes so long that this is left out, too.
    """
    feed = runner.feed
    evaluates = not brief or "train_step" in runner.overrides or bool(random_layers(runner.layers))
    evaluates = evaluates and not feed.is_of_script  # which may have no loss but in its own training step
    before = _evaluate(runner, feed.first_batch) if evaluates else first_loss
    following: list[Step] = []

    def train() -> int:
        following.append(single_step(runner, 1 + len(following)))
        return following[-1].ns

    sizes = sized(train)
    while 1 + len(following) < sizes.parity_steps:
        train()
    trained = sizes.parity_steps
    if brief and (sizes.left_out or feed.loop is not None):  # which gives each step other rows
        return None, following
    if brief:
        after = _evaluate(runner, feed.first_batch) if evaluates else single_step(runner, 0).loss
        trained += not evaluates
        return Learning(trained, before, after, loss=after, accuracy=None), following
    within_bytes = LEARN_BYTES // max(1, feed.batch * feed.train.row_bytes)
    more = 1 + min(sizes.learn_steps - 1, within_bytes) - trained
    if more > 0:
        in_one_epoch = min(more, len(feed.train) // feed.batch)
        epochs = -(-more // in_one_epoch)
        _last_loss(runner.fit(feed.train[: in_one_epoch * feed.batch], epochs=epochs, shuffle=False))
        trained += epochs * in_one_epoch
    seen = feed.evaluated[: sizes.evaluated_batches * feed.batch]
    return _judge_learning(runner, seen, trained, before), following


def run_published(runner: Trainer) -> tuple[Published, Learning, Batch]:
    """Run the published epochs as published, shuffled as Keras does by default; then predict the test set twice."""
    feed = runner.feed
    with batch_of_loss(runner) as batches:
        before = _evaluate(runner, feed.first_batch)
    spans = EpochSpans()
    start_ns = time.perf_counter_ns()
    history = runner.fit(feed.train, spans, epochs=feed.workload.epochs, whole=True)
    total_ns = time.perf_counter_ns() - start_ns
    _last_loss(history)
    predict_ns, predict = [], runner.predictor(feed.predict_batch)
    for _ in range(2 if len(feed.test) else 0):
        x = feed.inputs(feed.test)
        start_ns = time.perf_counter_ns()
        predict(x)
        predict_ns.append(time.perf_counter_ns() - start_ns)
    published = Published(total_ns, spans.epochs_ns, _logged(history), predict_ns)
    steps = feed.workload.steps * feed.workload.epochs
    return published, _judge_learning(runner, feed.evaluated, steps, before), batches[-1]


def measure_steps(runner: Trainer, pace: Pace, ask: Ask) -> SliceClock:
    feed, rows, full_steps = runner.feed, runner.feed.train, None
    if feed.stream is not None:
        return _measure_stream(runner, pace, ask)
    if not counts_epochs(feed.workload.steps):
        pace = dataclasses.replace(pace, queued=runner.queued_batches)
        rows = rows.repeated(max(len(rows), LEAST_QUEUES * pace.queued * feed.batch))
        # A scenario's own callbacks belong to each of its steps, and may look at the validation's results.
        if runner.callbacks and len(feed.validation):
            _evaluate(runner, feed.validation)  # compiles what the end of an epoch would, between slices
        full_steps = len(rows) // feed.batch
        rows = rows[: full_steps * feed.batch]
    clock, history = _measure(runner, rows, pace, ask, pace.plan, full_steps)
    _last_loss(history)
    return clock


def _measure_stream(runner: Trainer, pace: Pace, ask: Ask) -> SliceClock:
    """Measure slices of one unbroken `fit` on a stream, each after as many steps as the stream has put batches by."""
    feed = runner.feed
    assert feed.stream is not None
    steps = None if counts_epochs(feed.workload.steps) else feed.workload.steps
    # Each slice begins and ends with a wait, at which what makes the batches loses its lead: as on a GPU.
    pace = dataclasses.replace(pace, queued=feed.queue if steps is not None else 0, asynchronous=True)
    clock, history = _measure(runner, feed.stream, pace, ask, pace.plan, steps)
    _last_loss(history)
    return clock


def measure_epochs(runner: Trainer, pace: Pace, ask: Ask) -> SliceClock:
    """As published but short. How many make a slice is found out first; the very first may compile, and is left out."""
    calibrating = dataclasses.replace(pace.plan, steps_per_slice=None, warmup_slices=0)
    rows = runner.feed.train[: short_rows(runner.feed.workload, runner.feed.batch)]
    clock, _ = _measure(runner, rows, pace, ask, calibrating, None, least=1)
    return clock


def short_rows(workload: Workload, batch: int) -> int:
    """Return how many rows a short epoch has: some full batches, and the published partial one."""
    return SHORT_EPOCH_STEPS * batch + workload.train % batch


def _measure(
    runner: Trainer, rows: Fed, pace: Pace, ask: Ask, warms: TrialPlan, full_steps: int | None, least: int = LEAST_STEPS
) -> tuple[SliceClock, Logs]:
    """Measure slices of steps, of which an epoch has so many; None: of whole epochs."""
    sync_ns = measure_sync_ns(pace.synchronize)
    executed = runner.steps_per_execution
    warmup = WarmUpClock(warms, full_steps, sync_ns, pace.asynchronous, executed, queued=pace.queued)
    clock = SliceClock(warmup, pace, least)
    clock.begin_epoch()
    window = (EpochWindow if full_steps is None else StepWindow)(runner, clock, pace, ask)
    history = runner.fit(rows, window, ENDLESS, whole=full_steps is None or bool(runner.callbacks))
    clock.epoch_ends_ns.append(time.perf_counter_ns() - window.ended_ns)  # of the last epoch, cut short
    if clock.state is not State.OVER:
        cause = f"training was ended after {len(clock.slices)} slices, before enough were measured"
        remedy = "leave out the callback that ends training (EarlyStopping), or set its patience beyond the measurement"
        raise TrialFailure(Failure(Code.INVALID, cause, remedy))
    return clock, history


def _evaluate(runner: Trainer, rows: Rows) -> float:
    return _finite(runner.evaluate(rows))


def _judge_learning(runner: Trainer, unseen: Rows, steps: int, batch_loss_before: float) -> Learning:
    return Learning(
        steps=steps,
        batch_loss_before=batch_loss_before,
        batch_loss_after=_evaluate(runner, runner.feed.first_batch),
        loss=_evaluate(runner, unseen),
        accuracy=_accuracy(runner, unseen),
    )


def _accuracy(runner: Trainer, rows: Rows) -> float | None:
    """None where they have no class. Counted here: a Keras metric would be part of every timed step."""
    x, *targets = runner.feed.one_batch(rows)
    y = targets[0] if targets else None
    classes = None if y is None or is_nested(y) else classes_of(np.asarray(y))
    if classes is None:
        return None
    batch = runner.feed.predict_batch
    predict = runner.predictor(batch)
    few = predict(mapped(lambda array: array[:batch], x))
    if is_nested(few) or few.ndim != 2 or few.shape[-1] < 2:  # all of them might take gigabytes
        return None
    return float((predict(x).argmax(axis=-1) == classes).mean())


def classes_of(targets: Any) -> Any | None:
    """Return each row's class, of whole numbers, of a column of them or of rows that sum to one; None for others."""
    is_column = targets.ndim == 1 or (targets.ndim == 2 and targets.shape[-1] == 1)
    if is_column:
        return None if (targets % 1).any() else targets.reshape(len(targets))
    sums = targets.sum(axis=-1, dtype="float64")
    is_share = targets.ndim == 2 and (targets >= 0).all() and (abs(sums - 1) < SHARES_TOLERANCE).all()
    return targets.argmax(axis=-1) if is_share else None


def _last_loss(history: Logs) -> float:
    """Return the last loss of a `fit`; raise ScenarioError where the model's own ``train_step`` returns none."""
    if "loss" not in history:
        raise ScenarioError("the model's own train_step returns no loss", 'have it return {"loss": ...}')
    return _finite(history["loss"][-1])


def _logged(history: Logs) -> dict[str, list[float]]:
    """Return what each epoch logged: its losses, which must be finite, and those metrics that are finite numbers."""
    logged = {name: [_finite(value) for value in history[name]] for name in ("loss", "val_loss") if name in history}
    for name, values in history.items():
        if name not in logged and all(isinstance(value, int | float) and math.isfinite(value) for value in values):
            logged[name] = list(values)
    return logged


def _finite(loss: Any) -> float:
    value = float(loss)
    if not math.isfinite(value):
        remedy = "a smaller learning rate, or scaled inputs"
        raise TrialFailure(Failure(Code.NONFINITE, f"the loss became {value}", remedy))
    return value
