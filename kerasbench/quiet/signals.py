"""What disturbs a measurement: each signal with its threshold, as pure functions over what was seen."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kerasbench.exchange.measurement import Measurement
from kerasbench.machine.nvidia import THERMAL_REASONS, Sample
from kerasbench.machine.state import State

# Others' share of all processors while a bout runs. Busy neighbours hit the columns unequally (METHOD, fact 5: medians
# spread 1.4-fold on JAX, 29-fold on torch), so that taking turns does not cancel all of it.
OTHERS_WARN, OTHERS_INVALID = 0.05, 0.25
BUSY_BEFORE_WARN, BUSY_BEFORE_INVALID = 0.15, 0.50
LOAD_PER_CORE_WARN = 0.25
STEAL_WARN = 0.02  # of all processors' time: as much as the precision that a run aims at
SPREAD_WARN = 0.10  # interquartile range of a trial's blocks over their median: the other columns had it too
SCATTER_WARN = 0.10  # coefficient of variation of a cell's trials
SHARE_OF_OTHER_TRIALS = 0.9  # of the processors that the cell's other trials had
THERMAL_WARN, THERMAL_INVALID = 1, 2  # macOS: moderate, heavy
CLOCK_SHARE_INVALID = 0.75  # of the highest SM clock that this run has seen on the card


class Severity(StrEnum):
    WARN = "warn"
    INVALID = "invalid"


@dataclass(frozen=True)
class Signal:
    """One sign of noise: its name, how bad it is, and the reason in words and figures."""

    name: str
    severity: Severity
    reason: str

    @property
    def invalidates(self) -> bool:
        return self.severity is Severity.INVALID


@dataclass(frozen=True)
class Surroundings:
    """What the parent saw around one trial: but for the GPU's, it is the same for all trials of a bout.

    ``refused`` is why the gate was not passed when its time was up (empty: it was passed), ``canary_ns`` its last fixed
    product. ``child_cpu_s`` is what all children of the bout used. ``gpu`` samples come once a second (None: the trial
    was not on an NVIDIA GPU), ``gpu_neighbours`` are processes that were on the card before, ``card`` is the UUID of
    the NVIDIA card that was asked for (empty: not told).
    """

    waited_s: float
    refused: str
    canary_ns: int
    before: State
    after: State
    child_cpu_s: float
    gpu: list[Sample] | None
    gpu_neighbours: list[int]
    card: str = ""


def of_machine(state: State, cores: int) -> list[Signal]:
    """Return what speaks against this machine before anything is measured."""
    return [
        *_load(state),
        *_when(state.on_battery is True, "power", "runs on battery"),
        *_when(state.low_power is True, "power", "low-power mode is on"),
        *_when(
            bool(state.governors) and state.governors != ["performance"],
            "governor",
            f"frequency governor {' and '.join(state.governors)}",
        ),
        *_when(
            state.quota_cores is not None and state.quota_cores < cores,
            "quota",
            f"a control group allows {state.quota_cores} of {cores} processors",
        ),
    ]


def of_surroundings(seen: Surroundings, cores: int, top_clock_mhz: int | None) -> list[Signal]:
    """Return what disturbed one trial, whatever became of it.

    ``cores`` are the machine's processors, ``top_clock_mhz`` the highest SM clock that the run has seen on the card.
    """
    return [
        *_when(bool(seen.refused), "gate", f"not quiet after {seen.waited_s:.0f} s: {seen.refused}"),
        *_graded(
            "others", others_share(seen, cores), OTHERS_WARN, OTHERS_INVALID, "other processes used {:.0%} of the CPU"
        ),
        *_hypervisor(seen, cores),
        *_heat(seen),
        *_gpu(seen, top_clock_mhz),
    ]


def of_measurement(measurement: Measurement, earlier: Sequence[Measurement]) -> list[Signal]:
    """Return what a trial's own readings show of a disturbance; ``earlier``: the cell's undisturbed trials."""
    spreads = spread(measurement)
    return [
        *_when(spreads >= SPREAD_WARN, "blocks", f"blocks spread by {spreads:.0%} (quartiles)"),
        *_share(measurement, earlier),
    ]


def spread(measurement: Measurement) -> float:
    """Return the interquartile range of a trial's blocks over their median; 0 for fewer than two blocks."""
    each = [block.unit_ns for block in measurement.slices]
    if len(each) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(each, n=4)
    return (high - low) / middle


def others_share(seen: Surroundings, cores: int) -> float:
    """Return the part of all processors' time that went to other processes than the bout's children."""
    available_s = (seen.after.at_ns - seen.before.at_ns) / 1e9 * cores
    busy_s = seen.after.busy_s - seen.before.busy_s
    return max(0.0, (busy_s - seen.child_cpu_s) / available_s) if available_s > 0 else 0.0


def top_clock(samples: Sequence[Sample]) -> int | None:
    """Return the highest SM clock, which is that under load: a card idles between the phases of a trial."""
    return max((sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz is not None), default=None)


def _load(state: State) -> Iterator[Signal]:
    yield from _graded("load", state.busy_share, BUSY_BEFORE_WARN, BUSY_BEFORE_INVALID, "{:.0%} of the CPU in use")
    if state.load_per_core > LOAD_PER_CORE_WARN:
        yield Signal("load", Severity.WARN, f"load average {state.load_per_core:.2f} per processor")


def _hypervisor(seen: Surroundings, cores: int) -> Iterator[Signal]:
    if seen.before.steal_s is None or seen.after.steal_s is None:
        return
    share = (seen.after.steal_s - seen.before.steal_s) / ((seen.after.at_ns - seen.before.at_ns) / 1e9 * cores)
    yield from _when(share > STEAL_WARN, "steal", f"the hypervisor kept {share:.0%} of the CPU")


def _heat(seen: Surroundings) -> Iterator[Signal]:
    level = max(seen.before.thermal_level or 0, seen.after.thermal_level or 0)
    yield from _graded("heat", level, THERMAL_WARN, THERMAL_INVALID, "thermal pressure level {}")
    throttled = _increase(seen.before.throttle_count, seen.after.throttle_count)
    yield from _when(throttled > 0, "heat", f"the CPU throttled {throttled} times")
    stopped = _increase(seen.before.quota_throttled, seen.after.quota_throttled)
    yield from _when(stopped > 0, "quota", f"the control group's quota stopped it {stopped} times")


def _share(measurement: Measurement, earlier: Sequence[Measurement]) -> Iterator[Signal]:
    if not earlier:
        return
    usual, got = statistics.median(one.usage.processors for one in earlier), measurement.usage.processors
    if got < SHARE_OF_OTHER_TRIALS * usual:
        yield Signal("share", Severity.WARN, f"{got:.2f} processors were busy for it, {usual:.2f} in other trials")


def _gpu(seen: Surroundings, top_clock_mhz: int | None) -> Iterator[Signal]:
    if seen.gpu is None:
        return
    yield from _when(not seen.gpu, "gpu", "the NVIDIA driver told nothing of the GPU while the trial ran")
    hot = sorted({reason for sample in seen.gpu for reason in sample.reasons} & THERMAL_REASONS)
    yield from _when(bool(hot), "gpu heat", f"the GPU slowed down: {', '.join(hot)}")
    yield from _when(bool(seen.gpu_neighbours), "gpu", f"{len(seen.gpu_neighbours)} other processes were on the GPU")
    clock = top_clock(seen.gpu)
    if clock is not None and top_clock_mhz is not None and clock < CLOCK_SHARE_INVALID * top_clock_mhz:
        yield Signal("gpu clock", Severity.INVALID, f"SM clock {clock} MHz, {top_clock_mhz} in other trials")


def _increase(before: int | None, after: int | None) -> int:
    return 0 if before is None or after is None else after - before


def _when(true: bool, name: str, reason: str) -> list[Signal]:
    return [Signal(name, Severity.WARN, reason)] if true else []


def _graded(name: str, value: float, warn: float, invalid: float, reason: str) -> list[Signal]:
    """Return a signal from ``warn`` on; for shares the threshold itself still passes as quiet."""
    if value < warn:
        return []
    return [Signal(name, Severity.INVALID if value >= invalid else Severity.WARN, reason.format(value))]
