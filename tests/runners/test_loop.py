"""A script's own loop, which goes on step by step while something else measures it."""

import sys
import threading
from typing import Any

import numpy as np
import pytest

from kerasbench.runners import Hooks, loop
from kerasbench.runners.inputs import COMPARED
from kerasbench.runners.loop import QUEUED, Loop, loss_of
from kerasbench.runners.streams import digest, looped
from kerasbench.scenario import ScenarioError

ROWS = np.arange(8.0).reshape(4, 2)


class Noting(Hooks):
    """Notes what it hears, and stops the loop before the step of a number."""

    def __init__(self, stopped: Loop, before: int = -1) -> None:
        self.heard: list[str] = []
        self._loop, self._before = stopped, before

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.heard.append(f"epoch {epoch}")

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self.heard.append(f"step {batch}")
        if batch == self._before:
            self._loop.stop()


def begun(script: Any) -> Loop:
    """Return a loop whose script waits for its first step: ``script`` is called with what makes a call in it."""
    own = Loop("train_on_batch")
    waiting = threading.Event()

    def call(result: float, x: Any = ROWS) -> None:
        if own.reach(sys._getframe(1), lambda: digest([(x,)])):
            own.note(result)

    def run() -> None:
        waiting.set()
        own.start(lambda: None)
        try:
            script(call)
            own.end(StopIteration("the script has ended"))
        except ZeroDivisionError as error:
            own.end(error)

    threading.Thread(target=run, daemon=True).start()
    waiting.wait()
    return own


def test_a_loop_goes_on_for_as_many_steps_as_are_wanted() -> None:
    def script(call: Any) -> None:
        for number in range(10):
            call(number)

    own = begun(script)
    assert [own.run(None, 1), own.run(None, 2), own.run(None, 1)] == [0, 2, 3]
    hooks = Noting(own, before=2)
    assert own.run(hooks, 100) == 5  # it was stopped before the step that had begun
    assert hooks.heard == ["epoch 0", "step 0", "step 1", "step 2"]
    assert own.results == [0, 5]
    with pytest.raises(StopIteration):
        own.run(None, 100)
    assert own.steps == 10


def test_a_step_goes_to_the_next_call_at_the_first_place_that_comes_again() -> None:
    def script(call: Any) -> None:
        call(-1)  # once, before the loop
        for number in range(4):
            call(number)
            call(100)

    own = begun(script)
    # The first step has all calls until one is made again in the same line.
    assert [own.run(None, 1) for _ in range(3)] == [-1, 1, 2]


def test_a_long_loop_is_told_in_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "UNKNOWN_STEPS", 2)

    def script(call: Any) -> None:
        for number in range(10):
            call(number)

    own = begun(script)
    hooks = Noting(own)
    own.run(hooks, 3)
    assert hooks.heard == ["epoch 0", "step 0", "step 1", "epoch 1", "step 0"]


def test_what_a_script_or_a_hook_raises_is_raised_where_it_is_measured() -> None:
    def script(call: Any) -> None:
        call(0)
        call(1 / 0)

    own = begun(script)
    with pytest.raises(ZeroDivisionError):
        own.run(None, 2)

    class Failing(Hooks):
        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
            raise ValueError("no turn")

    def endless(call: Any) -> None:
        while True:
            call(0)

    own = begun(endless)
    with pytest.raises(ValueError, match="no turn"):
        own.run(Failing(), 1)


def test_two_loops_have_the_same_digest_while_their_first_steps_are_given_the_same() -> None:
    def digests(changed_from: int) -> list[str]:
        def script(call: Any) -> None:
            for number in range(COMPARED + 3):
                call(0, ROWS + (number >= changed_from))

        own = begun(script)
        said = []
        for _ in range(COMPARED + 1):
            own.run(None, 1)
            said.append(own.digest)
        return said

    same, late, early = digests(99), digests(COMPARED), digests(2)
    assert same == late and len(set(same[:COMPARED])) == COMPARED
    assert early[1] == same[1] and early[2] != same[2] and early[-1] != same[-1]


def test_what_a_first_call_is_given_feeds_the_model() -> None:
    own = Loop("train_on_batch", queued=True)
    feed = looped(own, {"x": {"a": np.zeros((3, 2))}, "y": [1, 2, 3], "sample_weight": None}, "default")
    assert (feed.batch, feed.queue, feed.loop, feed.is_of_script) == (3, QUEUED, own, True)
    assert feed.train.y.tolist() == [1, 2, 3] and feed.stream is not None
    with pytest.raises(ScenarioError, match="the script's loop gives predict"):
        looped(Loop("predict"), {"x": iter([ROWS])}, "default")


@pytest.mark.parametrize(
    ("result", "loss"),
    [(0.5, 0.5), ([0.5, 0.9], 0.5), ({"loss": 0.5, "mae": 0.1}, 0.5), ({"d": 0.5}, 0.5), (None, 0.0)],
)
def test_the_loss_is_found_in_whatever_a_call_returns(result: Any, loss: float) -> None:
    assert loss_of(result) == loss
