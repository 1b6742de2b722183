"""Whether others used so much of the machine that slices do not count; of sums, where rounding hides it in each."""

import dataclasses
import math
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from kerasbench.protocol.columns import CPU, Device
from kerasbench.protocol.measurement import Measurement, Samples, Slice
from kerasbench.protocol.stages import PARTS_OF_STEP, STAGES

# Bursts of 0.2 of a core make convolutions 1.35 times as long on torch and 1.17 times on TensorFlow
# (docs/how-it-works.md). A column on a GPU does not compute on the CPU: for it, a share of all.
OF_ONE, OF_ALL = 0.12, 0.06
QUIET_SHARE = 0.01  # of the cores: what was busy before the run is load of somebody's where it was more
TICK_NS = 10_000_000  # in which a system counts how long each core was idle
# Standard deviations: of a hundred cycles, less than one is marked while nobody runs (validation/rounding.py).
ROUNDING = 3.3


@dataclass(frozen=True)
class LoadLimit:
    """From when on others disturb a column, in CPU cores that they keep busy on average."""

    quiet: float = 0.0  # so many were busy before the run
    above: float = OF_ONE  # what they may take beyond that
    counters: int = 1  # that are read, and rounded, one by one

    def judged_s(self, slice_ns: int) -> float:
        """Return how much time, in s, has to be judged together in slices of such length: one where that will do."""
        above_ns = self.above * slice_ns
        if not Load(above_ns=above_ns, ticks=self.counters).is_rounding:
            return slice_ns / 1e9
        return math.ceil(self.counters / 6 * (ROUNDING * TICK_NS / above_ns) ** 2) * slice_ns / 1e9


def limit_of(device: Device, threads: int | None, busy_share: float, allowed: int, machine: int) -> LoadLimit:
    """``threads``: the cores that a column is kept to; None: all that are allowed. ``busy_share``: of those, before."""
    apple = sys.platform == "darwin"  # which rounds each core, and limits no process to some
    cores = allowed if threads is None or apple else min(threads, allowed)
    counters = cores if apple or cores < machine else 1
    above = OF_ONE if device.kind == CPU else max(OF_ONE, OF_ALL * cores)
    return LoadLimit(min(busy_share, QUIET_SHARE) * cores, above, counters)


@dataclass(frozen=True)
class Load:
    taken_ns: float = 0.0  # beyond what was busy before the run
    above_ns: float = 0.0  # that may be taken so
    ticks: int = 0  # counters that were rounded, at both ends of a slice each

    def __add__(self, other: "Load") -> "Load":
        return Load(self.taken_ns + other.taken_ns, self.above_ns + other.above_ns, self.ticks + other.ticks)

    @property
    def rounding_ns(self) -> float:
        """By how much rounding alone may make the sum too large: of a count, by a triangular number up to a tick."""
        return TICK_NS * min(ROUNDING * math.sqrt(self.ticks / 6), self.ticks)

    @property
    def is_rounding(self) -> bool:
        """Whether a longer sum would show less load."""
        return self.rounding_ns > self.above_ns

    @property
    def is_disturbed(self) -> bool:
        return self.taken_ns > max(self.above_ns, self.rounding_ns)


def disturbed_cycles(columns: Sequence[Mapping[int, Load]]) -> list[set[int]]:
    """Return, for each column, the cycles that do not count: turns are judged, then cycles, then sums of 2, 4, 8 ..."""
    alone = [{cycle for cycle, load in turns.items() if load.is_disturbed} for turns in columns]
    unclear = [{cycle: load for cycle, load in turns.items() if load.is_rounding} for turns in columns]
    left = sorted(set().union(*unclear).difference(*alone))
    loads = {cycle: sum((turns[cycle] for turns in unclear if cycle in turns), Load()) for cycle in left}
    together = set[int]()
    needed, length = True, 1
    while needed and left:
        spans = [left[start : start + length] for start in range(0, len(left), length)]
        sums = [sum((loads[cycle] for cycle in span), Load()) for span in spans]
        together.update(cycle for span, load in zip(spans, sums, strict=True) if load.is_disturbed for cycle in span)
        needed = sums[0].is_rounding and len(spans) > 1
        left = [cycle for cycle in left if cycle not in together]
        length *= 2
    return [cycles | (together & turns.keys()) for cycles, turns in zip(alone, unclear, strict=True)]


def loads_of(slices: Iterable[Slice], limit: LoadLimit, readings: int = 1) -> dict[int, Load]:
    """Return the load of each cycle, from those slices of which the system tells it."""
    loads: dict[int, Load] = {}
    for slice_ in slices:
        if slice_.cycle is not None and slice_.others_ns is not None:
            taken_ns = slice_.others_ns + (slice_.steal_ns or 0) - limit.quiet * slice_.ns
            load = Load(taken_ns, limit.above * slice_.ns, limit.counters * readings)
            loads[slice_.cycle] = loads.get(slice_.cycle, Load()) + load
    return loads


def judged(stage: str, columns: Mapping[int, Sequence[Slice]], limits: Sequence[LoadLimit]) -> list[Sequence[Slice]]:
    """Return the slices of a stage so far with those marked that do not count; ``limits`` are those of all columns."""
    turns = [loads_of(slices, limits[index], STAGES[stage].sum_of) for index, slices in columns.items()]
    return [
        [dataclasses.replace(slice_, disturbed=True) if slice_.cycle in cycles else slice_ for slice_ in slices]
        for slices, cycles in zip(columns.values(), disturbed_cycles(turns), strict=True)
    ]


def mark(measured: Mapping[int, Measurement], limits: Sequence[LoadLimit]) -> dict[int, Measurement]:
    """Return what the columns of a block measured with those slices marked that do not count, as by ``judged``."""
    cycles: dict[tuple[str, int], set[int]] = {}  # by what has turns together, and column
    for turns in TURNS:
        columns = {
            index: slices for index, measurement in measured.items() if (slices := _in_turns(measurement, turns))
        }
        disturbed = disturbed_cycles([loads_of(slices, limits[index]) for index, slices in columns.items()])
        cycles |= {
            (stage, index): of_column for index, of_column in zip(columns, disturbed, strict=True) for stage in turns
        }
    return {
        index: dataclasses.replace(
            measurement,
            samples={
                stage: _marked(samples, cycles.get((stage, index), set()))
                for stage, samples in measurement.samples.items()
            },
        )
        for index, measurement in measured.items()
    }


TURNS = (*((stage,) for stage in STAGES), PARTS_OF_STEP)  # the parts of a step have one turn


def _in_turns(measurement: Measurement, stages: Sequence[str]) -> list[Slice]:
    samples = (measurement.samples[stage] for stage in stages if stage in measurement.samples)
    return [slice_ for of_stage in samples if of_stage.others_ns for slice_ in of_stage]


def _marked(slices: Samples, cycles: Set[int]) -> Samples:
    if not cycles:
        return slices
    earlier = slices.disturbed or [False] * len(slices)
    marks = [was or cycle in cycles for was, cycle in zip(earlier, slices.cycle or (), strict=True)]
    return dataclasses.replace(slices, disturbed=marks)
