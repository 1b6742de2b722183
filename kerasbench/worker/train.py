"""The clock inside ``fit``: Keras callbacks that leave its asynchronous dispatch alone.

A callback that overrides ``on_train_batch_end`` makes Keras wait for every step on torch and JAX; these override
only ``on_train_batch_begin`` and ``on_epoch_begin``, which run in the main thread and get no logs
(keras/src/callbacks/callback_list.py). Imported only after keras.

Training as a user does it, by `fit`, and the clock beside it. Imported only after keras.
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

from kerasbench.protocol.measurement import Batch, Learning, Published, Slice
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Protocol, counts_epochs
from kerasbench.scenario import ScenarioError, Workload
from kerasbench.worker.clock import Ask, Pace, SliceClock, WarmUpClock
from kerasbench.worker.failure import TrialFailure, is_own
from kerasbench.worker.feed import Feed, Rows
from kerasbench.worker.inputs import is_nested, leaves

Synchronize = Callable[[Any], None]
BUSY_SIDE = 2048  # 17 billion operations: some tenths of a millisecond on a large card, 16 MiB


def measure_sync_ns(synchronize: Synchronize, model: Any) -> int:
    """Return the cost of one clock reading with its synchronisation on an idle device, in ns: the least of five."""
    marks_ns = []
    for _ in range(6):
        synchronize(model)
        marks_ns.append(time.perf_counter_ns())
    return min(later - earlier for earlier, later in pairwise(marks_ns))


def keep_busy(ns: int) -> None:
    """Keep the device busy for so long: a card that has idled is then at its clocks again."""
    ones = keras.ops.ones((BUSY_SIDE, BUSY_SIDE))
    until_ns = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < until_ns:
        keras.ops.convert_to_numpy(keras.ops.matmul(ones, ones)[0, 0])  # waits for it


class _Window(keras.callbacks.Callback):
    """Measure slices inside a ``fit``, which waits here for its turns and ends when there are no more."""

    def __init__(self, clock: SliceClock, pace: Pace, ask: Ask) -> None:
        super().__init__()
        self._clock = clock
        self._pace = pace
        self._ask = ask

    def _reached(self, step: int) -> None:
        while self._clock.wants(step):
            model = self._model  # the property `model` makes JAX copy its whole state back
            self._pace.synchronize(model)  # before a turn too: nothing shall go on while others have theirs
            if self._clock.waiting:
                self._clock.take(step, self._ask(self._clock.last))
                if self._clock.over:
                    model.stop_training = True
            else:
                self._clock.mark(step, self._pace.meter.read())


class StepWindow(_Window):
    """Measure slices of training steps inside each epoch."""

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._clock.begin_epoch()

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self._reached(batch)


class EpochWindow(_Window):
    """Measure slices of whole epochs, each from its first step to that of the next one.

    The wait for a turn is there too, not at ``on_epoch_begin``: what fed the epoch before is dropped between the two,
    and after a wait TensorFlow often takes a long time for that (docs/method.md, "TensorFlow's late epochs").
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


class EpochSpans(keras.callbacks.Callback):
    """Record each epoch's duration, from its beginning to that of the next one or to the end of training.

    Without a synchronisation of its own: Keras ends an epoch synchronised.
    """

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


ENDLESS = 1_000_000  # epochs; a window ends the fit when there are no more turns
LEARN_STEPS = 64  # the same for every backend, so that losses can be laid side by side
LEARN_SAMPLES = 16_384  # at most this many samples in those steps, so that a full batch of 52,500 takes 5 steps
LEARN_BYTES = 64 << 20  # and of so many bytes: a network that takes pictures of 224 pixels needs seconds for each step
PARITY_STEPS = 5  # after the first: enough to see another gradient, too few for chaos (METHOD: aggressive rates)
SHARES_TOLERANCE = 1e-3  # float32 targets that were smoothed over a thousand classes sum to one within a ten-thousandth
NO_LOSS = "No loss to compute"  # Keras of a model that was compiled without one
NOT_EVALUATED = (
    'evaluate() has no loss: give compile() one, or the model a test_step of its own that returns it, {"loss": ...}'
)
SHORT_EPOCH_STEPS = 2  # the fewer steps, the larger the share of the cost per epoch in an epoch


def first_step(model: Any, feed: Feed) -> tuple[int, float, Batch]:
    """Trace, compile and run one step; return its time in ns, its loss and what it was given.

    Keras ends an epoch synchronised, so `fit` returning is the end of the step.
    """
    with BatchSpy(model) as spy:
        start_ns = time.perf_counter_ns()
        history = _fit(model, feed, feed.train[: feed.batch], shuffle=False)
        first_step_ns = time.perf_counter_ns() - start_ns
    return first_step_ns, _loss(history), _batch(spy, feed)


class BatchSpy:
    """Note what the model's loss is computed from, in the step that is traced or run while the spy is there.

    Compiled backends call Python only while they trace; on torch the spy costs this one step a microsecond.
    """

    def __init__(self, model: Any) -> None:
        self._model = getattr(model, "twin", model)  # a twin's own code computes its loss
        self.seen: list[Batch] = []

    def __enter__(self) -> "BatchSpy":
        compute_loss = self._model.compute_loss

        def note(x: Any = None, y: Any = None, *rest: Any, **options: Any) -> Any:
            self.seen.append(Batch(describe(x), describe(y)))
            return compute_loss(x, y, *rest, **options)

        self._model.compute_loss = note
        return self

    def __exit__(self, *raised: object) -> None:
        del self._model.compute_loss


def _batch(spy: BatchSpy, feed: Feed) -> Batch:
    """Return what the spy has seen last, or the rows as they are fed: a step of the model's own may not ask for it."""
    rows = feed.train[: feed.batch]
    return spy.seen[-1] if spy.seen else Batch(describe(rows.x), describe(rows.y))


def describe(given: Any) -> str:
    """Return ``float32[32, 28, 28]`` for an array, ``['a'] int32[32, 128], ['b'] float32[32, 5]`` for several."""
    return ", ".join(f"{name} {describe_array(array)}".strip() for name, array in leaves(given))


def describe_array(array: Any) -> str:
    """Return ``float32[32, 28, 28]``; a dimension that a compiled step leaves open is ``?``."""
    dtype = str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")
    return f"{dtype}[{', '.join('?' if size is None else str(size) for size in array.shape)}]"


@dataclass(frozen=True)
class Steps:
    """Steps that were trained one `fit` at a time: the loss and the duration of each."""

    losses: list[float]
    fits_ns: list[int]


def single_steps(model: Any, feed: Feed, steps: int, first: int = 0) -> Steps:
    """Train that many steps by themselves, one batch after another from the ``first``, in the given order."""
    batches = len(feed.train) // feed.batch
    made = Steps([], [])
    for index in range(first, first + steps):
        start = index % batches * feed.batch
        rows = feed.train[start : start + feed.batch]
        start_ns = time.perf_counter_ns()
        history = _fit(model, feed, rows, shuffle=False)
        made.fits_ns.append(time.perf_counter_ns() - start_ns)
        made.losses.append(_loss(history))
    return made


def learn(model: Any, feed: Feed, first_loss: float) -> tuple[Learning, Steps]:
    """Train a fixed number of steps and evaluate, so that backends can be compared by what they learned.

    Return besides the steps that follow the first. In the given order: every backend shuffles with a generator of its
    own.
    """
    before = _evaluate(model, feed, feed.train[: feed.batch])
    following = single_steps(model, feed, PARITY_STEPS, first=1)
    large = LEARN_BYTES // max(1, feed.batch * feed.train.row_bytes)
    steps = min(LEARN_STEPS, LEARN_SAMPLES // feed.batch, large) - PARITY_STEPS
    if steps <= 0:
        return _judged(model, feed, 1 + PARITY_STEPS, first_loss, before), following
    in_one_epoch = min(steps, len(feed.train) // feed.batch)
    epochs = -(-steps // in_one_epoch)
    rows = feed.train[: in_one_epoch * feed.batch]
    _loss(_fit(model, feed, rows, epochs=epochs, shuffle=False))
    return _judged(model, feed, 1 + PARITY_STEPS + epochs * in_one_epoch, first_loss, before), following


def learn_briefly(model: Any, feed: Feed, first_loss: float) -> tuple[Learning, Steps]:
    """Train what parity is judged by and nothing beyond: a sweep asks what a step costs, not what it teaches."""
    before = _evaluate(model, feed, feed.train[: feed.batch])
    following = single_steps(model, feed, PARITY_STEPS, first=1)
    after = _evaluate(model, feed, feed.train[: feed.batch])
    return Learning(1 + PARITY_STEPS, first_loss, before, after, loss=after, accuracy=None), following


def run_published(model: Any, feed: Feed, callbacks: list[Any]) -> tuple[Published, Learning, Batch]:
    """Run the published epochs as published, shuffled as Keras does by default; then predict the test set twice."""
    with BatchSpy(model) as spy:
        before = _evaluate(model, feed, feed.train[: feed.batch])
    spans = EpochSpans()
    start_ns = time.perf_counter_ns()
    extra = each_epoch(feed, callbacks)
    extra["callbacks"].append(spans)
    fitted = _fit(model, feed, feed.train, epochs=feed.workload.epochs, **extra)
    total_ns = time.perf_counter_ns() - start_ns
    _loss(fitted)
    history = fitted.history
    published = Published(
        total_ns=total_ns,
        epochs_ns=spans.epochs_ns,
        history=_logged(history),
        predict_samples=len(feed.test),
        predict_ns=[_time_whole_predict(model, feed) for _ in range(2)] if len(feed.test) else [],
    )
    steps = feed.workload.steps * feed.workload.epochs
    return published, _judged(model, feed, steps, history["loss"][0], before), _batch(spy, feed)


def measure_steps(model: Any, feed: Feed, callbacks: list[Any], pace: Pace, ask: Ask) -> SliceClock:
    """Calibrate, warm up and measure slices, all in one `fit`; return the clock with its slices."""
    by_epoch = counts_epochs(feed.workload.steps)
    full_steps = len(feed.train) // feed.batch
    clock = SliceClock(_warmup(model, pace, pace.protocol, None if by_epoch else full_steps), pace)
    window = (EpochWindow if by_epoch else StepWindow)(clock, pace, ask)
    rows = feed.train if by_epoch else feed.train[: full_steps * feed.batch]
    # A scenario's own callbacks belong to each of its steps, and may look at the validation's results.
    extra = each_epoch(feed, callbacks) if by_epoch or callbacks else {"callbacks": []}
    extra["callbacks"].append(window)
    history = _fit(model, feed, rows, epochs=ENDLESS, **extra)
    _require(clock)
    _loss(history)
    return clock


def measure_epochs(model: Any, feed: Feed, callbacks: list[Any], pace: Pace, ask: Ask) -> list[Slice]:
    """Measure slices of short epochs, validation and partial last batch as published; their steps are subtracted later.

    How many of them a slice has is found out first; the very first epoch, which may compile, is left out.
    """
    calibrating = dataclasses.replace(pace.protocol, steps_per_slice=None, warmup_slices=0)
    clock = SliceClock(_warmup(model, pace, calibrating, None), pace, least=1)
    rows = feed.train[: short_rows(feed.workload, feed.batch)]
    extra = each_epoch(feed, callbacks)
    extra["callbacks"].append(EpochWindow(clock, pace, ask))
    _fit(model, feed, rows, epochs=ENDLESS, **extra)
    _require(clock)
    return clock.slices


def short_rows(workload: Workload, batch: int) -> int:
    """Return how many rows a short epoch has: some full batches, and the published partial one."""
    return SHORT_EPOCH_STEPS * batch + workload.train % batch


def _warmup(model: Any, pace: Pace, protocol: Protocol, steps_per_epoch: int | None) -> WarmUpClock:
    return WarmUpClock(protocol, steps_per_epoch, measure_sync_ns(pace.synchronize, model), pace.asynchronous)


def each_epoch(feed: Feed, callbacks: list[Any]) -> dict[str, Any]:
    """Return what every published epoch has besides its steps: validation, checkpoints, a pass over the test set."""
    return {**feed.validation_arguments(), "callbacks": [*callbacks, *_test_pass(feed)]}


def _test_pass(feed: Feed) -> list[Any]:
    return [TestPass(feed.arguments(feed.test))] if feed.workload.test_each_epoch else []


def _fit(model: Any, feed: Feed, rows: Rows, **options: Any) -> Any:
    """Fit as a user does, without a progress bar; shuffled, as Keras does by default, unless options say otherwise."""
    return model.fit(**feed.training_arguments(rows), verbose=0, **options)


def _evaluate(model: Any, feed: Feed, rows: Rows) -> float:
    """Return the mean loss of these rows.

    Raises:
        ScenarioError: there is none, as of a model with a ``train_step`` of its own that was compiled without one.
    """
    try:
        found = model.evaluate(**feed.arguments(rows), verbose=0, return_dict=True)
    except ValueError as error:
        if NO_LOSS not in str(error):
            raise
        raise ScenarioError(NOT_EVALUATED) from error
    if "loss" not in found:
        raise ScenarioError('the model\'s own test_step must return its loss: {"loss": ...}')
    loss = _finite(found["loss"])
    own = any(is_own(getattr(type(model), name, None)) for name in ("test_step", "compute_loss"))
    if loss == 0 and getattr(model, "loss", NO_LOSS) is None and not own:  # what Keras says on JAX in place of NO_LOSS
        raise ScenarioError(NOT_EVALUATED)
    return loss


def _judged(model: Any, feed: Feed, steps: int, first_loss: float, batch_loss_before: float) -> Learning:
    return Learning(
        steps=steps,
        first_loss=_finite(first_loss),
        batch_loss_before=batch_loss_before,
        batch_loss_after=_evaluate(model, feed, feed.train[: feed.batch]),
        loss=_evaluate(model, feed, feed.evaluated),
        accuracy=_accuracy(model, feed),
    )


def _accuracy(model: Any, feed: Feed) -> float | None:
    """Return the share of unseen samples whose largest output is their class; None where they have no class.

    Counted here, not by a Keras metric, which would be part of every timed step.
    """
    rows = feed.evaluated
    x, y = feed.together(rows)
    scores = model.predict(x, batch_size=feed.predict_batch, verbose=0)
    if is_nested(scores) or is_nested(y):
        return None
    classes = classes_of(np.asarray(y))
    if classes is None or scores.ndim != 2 or scores.shape[-1] < 2:
        return None
    return float((scores.argmax(axis=-1) == classes).mean())


def classes_of(targets: Any) -> Any | None:
    """Return each row's class, of numbers, of a column of them or of rows that sum to one; None for other targets."""
    if targets.ndim == 1:
        return targets
    if targets.ndim == 2 and targets.shape[-1] == 1:
        return targets[:, 0]
    sums = targets.sum(axis=-1, dtype="float64")
    is_share = targets.ndim == 2 and (targets >= 0).all() and (abs(sums - 1) < SHARES_TOLERANCE).all()
    return targets.argmax(axis=-1) if is_share else None


def _time_whole_predict(model: Any, feed: Feed) -> int:
    x = feed.inputs(feed.test)
    start_ns = time.perf_counter_ns()
    model.predict(x, batch_size=feed.predict_batch, verbose=0)
    return time.perf_counter_ns() - start_ns


def _require(clock: SliceClock) -> None:
    if not clock.over:
        complaint = f"training was ended after {len(clock.slices)} slices, before enough were measured"
        remedy = "leave out the callback that ends training (EarlyStopping), or set its patience beyond the measurement"
        raise TrialFailure(Failure(Code.INVALID, complaint, remedy))


def _loss(history: Any) -> float:
    """Return the last loss that `fit` tells; raise ScenarioError where the model's own ``train_step`` tells none."""
    if "loss" not in history.history:
        raise ScenarioError('the model\'s own train_step must return its loss: {"loss": ...}')
    return _finite(history.history["loss"][-1])


def _logged(history: Mapping[str, Sequence[Any]]) -> dict[str, list[float]]:
    """Return what each epoch logged: its losses, which must be finite, and those metrics that are finite numbers."""
    losses = {name: [_finite(value) for value in history[name]] for name in ("loss", "val_loss") if name in history}
    metrics = {
        name: list(values)
        for name, values in history.items()
        if name not in losses and all(isinstance(value, int | float) and math.isfinite(value) for value in values)
    }
    return losses | metrics


def _finite(loss: Any) -> float:
    value = float(loss)
    if not math.isfinite(value):
        raise TrialFailure(
            Failure(Code.NONFINITE, f"the loss became {value}", "a smaller learning rate, or scaled inputs")
        )
    return value
