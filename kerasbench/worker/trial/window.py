"""The clock inside ``fit``: Keras callbacks that leave its asynchronous dispatch alone.

A callback that overrides ``on_train_batch_end`` makes Keras wait for every step on torch and JAX; these override
only ``on_train_batch_begin`` and ``on_epoch_begin``, which run in the main thread and get no logs
(keras/src/callbacks/callback_list.py). Imported only after keras.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import keras

from kerasbench.worker.trial.slices import Ask, Pace, SliceClock

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
