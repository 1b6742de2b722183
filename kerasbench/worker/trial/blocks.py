"""Calibration and warm-up: how many steps a slice has, and when a model is as quick as it gets (owns no clock).

Fed with steps and clock readings, so that tests can feed it sequences. METHOD: blocks of K steps inside an epoch; K
calibrated once; warm-up kept.
"""

import math
import statistics
from collections.abc import Sequence

from kerasbench.exchange.measurement import Block
from kerasbench.exchange.requests import Protocol

LEAD_STEPS = 1  # an epoch's first step starts the input pipeline (11 ms on TensorFlow): a cost of the epoch, not a step
SYNC_SHARE = 0.01  # clock and synchronisation may be this part of a block
STEADY_WINDOW = 5  # blocks in each of the two medians that are compared
STEADY_TOLERANCE = 0.03  # the minimal effect that kerasbench calls a difference
WARMUP_MAX_BLOCKS = 30
LONGEST_BLOCKS = 10  # times as long as asked for, so that a hiccup while K is looked for makes no slice endless


def is_steady(step_ns: Sequence[float]) -> bool:
    """Tell whether the last ten blocks show no trend: their two halves agree and the first is no outlier."""
    if len(step_ns) < 2 * STEADY_WINDOW:
        return False
    last_ten = step_ns[-2 * STEADY_WINDOW :]
    before, after = statistics.median(last_ten[:STEADY_WINDOW]), statistics.median(last_ten[STEADY_WINDOW:])
    low, _, high = statistics.quantiles(last_ten, n=4)
    fence = 1.5 * (high - low)  # Tukey's fence
    return abs(before - after) <= STEADY_TOLERANCE * after and low - fence <= last_ten[0] <= high + fence


def refill_ns(blocks: Sequence[Block]) -> float:
    """Return what blocks cost beyond their steps, by the quickest of their two largest sizes; infinite for one size.

    A block of k steps takes r + k * s. So r is what twice the smaller one takes beyond the larger one, where that has
    twice as many steps.
    """
    quickest: dict[int, int] = {}
    for block in blocks:
        quickest[block.count] = min(block.ns, quickest.get(block.count, block.ns))
    if len(quickest) < 2:
        return math.inf
    small, large = sorted(quickest)[-2:]
    times = large / small
    return max(0.0, (times * quickest[small] - quickest[large]) / (times - 1))


class WarmUpClock:
    """Find K, where the protocol has none, and warm up in blocks of K steps.

    ``steps_per_epoch`` bounds a block (None: counted in epochs, without bound); ``sync_ns`` is what one reading of
    the clock with its synchronisation costs on an idle device. ``asynchronous``: the device works through a queue,
    which a synchronisation drains. What refilling it costs is to be as small a part of a block as the clock is. Call
    ``begin_epoch``, then ``mark`` at each step that it ``wants``, until it is ``warm``.
    """

    def __init__(
        self, protocol: Protocol, steps_per_epoch: int | None, sync_ns: int, asynchronous: bool = False
    ) -> None:
        self._protocol = protocol
        self._asynchronous = asynchronous
        self._calibrated: list[Block] = []
        self._target_ns = max(protocol.block_ns, int(sync_ns / SYNC_SHARE))
        self._calibrating = protocol.steps_per_block is None
        self._reached_target_once = False
        self._next_mark: int | None = None
        self._open: tuple[int, int] | None = None
        self._steady_candidates: list[float] = []
        self.last_step = None if steps_per_epoch is None else steps_per_epoch - 1
        self.steps_per_block = protocol.steps_per_block or 1
        self.blocks: list[Block] = []
        self.steady = False
        self.warm = False

    @property
    def unit_ns(self) -> float:
        """The time of a step (or epoch), once it is warm: the median over the blocks of K."""
        return statistics.median(block.unit_ns for block in self.blocks if block.count == self.steps_per_block)

    def begin_epoch(self) -> None:
        """Forget the open block (a block never spans two epochs) and look out for the first step to mark."""
        self._open = None
        self._next_mark = LEAD_STEPS

    def wants(self, step: int) -> bool:
        """Tell whether this step is to be marked."""
        return step == self._next_mark

    def mark(self, step: int, now_ns: int) -> None:
        """Close the block that ends before this step and open the next one."""
        if self._open is not None:
            opened_at, since_ns = self._open
            self._close(Block(step - opened_at, now_ns - since_ns))
        end = step + self.steps_per_block
        fits = self.last_step is None or end <= self.last_step
        self._open, self._next_mark = ((step, now_ns), end) if fits else (None, None)

    def _close(self, block: Block) -> None:
        self.blocks.append(block)
        if self._calibrating:
            self._calibrate(block)
        else:
            self._steady_candidates.append(block.unit_ns)
        if not self._calibrating:
            self._judge_warmth()

    def _calibrate(self, block: Block) -> None:
        self._calibrated.append(block)
        target_ns: float = self._target_ns
        if self._asynchronous:
            needed_ns = max(target_ns, refill_ns(self._calibrated) / SYNC_SHARE)
            target_ns = min(needed_ns, max(target_ns, LONGEST_BLOCKS * self._protocol.block_ns))
        # Twice at the same size: one hiccup must not freeze a K that is far too small.
        if block.ns >= target_ns and self._reached_target_once:
            self._calibrating = False
        elif block.ns >= target_ns:
            self._reached_target_once = True
        elif self._fits_epoch(2 * self.steps_per_block):
            self.steps_per_block *= 2
            self._reached_target_once = False
        else:
            self._calibrating = False

    def _fits_epoch(self, steps: int) -> bool:
        return self.last_step is None or LEAD_STEPS + steps <= self.last_step

    def _judge_warmth(self) -> None:
        done = len(self._steady_candidates)  # of the frozen size, those that calibration made not counted
        self.steady = is_steady(self._steady_candidates)
        if self._protocol.warmup_blocks is not None:
            self.warm = done >= self._protocol.warmup_blocks
            return
        spent_ns = sum(block.ns for block in self.blocks)
        enough = spent_ns >= self._protocol.warmup_min_ns
        too_long = done >= WARMUP_MAX_BLOCKS or spent_ns >= self._protocol.warmup_max_ns
        self.warm = (enough and self.steady) or (done >= 1 and too_long)
