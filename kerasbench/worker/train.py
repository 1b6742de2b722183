"""Training as a user does it, by `fit`, and the clock inside it. Imported only after keras.

The clock is a Keras callback. One that overrides ``on_train_batch_end`` would make Keras wait for every step on torch
and JAX. These override only ``on_train_batch_begin`` and ``on_epoch_begin``, which run in the main thread and get no
logs (keras/src/callbacks/callback_list.py), so that its asynchronous dispatch is left alone.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import keras
import numpy as np

from kerasbench.protocol.measurement import Batch, Learning, Published, Samples
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Protocol, Sizes, counts_epochs
from kerasbench.scenario import ScenarioError, Workload
from kerasbench.worker.clock import Ask, Pace, SliceClock, State, WarmUpClock
from kerasbench.worker.failure import TrialFailure, is_own
from kerasbench.worker.feed import Feed, Rows
from kerasbench.worker.inputs import describe, is_nested, mapped
from kerasbench.worker.native import NativeModel

ENDLESS = 1_000_000  # epochs; a window ends the fit when there are no more turns
SHORT_EPOCH_STEPS = 2  # the fewer steps, the larger the share of the cost per epoch in an epoch
# Small, because it lies in the memory of the process that is measured: 256 KiB, and as much for a product. Many are in
# the queue before one is waited for: waiting for each would leave a card idle most of the time.
BUSY_SIDE, BUSY_PRODUCTS = 256, 32

# Of rows in the steps of learning: a network that takes pictures of 224 pixels needs seconds for each step.
LEARN_BYTES = 64 << 20
SHARES_TOLERANCE = 1e-3  # float32 targets that were smoothed over a thousand classes sum to one within a ten-thousandth
NO_LOSS = "No loss to compute"  # Keras of a model that was compiled without one
NOT_EVALUATED = (
    'evaluate() has no loss: give compile() one, or the model a test_step of its own that returns it, {"loss": ...}'
)


def measure_sync_ns(synchronize: Callable[[Any], None], model: Any) -> int:
    """Return the cost of one clock reading with its synchronisation on an idle device, in ns: the least of five."""
    marks_ns = []
    for _ in range(6):
        synchronize(model)
        marks_ns.append(time.perf_counter_ns())
    return min(later - earlier for earlier, later in pairwise(marks_ns))


def keep_busy(ns: int) -> None:
    """Keep the device busy for so long: a card that has idled is then at its clocks again."""
    product = keras.ops.full((BUSY_SIDE, BUSY_SIDE), 1 / BUSY_SIDE)  # by itself it is itself, so that it stays finite
    until_ns = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < until_ns:
        for _ in range(BUSY_PRODUCTS):
            product = keras.ops.matmul(product, product)
        keras.ops.convert_to_numpy(product[0, 0])  # waits for them


class _Window(keras.callbacks.Callback):
    """Measure slices inside a ``fit``, which waits here for its turns and ends when there are no more."""

    def __init__(self, clock: SliceClock, pace: Pace, ask: Ask) -> None:
        super().__init__()
        self._clock = clock
        self._pace = pace
        self._ask = ask

    def _reached(self, step: int) -> None:
        # Several things may be due before one step: the end of a slice, then the turn for the next.
        while self._clock.wants(step):
            if self._clock.state is State.DISCARDING:  # a feed's own processes were started meanwhile
                self._pace.meter.look_for_helpers()
            model = self._model  # the property `model` makes JAX copy its whole state back
            self._pace.synchronize(model)  # before a turn too: nothing shall go on while others have theirs
            if self._clock.waiting:
                self._clock.take(step, self._ask(self._clock.last))
                if self._clock.over:
                    model.stop_training = True
            else:
                self._clock.mark(step, self._pace.meter.read())


class StepWindow(_Window):
    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._clock.begin_epoch()

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self._reached(batch)
        self._pace.meter.done += self._clock.warmup.execution


class EpochWindow(_Window):
    """Measure slices of whole epochs, each from its first step to that of the next one.

    The wait for a turn is there too, not at ``on_epoch_begin``: what fed the epoch before is dropped between the two,
    and after a wait TensorFlow often takes a long time for that (docs/how-it-works.md, "TensorFlow's late epochs").
    """

    def __init__(self, clock: SliceClock, pace: Pace, ask: Ask) -> None:
        super().__init__(clock, pace, ask)
        self._epoch = 0
        clock.begin_epoch()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        if batch == 0:
            self._reached(self._epoch)
            self._pace.meter.done += 1


class EpochSpans(keras.callbacks.Callback):
    """From an epoch's beginning to the next one's. No synchronisation of its own: Keras ends an epoch synchronised."""

    def __init__(self) -> None:
        super().__init__()
        self._marks_ns: list[int] = []

    @property
    def epochs_ns(self) -> list[int]:
        return [later - earlier for earlier, later in pairwise(self._marks_ns)]

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._marks_ns.append(time.perf_counter_ns())

    def on_train_end(self, logs: object = None) -> None:
        self._marks_ns.append(time.perf_counter_ns())


class TestPass(keras.callbacks.Callback):
    """Evaluate on the test samples at the end of every epoch, where the publication did."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__()
        self._arguments = arguments

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self.model.evaluate(**self._arguments, verbose=0)


class StepBegin(keras.callbacks.Callback):
    """Note when the last step began: a `fit` of one batch takes some time before, which is no step's."""

    began_ns = 0

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self.began_ns = time.perf_counter_ns()


class BatchSpy:
    """Note what the model's loss is computed from, in the step that is traced or run while the spy is there.

    Compiled backends call Python only while they trace; on torch the spy costs this one step a microsecond.
    """

    def __init__(self, model: Any, feed: Feed) -> None:
        # A baseline's own code computes its loss.
        self._model: Any = model.baseline if isinstance(model, NativeModel) else model
        # A step of the model's own may compute no loss by Keras' method: then the rows as they are fed.
        rows = feed.train[: feed.batch]
        self.batch = Batch(describe(rows.x), describe(rows.y))

    def __enter__(self) -> "BatchSpy":
        compute_loss = self._model.compute_loss

        def note(x: Any = None, y: Any = None, *rest: Any, **options: Any) -> Any:
            self.batch = Batch(describe(x), describe(y))
            return compute_loss(x, y, *rest, **options)

        self._model.compute_loss = note
        return self

    def __exit__(self, *raised: object) -> None:
        del self._model.compute_loss


def first_step(model: Any, feed: Feed) -> tuple[int, float, Batch]:
    """Trace, compile and run one step; return its time in ns: Keras ends an epoch synchronised, so `fit` does."""
    with BatchSpy(model, feed) as spy:
        start_ns = time.perf_counter_ns()
        history = _fit(model, feed, feed.train[: feed.batch], shuffle=False)
        first_step_ns = time.perf_counter_ns() - start_ns
    return first_step_ns, _last_loss(history), spy.batch


@dataclass(frozen=True)
class Steps:
    losses: list[float]
    fits_ns: list[int]
    steps_ns: list[int]  # of these, without what a `fit` does before its step


def single_steps(model: Any, feed: Feed, steps: int, first: int = 0) -> Steps:
    """Train that many steps by themselves, one batch after another from the ``first``, in the given order."""
    trained = Steps([], [], [])
    for index in range(first, first + steps):
        _train_step(model, feed, index, trained)
    return trained


def _train_step(model: Any, feed: Feed, index: int, trained: Steps) -> int:
    begin, start = StepBegin(), index % (len(feed.train) // feed.batch) * feed.batch
    start_ns = time.perf_counter_ns()
    history = _fit(model, feed, feed.train[start : start + feed.batch], shuffle=False, callbacks=[begin])
    ended_ns = time.perf_counter_ns()
    trained.fits_ns.append(ended_ns - start_ns)
    trained.steps_ns.append(ended_ns - begin.began_ns)
    trained.losses.append(_last_loss(history))
    return trained.steps_ns[-1]


Sized = Callable[[Callable[[], int]], Sizes]  # has one unit measured, which returns its ns; returns the row's sizes


def learn(
    model: Any, feed: Feed, first_loss: float, sized: Sized, brief: bool = False
) -> tuple[Learning, Steps, Sizes]:
    """Train as many steps as all columns do and evaluate, so that backends can be compared by what they learned.

    In the given order: every backend shuffles with its own generator. Return also the steps that follow the first, by
    which parity is judged, and the sizes that follow from the first of these. ``brief``: train these alone; a sweep
    asks what a step costs, not what it teaches.
    """
    first_batch = feed.train[: feed.batch]
    before = _evaluate(model, feed, first_batch)
    following = Steps([], [], [])

    def train() -> int:
        return _train_step(model, feed, 1 + len(following.losses), following)

    sizes = sized(train)
    while 1 + len(following.losses) < sizes.parity_steps:
        train()
    trained = sizes.parity_steps
    if brief:
        after = _evaluate(model, feed, first_batch)
        return Learning(trained, first_loss, before, after, loss=after, accuracy=None), following, sizes
    within_bytes = LEARN_BYTES // max(1, feed.batch * feed.train.row_bytes)
    more = 1 + min(sizes.learn_steps - 1, within_bytes) - trained
    if more > 0:
        in_one_epoch = min(more, len(feed.train) // feed.batch)
        epochs = -(-more // in_one_epoch)
        rows = feed.train[: in_one_epoch * feed.batch]
        _last_loss(_fit(model, feed, rows, epochs=epochs, shuffle=False))
        trained += epochs * in_one_epoch
    seen = feed.evaluated[: sizes.evaluated_batches * feed.batch]
    return _judge_learning(model, feed, seen, trained, first_loss, before), following, sizes


def run_published(model: Any, feed: Feed, callbacks: list[Any]) -> tuple[Published, Learning, Batch]:
    """Run the published epochs as published, shuffled as Keras does by default; then predict the test set twice."""
    with BatchSpy(model, feed) as spy:
        before = _evaluate(model, feed, feed.train[: feed.batch])
    spans = EpochSpans()
    start_ns = time.perf_counter_ns()
    extra = each_epoch(feed, callbacks)
    extra["callbacks"].append(spans)
    fitted = _fit(model, feed, feed.train, epochs=feed.workload.epochs, **extra)
    total_ns = time.perf_counter_ns() - start_ns
    _last_loss(fitted)
    predict_ns = []
    for _ in range(2 if len(feed.test) else 0):
        x = feed.inputs(feed.test)
        start_ns = time.perf_counter_ns()
        model.predict(x, batch_size=feed.predict_batch, verbose=0)
        predict_ns.append(time.perf_counter_ns() - start_ns)
    published = Published(total_ns, spans.epochs_ns, _logged(fitted.history), len(feed.test), predict_ns)
    steps = feed.workload.steps * feed.workload.epochs
    learning = _judge_learning(model, feed, feed.evaluated, steps, fitted.history["loss"][0], before)
    return published, learning, spy.batch


def measure_steps(model: Any, feed: Feed, callbacks: list[Any], pace: Pace, ask: Ask) -> SliceClock:
    by_epoch = counts_epochs(feed.workload.steps)
    full_steps = len(feed.train) // feed.batch
    clock = SliceClock(_warmup(model, pace, pace.protocol, None if by_epoch else full_steps), pace)
    window = (EpochWindow if by_epoch else StepWindow)(clock, pace, ask)
    rows = feed.train if by_epoch else feed.train[: full_steps * feed.batch]
    # A scenario's own callbacks belong to each of its steps, and may look at the validation's results.
    extra = each_epoch(feed, callbacks) if by_epoch or callbacks else {"callbacks": []}
    if callbacks and not by_epoch and len(feed.validation):
        _evaluate(model, feed, feed.validation)  # compiles what the end of an epoch would, between slices
    extra["callbacks"].append(window)
    history = _fit(model, feed, rows, epochs=ENDLESS, **extra)
    _require_over(clock)
    _last_loss(history)
    return clock


def measure_epochs(model: Any, feed: Feed, callbacks: list[Any], pace: Pace, ask: Ask) -> Samples:
    """As published but short. How many make a slice is found out first; the very first may compile, and is left out."""
    calibrating = dataclasses.replace(pace.protocol, steps_per_slice=None, warmup_slices=0)
    clock = SliceClock(_warmup(model, pace, calibrating, None), pace, least=1)
    rows = feed.train[: short_rows(feed.workload, feed.batch)]
    extra = each_epoch(feed, callbacks)
    extra["callbacks"].append(EpochWindow(clock, pace, ask))
    _fit(model, feed, rows, epochs=ENDLESS, **extra)
    _require_over(clock)
    return Samples.of(clock.slices)


def short_rows(workload: Workload, batch: int) -> int:
    """Return how many rows a short epoch has: some full batches, and the published partial one."""
    return SHORT_EPOCH_STEPS * batch + workload.train % batch


def each_epoch(feed: Feed, callbacks: list[Any]) -> dict[str, Any]:
    """Return what every published epoch has besides its steps: validation, checkpoints, a pass over the test set."""
    test_pass = [TestPass(feed.arguments(feed.test))] if feed.workload.test_each_epoch else []
    return {**feed.validation_arguments(), "callbacks": [*callbacks, *test_pass]}


def _warmup(model: Any, pace: Pace, protocol: Protocol, steps_per_epoch: int | None) -> WarmUpClock:
    sync_ns = measure_sync_ns(pace.synchronize, model)
    return WarmUpClock(protocol, steps_per_epoch, sync_ns, pace.asynchronous, model.steps_per_execution)


def _require_over(clock: SliceClock) -> None:
    if not clock.over:
        cause = f"training was ended after {len(clock.slices)} slices, before enough were measured"
        remedy = "leave out the callback that ends training (EarlyStopping), or set its patience beyond the measurement"
        raise TrialFailure(Failure(Code.INVALID, cause, remedy))


def _fit(model: Any, feed: Feed, rows: Rows, **options: Any) -> Any:
    """Fit as a user does, without a progress bar; shuffled, as Keras does by default, unless options say otherwise."""
    return model.fit(**feed.training_arguments(rows), verbose=0, **options)


def _evaluate(model: Any, feed: Feed, rows: Rows) -> float:
    """Return the mean loss; raise ScenarioError for none, as of an own ``train_step`` that was compiled without one."""
    try:
        logs = model.evaluate(**feed.arguments(rows), verbose=0, return_dict=True)
    except ValueError as error:
        if NO_LOSS not in str(error):
            raise
        raise ScenarioError(NOT_EVALUATED) from error
    if "loss" not in logs:
        raise ScenarioError('the model\'s own test_step must return its loss: {"loss": ...}')
    loss = _finite(logs["loss"])
    computes = any(is_own(getattr(type(model), name, None)) for name in ("test_step", "compute_loss"))
    if loss == 0 and getattr(model, "loss", NO_LOSS) is None and not computes:  # in place of NO_LOSS on JAX
        raise ScenarioError(NOT_EVALUATED)
    return loss


def _judge_learning(
    model: Any, feed: Feed, unseen: Rows, steps: int, first_loss: float, batch_loss_before: float
) -> Learning:
    return Learning(
        steps=steps,
        first_loss=_finite(first_loss),
        batch_loss_before=batch_loss_before,
        batch_loss_after=_evaluate(model, feed, feed.train[: feed.batch]),
        loss=_evaluate(model, feed, unseen),
        accuracy=_accuracy(model, feed, unseen),
    )


def _accuracy(model: Any, feed: Feed, rows: Rows) -> float | None:
    """None where they have no class. Counted here: a Keras metric would be part of every timed step."""
    x, y, *_ = feed.one_batch(rows)
    classes = None if is_nested(y) else classes_of(np.asarray(y))
    if classes is None:
        return None
    few = model.predict(mapped(lambda array: array[: feed.predict_batch], x), batch_size=feed.predict_batch, verbose=0)
    if is_nested(few) or few.ndim != 2 or few.shape[-1] < 2:  # all of them might take gigabytes
        return None
    scores = model.predict(x, batch_size=feed.predict_batch, verbose=0)
    return float((scores.argmax(axis=-1) == classes).mean())


def classes_of(targets: Any) -> Any | None:
    """Return each row's class, of whole numbers, of a column of them or of rows that sum to one; None for others."""
    is_column = targets.ndim == 1 or (targets.ndim == 2 and targets.shape[-1] == 1)
    if is_column:
        return None if (targets % 1).any() else targets.reshape(len(targets))
    sums = targets.sum(axis=-1, dtype="float64")
    is_share = targets.ndim == 2 and (targets >= 0).all() and (abs(sums - 1) < SHARES_TOLERANCE).all()
    return targets.argmax(axis=-1) if is_share else None


def _last_loss(history: Any) -> float:
    """Return the last loss of a `fit`; raise ScenarioError where the model's own ``train_step`` returns none."""
    if "loss" not in history.history:
        raise ScenarioError('the model\'s own train_step must return its loss: {"loss": ...}')
    return _finite(history.history["loss"][-1])


def _logged(history: Mapping[str, Sequence[Any]]) -> dict[str, list[float]]:
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
