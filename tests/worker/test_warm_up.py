"""Calibration and warm-up are fed with steps and clock readings; no clock runs."""

import math

import pytest

from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import Protocol, counts_epochs
from kerasbench.worker.clock import LEAD_STEPS, WarmUpClock, is_steady, refill_ns

MS = 1_000_000


def run(clock: WarmUpClock, step_ns: float, steps_per_epoch: int, epoch_ns: float = 0, limit: int = 1_000_000) -> int:
    """Play training at a constant step time; return the number of steps until the clock is warm."""
    now, taken = 0.0, 0
    while taken < limit:
        clock.begin_epoch()
        for step in range(steps_per_epoch):
            if clock.wants(step):
                clock.mark(step, int(now))
                if clock.warm:
                    return taken
            now += step_ns
            taken += 1
        now += epoch_ns
    raise AssertionError("never warm")


@pytest.mark.parametrize(("step_ms", "expected"), [(0.3, 512), (2, 64), (30, 4), (100, 1), (1500, 1)])
def test_k_is_the_smallest_power_of_two_with_a_slice_of_100_ms(step_ms: float, expected: int) -> None:
    clock = WarmUpClock(Protocol(), 5000, sync_ns=1000)
    run(clock, step_ms * MS, 5000)
    assert clock.steps_per_slice == expected
    assert clock.unit_ns == pytest.approx(step_ms * MS)


def test_a_slice_is_long_enough_for_its_synchronisation() -> None:
    clock = WarmUpClock(Protocol(), 5000, sync_ns=4 * MS)
    run(clock, 2 * MS, 5000)
    assert clock.steps_per_slice * 2 * MS * 0.01 >= 4 * MS


def test_k_never_exceeds_an_epoch() -> None:
    clock = WarmUpClock(Protocol(), 25, sync_ns=1000)
    run(clock, MS, 25)
    assert clock.steps_per_slice == 16


def test_the_cost_of_an_epoch_is_in_no_slice() -> None:
    clock = WarmUpClock(Protocol(), 40, sync_ns=1000)
    run(clock, 2 * MS, 40, epoch_ns=500 * MS)
    assert {slice_.unit_ns for slice_ in clock.slices} == {2 * MS}


def test_the_first_step_of_an_epoch_is_in_no_slice() -> None:
    clock = WarmUpClock(Protocol(), 40, sync_ns=1000)
    clock.begin_epoch()
    assert [step for step in range(5) if clock.wants(step)] == [LEAD_STEPS]


def test_one_hiccup_does_not_freeze_a_k_that_is_too_small() -> None:
    clock = WarmUpClock(Protocol(), None, sync_ns=1000)
    clock.begin_epoch()
    now, step = 0, LEAD_STEPS
    while not clock.warm:
        clock.mark(step, now)
        taken = clock.steps_per_slice
        now += taken * MS + (150 * MS if step == LEAD_STEPS else 0)
        step += taken
    assert clock.steps_per_slice == 128


def test_a_steady_model_is_warm_after_a_second() -> None:
    clock = WarmUpClock(Protocol(), 5000, sync_ns=1000)
    run(clock, 2 * MS, 5000)
    assert clock.steady
    assert sum(slice_.ns for slice_ in clock.slices) >= 1000 * MS
    assert [slice_.count for slice_ in clock.slices[-10:]] == [64] * 10


def test_what_was_frozen_is_not_calibrated_again() -> None:
    clock = WarmUpClock(Protocol(steps_per_slice=8, warmup_slices=4), 5000, sync_ns=1000)
    run(clock, 2 * MS, 5000)
    assert clock.slices == [Slice(8, 16 * MS)] * 4


def test_where_no_warm_up_is_wanted_it_ends_with_calibration() -> None:
    clock = WarmUpClock(Protocol(warmup_slices=0), None, sync_ns=1000)
    clock.begin_epoch()
    now, epoch = 0, LEAD_STEPS
    while not clock.warm:
        clock.mark(epoch, now)
        now += clock.steps_per_slice * 30 * MS
        epoch += clock.steps_per_slice
    assert [slice_.count for slice_ in clock.slices] == [1, 2, 4, 4]


def test_a_warm_up_that_never_settles_ends_and_says_so() -> None:
    clock = WarmUpClock(Protocol(), None, sync_ns=1000)
    clock.begin_epoch()
    now, step, step_ns = 0.0, LEAD_STEPS, 200.0 * MS
    while not clock.warm:
        clock.mark(step, int(now))
        now += step_ns
        step_ns *= 0.97
        step += 1
    assert not clock.steady
    assert 3 < len(clock.slices) <= 40


@pytest.mark.parametrize(("steps", "by_epoch"), [(1, True), (7, True), (8, False), (1594, False)])
def test_short_epochs_are_counted_whole(steps: int, by_epoch: bool) -> None:
    assert counts_epochs(steps) is by_epoch


@pytest.mark.parametrize(
    ("durations", "steady"),
    [
        ([10.0] * 9, False),  # too few to tell
        ([10.0] * 10, True),
        ([50.0, *[10.0] * 10], True),  # the outlier lies before the last ten
        ([50.0, *[10.0] * 9], False),
        ([11.0] * 5 + [10.0] * 5, False),
        ([10.2] * 5 + [10.0] * 5, True),
    ],
)
def test_steady_means_that_the_halves_agree_and_the_first_is_no_outlier(durations: list[float], steady: bool) -> None:
    assert is_steady(durations) is steady


class QueuedDevice:
    """A device with a queue: a step takes ``host_ms`` to be sent and ``device_ms`` to be computed, side by side."""

    def __init__(self, host_ms: float, device_ms: float) -> None:
        self.host_ns, self.device_ns = host_ms * MS, device_ms * MS
        self.now_ns = self.free_ns = 0.0

    def send(self) -> None:
        self.now_ns += self.host_ns
        self.free_ns = max(self.now_ns, self.free_ns) + self.device_ns

    def drain(self) -> int:
        self.now_ns = max(self.now_ns, self.free_ns)
        return int(self.now_ns)

    @property
    def step_ns(self) -> float:
        """What a step takes in a long training."""
        return max(self.host_ns, self.device_ns)


@pytest.mark.parametrize(
    ("host_ms", "device_ms"), [(0.2, 0.5), (2, 3), (3, 2), (2, 2.1), (4, 30), (9, 10), (0.1, 0.01), (12, 400)]
)
def test_draining_and_refilling_a_queue_is_below_one_percent_of_a_slice(host_ms: float, device_ms: float) -> None:
    device = QueuedDevice(host_ms, device_ms)
    clock = WarmUpClock(Protocol(), 1_000_000, 0, asynchronous=True)
    clock.begin_epoch()
    for step in range(1_000_000):
        if clock.wants(step):
            clock.mark(step, device.drain())
        if clock.warm:
            break
        device.send()
    found = {slice_.unit_ns for slice_ in clock.slices if slice_.count == clock.steps_per_slice}
    assert all(device.step_ns <= unit_ns <= 1.01 * device.step_ns for unit_ns in found)


def test_what_a_refill_costs_is_found_from_two_sizes() -> None:
    assert refill_ns([Slice(1, 7), Slice(2, 12), Slice(2, 13)]) == 2  # 2 + 5 k
    assert refill_ns([Slice(4, 22), Slice(4, 23)]) == math.inf


def test_a_hiccup_while_k_is_looked_for_makes_no_slice_endless() -> None:
    clock, now = WarmUpClock(Protocol(), 1_000_000, 0, asynchronous=True), 0
    clock.begin_epoch()
    for step in range(1_000_000):
        if clock.wants(step):
            clock.mark(step, now)
        if clock.warm:
            break
        now += 5000 * MS if step == 2 else MS
    assert clock.steps_per_slice <= 1024
