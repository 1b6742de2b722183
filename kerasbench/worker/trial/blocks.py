"""When to synchronise, and what lies between: the measuring protocol as a state machine that owns no clock.

Fed with steps and clock readings, so that tests can feed it sequences. METHOD: blocks of K steps inside an epoch;
K calibrated once; warm-up kept; ten measured blocks.
"""

import statistics
from collections.abc import Sequence

from kerasbench.exchange.measurement import Block
from kerasbench.exchange.requests import Protocol

LEAD_STEPS = 1  # an epoch's first step starts the input pipeline (11 ms on TensorFlow): a cost of the epoch, not a step
SYNC_SHARE = 0.01  # clock and synchronisation may be this part of a block
STEADY_WINDOW = 5  # blocks in each of the two medians that are compared
STEADY_TOLERANCE = 0.03  # the minimal effect that kerasbench calls a difference
WARMUP_MIN_BLOCKS = 3
WARMUP_MAX_BLOCKS = 30
MEASURE_MIN_BLOCKS = 5  # never fewer, however slow the step


def is_steady(step_ns: Sequence[float]) -> bool:
    """Tell whether the last ten blocks show no trend: their two halves agree and the first is no outlier."""
    if len(step_ns) < 2 * STEADY_WINDOW:
        return False
    last_ten = step_ns[-2 * STEADY_WINDOW :]
    before, after = statistics.median(last_ten[:STEADY_WINDOW]), statistics.median(last_ten[STEADY_WINDOW:])
    low, _, high = statistics.quantiles(last_ten, n=4)
    fence = 1.5 * (high - low)  # Tukey's fence
    return abs(before - after) <= STEADY_TOLERANCE * after and low - fence <= last_ten[0] <= high + fence


class BlockClock:
    """Sort what lies between two marks into warm-up and measured blocks.

    ``steps_per_epoch`` bounds a block (None: counted in epochs, without bound); ``sync_ns`` is what one reading of
    the clock with its synchronisation costs. Call ``begin_epoch``, then ``mark`` at each step that it ``wants``,
    until ``done``.
    """

    def __init__(self, protocol: Protocol, steps_per_epoch: int | None, sync_ns: int) -> None:
        self._protocol = protocol
        self._last_step = None if steps_per_epoch is None else steps_per_epoch - 1
        self._target_ns = max(protocol.block_ns, int(sync_ns / SYNC_SHARE))
        self._calibrating = protocol.steps_per_block is None
        self._reached_target_once = False
        self._next_mark: int | None = None
        self._open: tuple[int, int] | None = None
        self._steady_candidates: list[float] = []
        self.steps_per_block = protocol.steps_per_block or 1
        self.warmup: list[Block] = []
        self.blocks: list[Block] = []
        self.steady = False
        self.warm = False

    @property
    def done(self) -> bool:
        """Enough measured blocks, or time is up and there are at least MEASURE_MIN_BLOCKS."""
        enough = min(self._protocol.blocks, MEASURE_MIN_BLOCKS)
        time_up = sum(block.ns for block in self.blocks) >= self._protocol.measure_max_ns
        return len(self.blocks) >= (enough if time_up else self._protocol.blocks)

    @property
    def warmup_blocks(self) -> int:
        """Warm-up blocks of the frozen size, those that calibration made not counted."""
        return len(self._steady_candidates)

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
        fits = self._last_step is None or end <= self._last_step
        self._open, self._next_mark = ((step, now_ns), end) if fits else (None, None)

    def _close(self, block: Block) -> None:
        if self.warm:
            self.blocks.append(block)
            return
        self.warmup.append(block)
        if self._calibrating:
            self._calibrate(block)
        else:
            self._steady_candidates.append(block.ns / block.count)
        self._judge_warmth()

    def _calibrate(self, block: Block) -> None:
        # Twice at the same size: one hiccup must not freeze a K that is far too small.
        if block.ns >= self._target_ns and self._reached_target_once:
            self._calibrating = False
        elif block.ns >= self._target_ns:
            self._reached_target_once = True
        elif self._fits_epoch(2 * self.steps_per_block):
            self.steps_per_block *= 2
            self._reached_target_once = False
        else:
            self._calibrating = False

    def _fits_epoch(self, steps: int) -> bool:
        return self._last_step is None or LEAD_STEPS + steps <= self._last_step

    def _judge_warmth(self) -> None:
        if self._calibrating:
            return
        self.steady = is_steady(self._steady_candidates)
        frozen = self._protocol.warmup_blocks
        if frozen is not None:
            self.warm = self.warmup_blocks >= frozen
            return
        spent_ns = sum(block.ns for block in self.warmup)
        enough = self.warmup_blocks >= WARMUP_MIN_BLOCKS and spent_ns >= self._protocol.warmup_min_ns
        too_long = self.warmup_blocks >= WARMUP_MAX_BLOCKS or spent_ns >= self._protocol.warmup_max_ns
        self.warm = (enough and self.steady) or (self.warmup_blocks >= 1 and too_long)
