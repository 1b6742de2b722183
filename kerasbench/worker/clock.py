"""Calibration and warm-up of training, then slices (of K steps) in turns, by clocks which are told of the time."""

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from kerasbench.protocol.measurement import Slice, Turn
from kerasbench.protocol.requests import TrialPlan
from kerasbench.worker.usage import Meter, Reading

MS = 1_000_000
SYNC_SHARE = 0.01  # clock and synchronisation may be this part of a slice
STEADY_WINDOW = 5  # slices in each of the two medians that are compared
STEADY_TOLERANCE = 0.03  # the minimal effect that kerasbench calls a difference
WARMUP_MAX_SLICES = 30
SLOW_SLICES = 2  # warm up what is UNHURRIED_NS long or longer: it has taken several steps before
TOO_SHORT = 0.75  # a slice of less than this part of what it should last: K was found while others ran
HICCUP_TIMES = 4  # so many times as long as asked for is a single step by itself, whatever its hiccups
LONGEST_SLICES = 10  # times as long as asked for, so that a hiccup during calibration makes no slice endless

SETTLE_NS, SETTLE_GPU_NS = 20 * MS, 50 * MS  # caches and queues are filled again, a GPU's clock has risen
LEAST_STEPS = 2  # the first refills what was prefetched
SLOW_NS = 50 * MS  # one unit alone settles a child whose units take longer
SLOWEST_NS = 200 * MS  # what others left behind is no matter beside such a unit
UNHURRIED_NS = 3 * SLOWEST_NS  # of such units even the first slice discards none
DRAIN_NS = 3_000 * MS  # so long a slice may take to use up what a feed's workers put by while others had their turns
# While steps use that up, workers go on: of n batches, with a step that takes the share r of what a batch does, n/(1-r)
# steps use up all. So many times n are discarded, as long as they take so long at most.
REFILLS, REFILLED_NS = 5, 600 * MS
FIRST = Turn(0, 0)

Ask = Callable[[Slice | None], Turn | None]  # reports the last slice (None: nothing yet), and waits for the next turn


def is_steady(step_ns: Sequence[float]) -> bool:
    """Tell whether the last ten slices show no trend: their two halves agree and the first is no outlier."""
    last_ten = step_ns[-2 * STEADY_WINDOW :]
    if len(last_ten) < 2 * STEADY_WINDOW:
        return False
    before, after = statistics.median(last_ten[:STEADY_WINDOW]), statistics.median(last_ten[STEADY_WINDOW:])
    low, _, high = statistics.quantiles(last_ten, n=4)
    fence = 1.5 * (high - low)  # Tukey's fence
    return abs(before - after) <= STEADY_TOLERANCE * after and low - fence <= last_ten[0] <= high + fence


def refill_ns(slices: Sequence[Slice]) -> float:
    """Return r where the quickest slices of k steps take r + k * s; infinite where all have as many steps."""
    quickest: dict[int, int] = {}
    for slice_ in slices:
        quickest[slice_.count] = min(slice_.ns, quickest.get(slice_.count, slice_.ns))
    if len(quickest) < 2:
        return math.inf
    small, large = sorted(quickest)[-2:]
    times = large / small
    return max(0.0, (times * quickest[small] - quickest[large]) / (times - 1))


class WarmUpClock:
    """Find K, unless the plan has it, and warm up in slices of K steps, whole executions.

    K doubles until a slice is long enough, twice in a row, or fills an epoch. A reading costs ``sync_ns`` on an idle
    device; on an ``asynchronous`` one it drains a queue, and to refill that is to be a small part of a slice.
    """

    def __init__(
        self,
        plan: TrialPlan,
        steps_per_epoch: int | None,
        sync_ns: int,
        asynchronous: bool = False,
        executed: int = 1,
        queued: int = 0,
    ) -> None:
        self._plan = plan
        self._asynchronous = asynchronous
        self._target_ns = max(plan.slice_ns, int(sync_ns / SYNC_SHARE))
        self._calibrating = plan.steps_per_slice is None
        self._long_enough_once = False
        self._next_mark: int | None = None
        self._open: tuple[int, int] | None = None  # the step and the time at which the open slice began
        self._warming: list[float] = []  # step times of the slices since K is fixed
        self.execution = 1 if steps_per_epoch is None else executed  # steps from one that `fit` tells of
        # The last one that it tells of in an epoch. None: epochs are counted, not steps.
        self.last_step = None if steps_per_epoch is None else (steps_per_epoch - 1) // self.execution * self.execution
        executions = max(1, math.ceil(queued / self.execution))  # workers deliver in bursts: a slice holds several
        self.steps_per_slice = plan.steps_per_slice or executions * self.execution  # K
        self.slices: list[Slice] = []
        # Steps that are so slow that those before have warmed it up: nothing is left to do.
        self.warm = not self._calibrating and plan.warmup_slices == 0

    @property
    def unit_ns(self) -> float:
        """Of a step (or epoch), once it is warm: the median over the slices of K."""
        return statistics.median(slice_.unit_ns for slice_ in self.slices if slice_.count == self.steps_per_slice)

    def begin_epoch(self) -> None:
        self._open = None  # a slice never spans two epochs
        # The first execution starts the input pipeline (11 ms on TensorFlow): a cost of the epoch, not of a step.
        self._next_mark = self.execution

    def shorten(self, steps: int) -> None:
        """Take note that an epoch has so many steps, where it was announced with more: a slice is to fit into it."""
        if self.last_step is not None and steps - 1 < self.last_step:
            self.last_step = (steps - 1) // self.execution * self.execution
            longest = max(self.execution, self.last_step // 2 // self.execution * self.execution)
            if self.steps_per_slice > longest:
                self.steps_per_slice, self._calibrating = longest, False

    def wants(self, step: int) -> bool:
        return step == self._next_mark

    def mark(self, step: int, now_ns: int) -> None:
        """Close the slice that ends before this step and open the next one, if the epoch has room for it."""
        if self._open is not None:
            first_step, since_ns = self._open
            slice_ = Slice(step - first_step, now_ns - since_ns)
            self.slices.append(slice_)
            if self._calibrating:
                self._calibrate(slice_.ns)
            else:
                self._warming.append(slice_.unit_ns)
            if not self._calibrating:
                self._judge_warmth()
        end = step + self.steps_per_slice
        fits = self.last_step is None or end <= self.last_step
        self._open, self._next_mark = ((step, now_ns), end) if fits else (None, None)

    def _calibrate(self, ns: int) -> None:
        target_ns: float = self._target_ns
        if self._asynchronous:
            needed_ns = max(target_ns, refill_ns(self.slices) / SYNC_SHARE)
            target_ns = min(needed_ns, max(target_ns, LONGEST_SLICES * self._plan.slice_ns))
        doubled = 2 * self.steps_per_slice
        if ns >= target_ns:
            # Twice at the same size: one hiccup must not fix a K that is far too small.
            by_far = self.steps_per_slice == self.execution and ns >= HICCUP_TIMES * target_ns
            self._calibrating = not (self._long_enough_once or by_far)
            self._long_enough_once = True
        elif self._has_room(doubled):
            self.steps_per_slice = doubled
            self._long_enough_once = False
        else:
            self._calibrating = False

    def correct(self, unit_ns: float) -> None:
        if self._plan.steps_per_slice is not None:
            return
        while self.steps_per_slice * unit_ns < TOO_SHORT * self._target_ns and self._has_room(2 * self.steps_per_slice):
            self.steps_per_slice *= 2

    def lacking(self, unit_ns: float) -> int:
        """Return how many steps a slice lacks that was to be longer than an epoch has room for."""
        if self._has_room(2 * self.steps_per_slice):
            return 0
        return max(0, math.ceil(self._target_ns / unit_ns) - self.steps_per_slice)

    def _has_room(self, steps: int) -> bool:
        return self.last_step is None or self.execution + steps <= self.last_step

    def _judge_warmth(self) -> None:
        done, spent_ns = len(self._warming), sum(slice_.ns for slice_ in self.slices)
        if self._plan.warmup_slices is not None:
            self.warm = done >= self._plan.warmup_slices
            return
        too_long = done >= WARMUP_MAX_SLICES or spent_ns >= self._plan.warmup_max_ns
        is_slow = done >= SLOW_SLICES and min(self._warming[-SLOW_SLICES:]) >= UNHURRIED_NS
        is_enough = spent_ns >= self._plan.warmup_min_ns and (is_slow or is_steady(self._warming))
        self.warm = is_enough or (done >= 1 and too_long)


@dataclass(frozen=True)
class Pace:
    plan: TrialPlan
    synchronize: Callable[[], None]
    settle_ns: int
    meter: Meter = field(default_factory=Meter)
    asynchronous: bool = False  # the device works through a queue
    queued: int = 0  # steps for which the input pipeline puts batches by while others have their turns

    def discarded(self, unit_ns: float, least: int = LEAST_STEPS) -> int:
        """Return how many steps (or epochs, or calls) of this duration are discarded at the beginning of a slice."""
        drained = self.drained(unit_ns)
        if unit_ns > SLOWEST_NS:
            return drained
        return max(drained, 1 if unit_ns > SLOW_NS else max(least, math.ceil(self.settle_ns / unit_ns)))

    def drained(self, unit_ns: float) -> int:
        """Return how many of these steps use up what the input pipeline has put by, and what it adds meanwhile."""
        at_least = min(self.queued, math.ceil(DRAIN_NS / unit_ns))
        return max(at_least, min(REFILLS * self.queued, math.ceil(REFILLED_NS / unit_ns)))


def granted(turns: int, turn: Turn = FIRST) -> Ask:
    """Return an ``Ask`` that grants so many turns at once, for slices without other columns."""
    left = itertools.repeat(turn, turns)
    return lambda measured: next(left, None)


def measure_slices(ask: Ask, measure: Callable[[Turn], Slice]) -> None:
    turn = ask(None)
    while turn is not None:
        turn = ask(measure(turn))


class State(Enum):
    WARMING = auto()  # calibration and warm-up
    WAITING = auto()  # for a step from which a slice fits into the epoch, and there for a turn
    DISCARDING = auto()  # what comes first in a turn
    MEASURING = auto()
    OVER = auto()  # there are no more turns


class SliceClock:
    """Warm up, then measure slices of K steps, each in its turn. None crosses an epoch's end or has its first step."""

    # How much a slice discards, at least ``least``, follows from the slice before it. The first one discards K steps:
    # while others warm up (not ``alone``), steps take longer than in turns.

    def __init__(self, warmup: WarmUpClock, pace: Pace, least: int = LEAST_STEPS, alone: bool = False) -> None:
        self._pace = pace
        self._least = least
        self._alone = alone
        self._discard = 0  # steps, at the beginning of the next slice
        self._epochs = 0  # that are still to end before it begins
        self._turn = FIRST
        self._next: int | None = None  # the step at which discarding or measuring ends
        self._began = Reading(0, 0, 0)
        self.warmup = warmup
        self.state = State.WAITING if warmup.warm else State.WARMING
        self.slices: list[Slice] = []
        self.epoch_ends_ns: list[int] = []  # how much longer than its last steps the end of an epoch took

    def begin_epoch(self) -> None:
        """Begin a slice again that the epoch's end has cut off; only an epoch shorter than announced does that."""
        self.warmup.begin_epoch()
        self._epochs = max(0, self._epochs - 1)
        if self.state in (State.DISCARDING, State.MEASURING) and not self._epochs:
            self.state, self._next = State.DISCARDING, self._measured_from(0)

    def wants(self, step: int) -> bool:
        match self.state:
            case State.WARMING:
                return self.warmup.wants(step)
            case State.WAITING:
                return self._measured_from(step) is not None
            case _:
                return step == self._next

    def take(self, step: int, turn: Turn | None) -> None:
        if turn is None:
            self.state, self._next = State.OVER, None
        else:
            self._turn = turn
            self._epochs = self._epochs_before_room() if step == 0 else 0
            self.state, self._next = State.DISCARDING, None if self._epochs else self._measured_from(step)

    def mark(self, step: int, now: Reading) -> None:
        match self.state:
            case State.WARMING:
                self.warmup.mark(step, now.ns)
                if self.warmup.warm:
                    self._discard = max(self.warmup.steps_per_slice, self._pace.drained(self.warmup.unit_ns))
                    if self._alone or self.warmup.unit_ns >= UNHURRIED_NS:
                        self._discard = self._discarded(self.warmup.unit_ns)
                    self.state = State.WAITING
            case State.DISCARDING:
                self._began = now
                self.state, self._next = State.MEASURING, step + self.warmup.steps_per_slice
            case State.MEASURING:
                slice_ = self._pace.meter.with_card(now.since(self._began, self.warmup.steps_per_slice, self._turn))
                self.slices.append(slice_)
                self.warmup.correct(slice_.unit_ns)
                self._discard = self._discarded(slice_.unit_ns)
                self.state, self._next = State.WAITING, None
            case _:
                raise AssertionError(f"no step is marked while {self.state}")

    def _discarded(self, unit_ns: float) -> int:
        """What comes right after others' turns is slower, and the more of a slice the shorter that is."""
        return self._pace.discarded(unit_ns, self._least) + self.warmup.lacking(unit_ns)

    def _epochs_before_room(self) -> int:
        """Return how many whole epochs are discarded, where none has room for what is discarded and the slice."""
        warmup = self.warmup
        if warmup.last_step is None:
            return 0
        beyond = self._discard - (warmup.last_step - warmup.steps_per_slice)
        return max(0, math.ceil(beyond / (warmup.last_step + warmup.execution)))

    def _measured_from(self, step: int) -> int | None:
        """None: the epoch is too short. Its first execution is discarded, too; less, where epochs before it were."""
        execution = self.warmup.execution
        first = step + -(-self._discard // execution) * execution
        if self.warmup.last_step is None:
            return first
        latest = self.warmup.last_step - self.warmup.steps_per_slice
        if step == 0:
            first = max(execution, min(first + execution, latest))
        return first if first <= latest else None
