"""A script's own loop of Keras' calls, which is measured as it is: each step goes from one of its calls to the next.

The loop stays in the process's main thread. What measures it is in another one, and only one of the two runs at a time:
``run`` lets the loop go on for some steps, and returns where the next one is to begin.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from kerasbench.runners import Hooks
from kerasbench.runners.inputs import COMPARED, UNKNOWN_STEPS, leaves, mapped

TRAINS = "train_on_batch"
LOOPS = (TRAINS, "predict_on_batch", "predict")  # the first of these that a script has makes its steps
QUEUES = {"prefetch", "num_workers", "workers"}  # what a script's text has whose pipeline puts batches by
QUEUED = 16  # batches, by which it is taken to be ahead where it has one: as many as tf.data mostly chooses itself


class Loop:
    def __init__(self, method: str, queued: bool = False) -> None:
        self.method = method
        self.queue = QUEUED if queued else 0
        self.results: list[Any] = []  # what the calls that began the first step and the last one have returned
        self.steps = 0  # that have begun
        self._places: set[tuple[Any, int]] = set()  # of calls so far, by code and line
        self._leading: tuple[Any, int] | None = None  # the place whose calls begin steps
        self._inputs = hashlib.sha256()
        self._hooks = Hooks()
        self._wanted, self._begun = 0, 0  # steps, of the present ``run``
        self._error: BaseException | None = None
        self._go_on, self._arrived = threading.Semaphore(0), threading.Semaphore(0)
        self._measuring: threading.Thread | None = None

    # In the thread that measures

    def run(self, hooks: Hooks | None, steps: int) -> Any:
        """Return what the call of the last step has returned; raise what the script has raised, or hooks have."""
        self._hooks, self._wanted, self._begun = hooks or Hooks(), steps, 0
        self._go_on.release()
        self._arrived.acquire()
        if self._error is not None:
            raise self._error
        return self.results[-1]

    def stop(self) -> None:
        """End a ``run`` before the step that has just begun."""
        self._wanted = 0

    @property
    def digest(self) -> str:
        """A hash of what the calls of the first steps were given."""
        return self._inputs.hexdigest()[:16]

    # In the script's

    @property
    def is_measuring(self) -> bool:
        return threading.current_thread() is self._measuring

    def start(self, measure: Callable[[], object]) -> None:
        """Have a thread measure it, which ends the process."""
        self._measuring = threading.Thread(target=measure, daemon=True)
        self._measuring.start()
        self._go_on.acquire()

    def reach(self, frame: FrameType, digest: Callable[[], str]) -> bool:
        """Note a call before it is made, wait where it begins a step, and return whether it does.

        ``digest`` returns a hash of what it is given.

        The first call begins one, and so does each that is made where a call was made twice for the first time.
        """
        place = (frame.f_code, frame.f_lineno)
        begins = not self._places or place == self._leading
        if self._leading is None:
            if place in self._places:
                self._leading, begins = place, True
            self._places.add(place)
        if begins:
            self._begin()
        if self.steps <= COMPARED:
            self._inputs.update(digest().encode())
        return begins

    def _begin(self) -> None:
        """Wait until a ``run`` wants one more step, and tell its hooks of it."""
        try:
            while True:
                if self._begun < self._wanted:
                    step = self._begun % UNKNOWN_STEPS
                    if step == 0:
                        self._hooks.on_epoch_begin(self._begun // UNKNOWN_STEPS)
                    self._hooks.on_train_batch_begin(step)
                    if self._begun < self._wanted:  # it was not stopped just now
                        break
                self._pause()
        except BaseException as error:
            self.end(error)
        self._begun += 1
        self.steps += 1

    def _pause(self) -> None:
        self._arrived.release()
        self._go_on.acquire()

    def note(self, result: Any) -> None:
        self.results[1:] = [result]

    def end(self, error: BaseException) -> NoReturn:
        """Have ``run`` raise an error, in the other thread, which then ends the process."""
        self._error = error
        while True:
            self._pause()


def loss_of(result: Any) -> float:
    """Return the loss that ``train_on_batch`` has returned, alone, first of a list, or by its name."""
    if isinstance(result, Mapping):
        result = result.get("loss", next(iter(result.values()), 0.0))
    return float(next((array for _, array in leaves(mapped(np.asarray, result))), np.zeros(1)).reshape(-1)[0])
