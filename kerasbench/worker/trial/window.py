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

from kerasbench.worker.trial.blocks import BlockClock

Synchronize = Callable[[Any], None]


def measure_sync_ns(synchronize: Synchronize, model: Any) -> int:
    """Return the cost of one clock reading with its synchronisation on an idle device, in ns: the least of five."""
    marks_ns = []
    for _ in range(6):
        synchronize(model)
        marks_ns.append(time.perf_counter_ns())
    return min(later - earlier for earlier, later in pairwise(marks_ns))


class StepWindow(keras.callbacks.Callback):
    """Mark blocks of training steps inside each epoch; end the fit when there are enough."""

    def __init__(self, clock: BlockClock, synchronize: Synchronize) -> None:
        super().__init__()
        self._clock = clock
        self._synchronize = synchronize

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._clock.begin_epoch()

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        if self._clock.wants(batch):
            _mark(self, self._clock, self._synchronize, batch)


class EpochWindow(keras.callbacks.Callback):
    """Mark blocks of whole epochs, where an epoch is too short to hold blocks of steps."""

    def __init__(self, clock: BlockClock, synchronize: Synchronize) -> None:
        super().__init__()
        self._clock = clock
        self._synchronize = synchronize
        clock.begin_epoch()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        if self._clock.wants(epoch):
            _mark(self, self._clock, self._synchronize, epoch)


class EpochTimer(keras.callbacks.Callback):
    """Record the durations of whole epochs, from the beginning of one to the beginning of the next.

    The first epoch and the last are not recorded: the one warms up, the other has no next.
    """

    def __init__(self, synchronize: Synchronize, max_ns: int) -> None:
        super().__init__()
        self._synchronize = synchronize
        self._max_ns = max_ns
        self._marks_ns: list[int] = []

    @property
    def epochs_ns(self) -> list[int]:
        return [later - earlier for earlier, later in pairwise(self._marks_ns[1:])]

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        # _model: the property `model` makes JAX copy its whole state back.
        self._synchronize(self._model)
        self._marks_ns.append(time.perf_counter_ns())
        if sum(self.epochs_ns) >= self._max_ns:
            self._model.stop_training = True


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


def _mark(callback: keras.callbacks.Callback, clock: BlockClock, synchronize: Synchronize, step: int) -> None:
    model = callback._model  # the property `model` makes JAX copy its whole state back
    synchronize(model)
    clock.mark(step, time.perf_counter_ns())
    if clock.done:
        model.stop_training = True
