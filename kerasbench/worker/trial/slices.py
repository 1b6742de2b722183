"""A slice: what is discarded at its beginning, what is measured, and where in an epoch it fits (owns no clock).

Fed with steps and readings, as ``blocks`` is, so that tests can feed it sequences.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from kerasbench.exchange.devices import CPU, Device
from kerasbench.exchange.measurement import Block
from kerasbench.exchange.requests import Protocol
from kerasbench.exchange.turns import Turn
from kerasbench.worker.trial.blocks import LEAD_STEPS, WarmUpClock
from kerasbench.worker.trial.usage import Meter, Reading

Ask = Callable[[Block | None], Turn | None]  # says what was measured (None: nothing yet), and waits for the next turn

MS = 1_000_000
SETTLE_NS, SETTLE_GPU_NS = 20 * MS, 50 * MS  # caches and queues are filled again, a GPU's clock has risen
FIRST = Turn(0, 0)
LEAST_STEPS = 2  # the first refills what was prefetched
SLOW_NS = 50 * MS  # one unit alone settles a child whose units take longer
SLOWEST_NS = 200 * MS  # what others left behind is no matter beside such a unit


@dataclass(frozen=True)
class Pace:
    """How a trial measures: how long slices are, how it waits for its device, how long it settles before each.

    ``meter`` reads the clock and the counters at both ends of a slice. ``asynchronous``: the device has a queue.
    """

    protocol: Protocol
    synchronize: Callable[[Any], None]
    settle_ns: int
    meter: Meter = field(default_factory=Meter)
    asynchronous: bool = False

    def discarded(self, unit_ns: float, least: int = LEAST_STEPS) -> int:
        """Return how many steps (or epochs, or calls) of this duration are discarded at the beginning of a slice."""
        if unit_ns > SLOWEST_NS:
            return 0
        return 1 if unit_ns > SLOW_NS else max(least, math.ceil(self.settle_ns / unit_ns))

    def counted(self, unit_ns: float) -> int:
        """Return how many calls of this duration a slice measures."""
        return math.ceil(self.protocol.block_ns / unit_ns)


def settle_ns(device: Device) -> int:
    """Return how long a child settles after it was parked."""
    return SETTLE_NS if device.platform == CPU else SETTLE_GPU_NS


def granted(turns: int, turn: Turn = FIRST) -> Ask:
    """Return what grants so many turns by itself, where slices are measured without other columns."""
    left = itertools.repeat(turn, turns)
    return lambda measured: next(left, None)


def measured(ask: Ask, measure: Callable[[Turn], Block]) -> list[Block]:
    """Measure slice after slice, as long as there are turns."""
    slices: list[Block] = []
    turn = ask(None)
    while turn is not None:
        slices.append(measure(turn))
        turn = ask(slices[-1])
    return slices


class State(Enum):
    """What a clock of slices is doing."""

    WARMING = auto()  # calibration and warm-up
    WAITING = auto()  # for a step from which a slice fits into the epoch, and there for a turn
    DISCARDING = auto()  # what comes first in a turn
    MEASURING = auto()
    OVER = auto()  # there are no more turns


class SliceClock:
    """Warm up, then measure slices of K steps, each in its turn.

    No slice crosses an epoch's end, nor has an epoch's first step. Call ``begin_epoch``; then, as long as it ``wants``
    a step: ``take`` a turn (None: there are no more) where it is ``waiting``, else ``mark`` the step.

    What a slice discards goes by the slice before it. The first one discards K steps: others may have run during the
    warm-up, whose steps then took longer than they do in a turn. ``alone``: nothing else ran during this one's.
    """

    def __init__(self, warmup: WarmUpClock, pace: Pace, least: int = LEAST_STEPS, alone: bool = False) -> None:
        self._pace = pace
        self._least = least  # discarded of what is quick
        self._alone = alone
        self._discard = 0
        self._turn = FIRST
        self._next: int | None = None
        self._began = Reading(0, 0, 0)
        self.warmup = warmup
        self.state = State.WARMING
        self.slices: list[Block] = []
        self.switches = 0

    @property
    def waiting(self) -> bool:
        return self.state is State.WAITING

    @property
    def over(self) -> bool:
        return self.state is State.OVER

    @property
    def last(self) -> Block | None:
        """The slice that was measured last."""
        return self.slices[-1] if self.slices else None

    def begin_epoch(self) -> None:
        """Begin a slice again that the epoch's end has cut off; only an epoch shorter than announced does that."""
        self.warmup.begin_epoch()
        if self.state in (State.DISCARDING, State.MEASURING):
            self._begin(0)

    def wants(self, step: int) -> bool:
        """Tell whether something is to be done before this step."""
        match self.state:
            case State.WARMING:
                return self.warmup.wants(step)
            case State.WAITING:
                return self._measured_from(step) is not None
            case _:
                return step == self._next

    def take(self, step: int, turn: Turn | None) -> None:
        """Begin a slice before this step, or end."""
        if turn is None:
            self.state, self._next = State.OVER, None
        else:
            self._turn = turn
            self._begin(step)

    def mark(self, step: int, now: Reading) -> None:
        """Go on to the next state, at a step that was wanted."""
        match self.state:
            case State.WARMING:
                self.warmup.mark(step, now.ns)
                if self.warmup.warm:
                    self._discard = self.warmup.steps_per_block
                    if self._alone:
                        self._discard = self._pace.discarded(self.warmup.unit_ns, self._least)
                    self.state = State.WAITING
            case State.DISCARDING:
                self._began, self._next = now, step + self.warmup.steps_per_block
                self.state = State.MEASURING
            case State.MEASURING:
                ended = now.since(self._began, self.warmup.steps_per_block, self._turn)
                self.slices.append(self._pace.meter.with_card(ended))
                self._discard = self._pace.discarded(self.slices[-1].unit_ns, self._least)
                self.switches += now.switches - self._began.switches
                self.state, self._next = State.WAITING, None
            case _:
                raise AssertionError(f"no step is marked while {self.state}")

    def _begin(self, step: int) -> None:
        self.state, self._next = State.DISCARDING, self._measured_from(step)

    def _measured_from(self, step: int) -> int | None:
        """Return from where a slice is measured whose turn comes before this step; None where the epoch is too short.

        An epoch's first step is discarded besides. Where no epoch has room for all that is to be discarded, less is.
        """
        first = step + self._discard
        if self.warmup.last_step is None:
            return first
        latest = self.warmup.last_step - self.warmup.steps_per_block
        if step == 0:
            first = max(LEAD_STEPS, min(first + LEAD_STEPS, latest))
        return first if first <= latest else None
