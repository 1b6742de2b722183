"""Warm-up and slices are fed with steps and readings; no clock runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerasbench.protocol.measurement import Slice, Turn
from kerasbench.protocol.requests import TrialPlan, counts_epochs, too_few_executions
from kerasbench.worker.clock import Pace, SliceClock, State, WarmUpClock, is_steady
from kerasbench.worker.usage import Reading

MS = 1_000_000


def run(clock: WarmUpClock, step_ns: Any, steps_per_epoch: int = 1_000_000, epoch_ns: float = 0) -> None:
    """Play training until the clock is warm; steps take equally long, or a time by their number."""
    now = 0.0
    for _ in range(1000):
        clock.begin_epoch()
        for step in range(steps_per_epoch):
            if clock.wants(step):
                clock.mark(step, int(now))
            if clock.warm:
                return
            now += step_ns(step) if callable(step_ns) else step_ns
        now += epoch_ns
    raise AssertionError("never warm")


@pytest.mark.parametrize(
    ("step_ms", "steps_per_epoch", "sync_ms", "steps"),
    [
        (0.3, 5000, 0, 512),
        (2, 5000, 0, 64),
        (30, 5000, 0, 4),
        (100, 5000, 0, 1),
        (1500, 5000, 0, 1),
        (2, 5000, 4, 256),  # a synchronisation is a hundredth of a slice at most
        (2, 25, 0, 16),  # an epoch has room for no more
    ],
)
def test_a_slice_has_100_ms_at_least(step_ms: float, steps_per_epoch: int, sync_ms: int, steps: int) -> None:
    clock = WarmUpClock(TrialPlan(), steps_per_epoch, sync_ns=sync_ms * MS)
    clock.begin_epoch()
    assert [step for step in range(5) if clock.wants(step)] == [1]  # an epoch's first step is in no slice
    run(clock, step_ms * MS, steps_per_epoch, epoch_ns=500 * MS)  # nor is what an epoch costs
    assert clock.steps_per_slice == steps
    assert {slice_.unit_ns for slice_ in clock.slices} == {step_ms * MS}


@pytest.mark.parametrize(("executed", "epoch", "steps"), [(8, 5000, 64), (3, 5000, 96), (8, 70, 32), (32, 5000, 64)])
def test_a_slice_is_of_whole_executions_that_fit_an_epoch(executed: int, epoch: int, steps: int) -> None:
    warmup = WarmUpClock(TrialPlan(), epoch, sync_ns=1000, executed=executed)
    run(warmup, 2 * MS, epoch)
    assert warmup.steps_per_slice == steps
    clock = SliceClock(warmup, Pace(TrialPlan(), lambda: None, 20 * MS))
    told = range(0, epoch, executed)  # the steps of which `fit` tells
    clock.state = State.WAITING
    first = next(step for step in told if clock.wants(step))
    clock.take(first, Turn(0, 0))
    began = next(step for step in told if step > 0 and clock.wants(step))
    clock.mark(began, Reading(0, 0, 0))
    ended = next(step for step in told if clock.wants(step))
    clock.mark(ended, Reading(steps * 2 * MS, 0, 0))
    assert (began >= executed, ended - began, clock.slices[0].count) == (True, steps, steps)


def test_one_hiccup_fixes_no_k_that_is_too_small_nor_an_endless_slice() -> None:
    clock = WarmUpClock(TrialPlan(), None, sync_ns=1000)
    run(clock, lambda step: 151 * MS if step == 1 else MS)
    assert clock.steps_per_slice == 128
    clock = WarmUpClock(TrialPlan(), 1_000_000, 0, asynchronous=True)
    run(clock, lambda step: 5000 * MS if step == 2 else MS)
    assert clock.steps_per_slice <= 1024


def test_a_steady_model_is_warm_after_a_second_and_another_in_the_end() -> None:
    clock = WarmUpClock(TrialPlan(), 5000, sync_ns=1000)
    run(clock, 2 * MS, 5000)
    assert sum(slice_.ns for slice_ in clock.slices) >= 1000 * MS
    assert [slice_.count for slice_ in clock.slices[-10:]] == [64] * 10
    clock = WarmUpClock(TrialPlan(), None, sync_ns=1000)
    run(clock, lambda step: 200 * MS * 0.97**step)
    assert 3 < len(clock.slices) <= 40
    clock = WarmUpClock(TrialPlan(steps_per_slice=8, warmup_slices=4), 5000, sync_ns=1000)
    run(clock, 2 * MS, 5000)
    assert clock.slices == [Slice(8, 16 * MS)] * 4
    clock = WarmUpClock(TrialPlan(warmup_slices=0), None, sync_ns=1000)
    run(clock, 30 * MS)
    assert [slice_.count for slice_ in clock.slices] == [1, 2, 4, 4]


def test_steady_means_that_the_halves_agree_and_the_first_is_no_outlier() -> None:
    assert not is_steady([10.0] * 9)  # too few to tell
    assert is_steady([10.0] * 10)
    assert is_steady([50.0, *[10.0] * 10])  # the outlier lies before the last ten
    assert not is_steady([50.0, *[10.0] * 9])
    assert not is_steady([11.0] * 5 + [10.0] * 5)
    assert is_steady([10.2] * 5 + [10.0] * 5)


@pytest.mark.parametrize(("step_ms", "slices"), [(700, 3), (500, 11)])
def test_two_slices_warm_slow_steps_up(step_ms: int, slices: int) -> None:
    clock = WarmUpClock(TrialPlan(), 1000, 0)
    clock.begin_epoch()
    for step in range(1000):
        if clock.wants(step):
            clock.mark(step, step * step_ms * MS)
        if clock.warm:
            break
    assert len(clock.slices) == slices


def test_an_epoch_has_slices_of_whole_executions_or_is_measured_as_a_whole() -> None:
    enough = [too_few_executions(*sizes) == "" for sizes in ((100, 8), (64, 8), (63, 8), (100, 200), (4, 8))]
    assert enough == [True, True, False, False, True]
    assert [counts_epochs(steps) for steps in (1, 7, 8, 1594)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("host_ms", "device_ms"), [(0.2, 0.5), (2, 3), (3, 2), (2, 2.1), (4, 30), (9, 10), (0.1, 0.01), (12, 400)]
)
def test_draining_and_refilling_a_queue_is_below_one_percent_of_a_slice(host_ms: float, device_ms: float) -> None:
    """A step takes ``host_ms`` to be sent to a queue and ``device_ms`` to be computed, side by side."""
    clock = WarmUpClock(TrialPlan(), 1_000_000, 0, asynchronous=True)
    clock.begin_epoch()
    now_ns = free_ns = 0.0
    for step in range(1_000_000):
        if clock.wants(step):
            now_ns = max(now_ns, free_ns)
            clock.mark(step, int(now_ns))
        if clock.warm:
            break
        now_ns += host_ms * MS
        free_ns = max(now_ns, free_ns) + device_ms * MS
    step_ns = max(host_ms, device_ms) * MS  # in a long training
    units_ns = {slice_.unit_ns for slice_ in clock.slices if slice_.count == clock.steps_per_slice}
    assert clock.warm and units_ns
    assert all(step_ns <= unit_ns <= 1.01 * step_ns for unit_ns in units_ns)


def clock_of(steps_per_epoch: int | None, settle_ms: int = 20, least: int = 2, alone: bool = True) -> SliceClock:
    pace = Pace(TrialPlan(steps_per_slice=4, warmup_slices=1), print, settle_ms * MS)
    return SliceClock(WarmUpClock(pace.plan, steps_per_epoch, sync_ns=0), pace, least, alone)


class Training:
    """Plays ``fit`` to a clock until it has had its turns: ``events`` tell in which epoch and before which step."""

    def __init__(self, clock: SliceClock, turns: int, step_ms: float = 10, warm_up_ms: float | None = None) -> None:
        self.clock, self.step_ms, self.warm_up_ms = clock, step_ms, warm_up_ms or step_ms
        self.turns: Iterator[Turn] = iter([Turn(cycle, 1) for cycle in range(turns)])
        self.now_ns, self.epoch = 0.0, 0
        self.events: list[tuple[int, int, State]] = []

    def play(self, steps_per_epoch: int, epochs: int = 50) -> list[Slice]:
        for self.epoch in range(epochs):
            self.clock.begin_epoch()
            for step in range(steps_per_epoch):
                self.before(step)
                if self.clock.state is State.OVER:
                    return self.clock.slices
                self.now_ns += (self.warm_up_ms if self.clock.state is State.WARMING else self.step_ms) * MS
            self.now_ns += 500 * MS
        raise AssertionError("never over")

    def before(self, step: int) -> None:
        while self.clock.wants(step):
            was = self.clock.state
            if self.clock.state is State.WAITING:
                self.clock.take(step, next(self.turns, None))
                self.now_ns += 300 * MS  # the others' turns
            else:
                self.clock.mark(step, Reading(int(self.now_ns), int(2 * self.now_ns), step))
            if was is not State.WARMING:
                self.events.append((self.epoch, step, was))


def test_a_turn_discards_then_measures_and_waits_again() -> None:
    clock = clock_of(100)
    training = Training(clock, turns=2)
    assert training.play(100) == [Slice(4, 40 * MS, cycle, 1, 80 * MS) for cycle in (0, 1)]  # without the others' turns
    wait, discard, measure = State.WAITING, State.DISCARDING, State.MEASURING
    # The warm-up ends before step 5; two steps are discarded, four measured.
    first = [(0, 5, wait), (0, 7, discard), (0, 11, measure)]
    assert training.events == [*first, (0, 11, wait), (0, 13, discard), (0, 17, measure), (0, 17, wait)]


def test_what_its_first_steps_have_warmed_up_waits_for_its_turn_at_once() -> None:
    slow = Pace(TrialPlan(steps_per_slice=1, warmup_slices=0), print, 0)
    training = Training(SliceClock(WarmUpClock(slow.plan, 10, sync_ns=0), slow), turns=2, step_ms=9000)
    assert [slice_.ns for slice_ in training.play(10)] == [9000 * MS] * 2
    # An epoch's first step is in no slice.
    assert training.events[:3] == [(0, 0, State.WAITING), (0, 1, State.DISCARDING), (0, 2, State.MEASURING)]


def test_a_child_waits_where_a_whole_slice_fits() -> None:
    # Of 13 steps 5 + 2 + 4 and one more to end it: none from step 11 on. Of 11 none fits any more after the warm-up.
    for steps_per_epoch, waits_at in (13, [5, 0, 0]), (11, [0, 0, 0]):
        training = Training(clock_of(steps_per_epoch), turns=2)
        training.play(steps_per_epoch)
        assert [step for _, step, state in training.events if state is State.WAITING] == waits_at


@pytest.mark.parametrize("steps_per_epoch", [12, 16, 40])
def test_what_is_discarded_goes_on_in_the_next_epochs_where_none_has_room_for_it(steps_per_epoch: int) -> None:
    training = Training(clock_of(steps_per_epoch), turns=4, step_ms=1)  # 20 of these settle a child
    training.play(steps_per_epoch)
    places = [(epoch * steps_per_epoch + step, state) for epoch, step, state in training.events]
    waits = [place for place, state in places if state is State.WAITING][1:-1]
    begins = [place for place, state in places if state is State.DISCARDING][1:]
    assert all(20 <= begin - wait <= 20 + steps_per_epoch for wait, begin in zip(waits, begins, strict=True))


def test_what_an_epoch_cuts_off_a_slice_is_discarded_before_it() -> None:
    """A slice of 4 ms, where 100 were to be measured, would have nothing but what comes right after others' turns."""
    for steps_per_epoch, discarded in (8, 20 + 96), (400, 20):
        clock = clock_of(steps_per_epoch)
        assert clock.warmup.lacking(MS) == discarded - 20
        training = Training(clock, turns=4, step_ms=1)
        training.play(steps_per_epoch, epochs=200)
        places = [(epoch * steps_per_epoch + step, state) for epoch, step, state in training.events]
        waits = [place for place, state in places if state is State.WAITING][1:-1]
        begins = [place for place, state in places if state is State.DISCARDING][1:]
        for wait, begin in zip(waits, begins, strict=True):
            assert discarded <= begin - wait <= discarded + steps_per_epoch


@pytest.mark.parametrize("steps_per_epoch", [6, 7, 8, 9, 10, 11, 12, 13, 15, 23, 24, 40])
def test_no_slice_crosses_the_end_of_an_epoch(steps_per_epoch: int) -> None:
    training = Training(clock_of(steps_per_epoch), turns=9)
    slices = training.play(steps_per_epoch)
    assert [(slice_.count, slice_.ns) for slice_ in slices] == [(4, 40 * MS)] * 9  # an epoch's end takes 500 ms more
    begun = [step for epoch, step, state in training.events if state is State.DISCARDING and epoch]
    assert min(begun) == (3 if steps_per_epoch >= 10 else steps_per_epoch - 5)  # an epoch of 9 has no room for 8 steps


@pytest.mark.parametrize(
    ("step_ms", "settle_ms", "discarded"),
    [(0.5, 20, 40), (3, 20, 7), (10, 20, 2), (30, 20, 2), (30, 50, 2), (3, 50, 17), (51, 20, 1), (201, 20, 0)],
)
def test_what_is_discarded_goes_by_the_duration_of_a_step(step_ms: float, settle_ms: int, discarded: int) -> None:
    training = Training(clock_of(200, settle_ms=settle_ms), turns=1, step_ms=step_ms)
    training.play(200)
    assert [step for _, step, _ in training.events] == [5, 5 + discarded, 9 + discarded, 9 + discarded]


@pytest.mark.parametrize(
    ("step_ms", "discarded"),
    [(1, 120), (10, 60), (100, 24), (300, 10), (5_000, 1)],  # five times over for 0.6 s at most, once for 3 s
)
def test_what_a_feed_has_put_by_is_used_up_before_a_slice(step_ms: float, discarded: int) -> None:
    queued = Pace(TrialPlan(), print, settle_ns=0, queued=24)
    assert queued.discarded(step_ms * MS) == discarded
    clock = SliceClock(WarmUpClock(TrialPlan(steps_per_slice=4, warmup_slices=1), 300, sync_ns=0), queued)
    training = Training(clock, turns=2, step_ms=1)
    training.play(300)
    measured = [step for _, step, state in training.events if state is State.DISCARDING]
    waited = [step for _, step, state in training.events if state is State.WAITING]
    assert [began - asked for asked, began in zip(waited, measured, strict=False)] == [120, 120]


@pytest.mark.parametrize(
    ("queued", "executed", "steps"), [(0, 1, 1), (0, 8, 8), (24, 1, 24), (24, 5, 25), (24, 32, 32)]
)
def test_a_slice_holds_what_the_workers_of_a_feed_deliver_at_once(queued: int, executed: int, steps: int) -> None:
    """However long a step seems to take: the first ones may have waited."""
    warmup = WarmUpClock(TrialPlan(), 400, sync_ns=0, executed=executed, queued=queued)
    assert warmup.steps_per_slice == steps
    assert WarmUpClock(TrialPlan(steps_per_slice=4), 400, sync_ns=0, queued=queued).steps_per_slice == 4


@pytest.mark.parametrize("warm_up_ms", [3, 12, 300])
def test_a_warm_up_beside_others_decides_nothing_about_what_is_discarded(warm_up_ms: float) -> None:
    training = Training(clock_of(400, alone=False), turns=3, step_ms=3, warm_up_ms=warm_up_ms)
    training.play(400)
    waits = [step for _, step, state in training.events if state is State.WAITING]
    begins = [step for _, step, state in training.events if state is State.DISCARDING]
    assert [begin - wait for wait, begin in zip(waits, begins, strict=False)] == [4, 7, 7]


def test_steps_that_are_quicker_in_turns_make_longer_slices() -> None:
    plan = TrialPlan(warmup_slices=1)
    # 40 ms are half of what a slice is to last, 80 ms are enough; an epoch of 12 steps has no room for a longer slice.
    for steps, step_ms, counts in (400, 10, [4, 8]), (400, 20, [4, 4]), (400, 1, [4, 128]), (12, 1, [4, 8]):
        warmup = WarmUpClock(plan, steps, sync_ns=0)
        training = Training(SliceClock(warmup, Pace(plan, print, 0)), turns=2, step_ms=step_ms, warm_up_ms=30)
        slices = training.play(steps)
        assert [slice_.count for slice_ in slices] == counts
        assert warmup.steps_per_slice == counts[-1]
        assert {slice_.unit_ns for slice_ in slices} == {step_ms * MS}


def test_one_epoch_is_discarded_where_epochs_are_counted_that_have_several_steps() -> None:
    clock = clock_of(None, least=1)
    training = Training(clock, turns=2, step_ms=30)
    clock.begin_epoch()
    for epoch in range(100):
        training.before(epoch)
        training.now_ns += 30 * MS
    assert clock.state is State.OVER
    assert [step for _, step, _ in training.events] == [5, 6, 10, 10, 11, 15, 15]


def test_an_epoch_that_is_shorter_than_was_said_begins_the_turn_anew() -> None:
    clock = clock_of(100)
    training = Training(clock, turns=2)
    with pytest.raises(AssertionError, match="never over"):
        training.play(9, epochs=1)  # cut off while the first slice was measured
    assert clock.state is State.MEASURING
    assert [(slice_.ns, slice_.cycle) for slice_ in training.play(100)] == [(40 * MS, 0), (40 * MS, 1)]
