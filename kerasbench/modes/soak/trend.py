"""A soak takes turns with a process of the same case that mostly rests: what slows both is not the model."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from kerasbench.analysis.estimates import Interval, t_quantile
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary, derived
from kerasbench.modes.soak import JUDGED_MINUTES, MODE
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Measurement, Samples
from kerasbench.text import MIB

MINUTE_NS = 60e9
SEGMENTS = 10  # of a run, whose means a line is drawn through: neighbouring slices are not independent
SETTLING = 0.1  # of a run, at its beginning, in which allocators and caches fill
LEAST_GROWTH_BYTES = 4 << 20  # over the run: what an allocator may take without a leak
LEAST_UNIT_BYTES = 512  # a unit: Keras' history of an epoch and our slices take up to 130 of each step of a tiny model
LEAST_SLOWER = 0.03  # over the run
JUDGED_SHARE = 0.9  # of JUDGED_MINUTES: a soak of so many ends with the slice that would not fit any more


def trend(places: Sequence[float], values: Sequence[float]) -> Interval | None:
    """Return the slope by least squares over the medians of SEGMENTS parts, None for fewer values; with Student's t."""
    first = int(len(places) * SETTLING)
    places, values = places[first:], values[first:]
    if min(len(places), len(values)) < SEGMENTS:
        return None
    ends = [round(part * len(places) / SEGMENTS) for part in range(SEGMENTS + 1)]
    x, y = ([statistics.median(axis[begin:end]) for begin, end in pairwise(ends)] for axis in (places, values))
    slope, start = statistics.linear_regression(x, y)
    middle = statistics.fmean(x)
    left = sum((b - start - slope * a) ** 2 for a, b in zip(x, y, strict=True))
    error = math.sqrt(left / (SEGMENTS - 2) / sum((a - middle) ** 2 for a in x))
    reach = t_quantile(SEGMENTS - 2) * error
    return Interval(slope, slope - reach, slope + reach)


def is_judged(minutes: float) -> bool:
    return minutes >= JUDGED_SHARE * JUDGED_MINUTES


def _unjudged(places: Sequence[float], values: Sequence[float]) -> None:
    return None


@dataclass(frozen=True)
class Soak:
    row: Row
    column: Column
    minutes: float
    units: int  # steps, epochs or predictions that it did, also between slices
    unit: str
    unit_ns: float  # the median over slices
    memory_bytes_per_unit: Interval | None  # as the other trends None where the run was too short to be judged
    slower_share: Interval | None  # the change of a unit's time over the run, as a share; None without a control
    held_mib: list[tuple[float, float]]  # by minutes
    device_memory_bytes_per_unit: Interval | None  # None: the device does not tell it, or the run was too short
    held_on_device_mib: list[tuple[float, float]]  # by minutes; empty: the device does not tell them
    ratios: list[tuple[float, float]]  # of its time over the control's, by minutes

    @property
    def units_a_minute(self) -> float:
        """How many units a minute has without the turns of the control."""
        return MINUTE_NS / self.unit_ns

    @property
    def is_judged(self) -> bool:
        return is_judged(self.minutes)

    def leaks(self, memory: Interval | None) -> bool:
        if memory is None:
            return False
        return memory.low > LEAST_UNIT_BYTES and memory.value * self.units > LEAST_GROWTH_BYTES

    @property
    def memory_grows(self) -> bool:
        return self.leaks(self.memory_bytes_per_unit) or self.leaks(self.device_memory_bytes_per_unit)

    @property
    def becomes_slower(self) -> bool:
        return self.slower_share is not None and self.slower_share.low > LEAST_SLOWER


@derived
def soaks(summary: Summary) -> list[Soak]:
    soaks = []
    for row, column, case in summary.cases if summary.mode == MODE.name else ():
        if case.failure is None and case.trials and not column.options.control:
            beside = row.cases.get(column.with_options(control=True))
            control = beside.trials[0][1].slices if beside and beside.trials else None
            soaks.append(_soak(row, column, case.trials[0][1], control))
    return soaks


def _soak(row: Row, column: Column, measurement: Measurement, control: Samples | None) -> Soak:
    slices, training = measurement.slices, measurement.training
    # A turn is not in the file with its time of day: the column itself goes on for as long as its slices take.
    minutes = [end_ns / MINUTE_NS for end_ns in accumulate(slices.ns)]
    done = [float(units or 0) for units in slices.done or ()]
    held, on_device = ([float(size or 0) for size in sizes or ()] for sizes in (slices.rss_bytes, slices.device_bytes))
    if not any(on_device):  # a plug-in that counts nothing: a model's weights are there
        on_device = []
    ratios = []  # of each cycle
    if control:
        times, beside = slices.ns_by_cycle, control.ns_by_cycle
        when = {cycle: minute for cycle, minute in zip(slices.cycle or (), minutes, strict=False) if cycle is not None}
        ratios = [(when[cycle], times[cycle] / beside[cycle]) for cycle in times if cycle in beside]
    judge = trend if is_judged(minutes[-1]) else _unjudged
    change = judge([minute / minutes[-1] for minute, _ in ratios], [math.log(ratio) for _, ratio in ratios])
    other_unit = "prediction" if measurement.calls else "build"
    return Soak(
        row=row,
        column=column,
        minutes=minutes[-1],
        units=int(done[-1] - done[0]) if done else sum(slices.count),
        unit=training.unit if training else other_unit,
        unit_ns=statistics.median(slices.units_ns),
        memory_bytes_per_unit=judge(done, held),
        slower_share=change and Interval(*(math.expm1(log) for log in (change.value, change.low, change.high))),
        held_mib=[(minute, size / MIB) for minute, size in zip(minutes, held, strict=False)],
        device_memory_bytes_per_unit=judge(done, on_device),
        held_on_device_mib=[(minute, size / MIB) for minute, size in zip(minutes, on_device, strict=False)],
        ratios=ratios,
    )
