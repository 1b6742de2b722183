"""What interferes with a measurement: the machine's state, signals of noise, and the words of every warning."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from kerasbench import text
from kerasbench.host import linux, macos
from kerasbench.host.nvidia import THERMAL_REASONS, Sample
from kerasbench.protocol.measurement import Samples

SAMPLE_S = 0.3  # 60 ticks of the kernel's clock on two cores: the share of time to within 2 %
HEAT_PATIENCE_S = 120.0  # a fanless laptop needs minutes to cool down
RETRY_S = 1.0

OTHERS_WARN, OTHERS_INVALID = 0.1, 0.5  # of a trial's slices
BUSY_BEFORE_WARN, BUSY_BEFORE_INVALID = 0.15, 0.50  # a desktop with an open browser idles at 5 to 10 %
SCATTER_WARN = 0.10  # coefficient of variation of a case's trials
THERMAL_WARN, THERMAL_INVALID = 1, 2  # macOS: moderate, heavy
CLOCK_SHARE_INVALID = 0.75  # of the highest SM clock that this run has seen on the card


@dataclass(frozen=True)
class MachineState:
    """A machine at one moment. None: not reported by this system."""

    busy_share: float  # of the time of the CPU cores that this process may use; 0 where nobody asked for it
    thermal_level: int | None  # macOS' own: 0 nominal, 1 moderate, 2 heavy
    on_battery: bool | None
    low_power: bool | None
    governors: list[str]
    throttle_count: int | None  # how often heat has slowed a core down since the machine started
    quota_throttled: int | None  # how often the control group's quota has stopped its processes
    quota_cores: float | None


def observe(sample_s: float = SAMPLE_S) -> MachineState:
    began_s, idle_before_s = time.monotonic(), _idle_s()
    time.sleep(sample_s)
    busy = busy_share(idle_before_s, _idle_s(), time.monotonic() - began_s) if sample_s else 0.0
    if sys.platform == "darwin":
        return MachineState(busy, thermal_level(), macos.on_battery(), macos.low_power(), [], None, None, None)
    counted = (linux.governors(), linux.throttle_count(), linux.quota_throttled(), linux.quota_cores())
    return MachineState(busy, None, linux.on_battery(), None, *counted)


def busy_share(idle_before_s: Sequence[float], idle_after_s: Sequence[float], passed_s: float) -> float:
    """Return the share of time in which CPU cores were not idle, by how long each had been by then."""
    if not any(idle_after_s):
        return 0.0  # gVisor has zeros
    idle_s = sum(idle_after_s) - sum(idle_before_s)
    return max(0.0, 1 - idle_s / (passed_s * len(idle_after_s)))


def _idle_s() -> list[float]:
    import psutil  # which nothing needs that only reads results

    times = psutil.cpu_times(percpu=True)
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(times))
    cores = [core for number, core in enumerate(times) if number in allowed] or times
    return [core.idle + getattr(core, "iowait", 0.0) for core in cores]


def thermal_level() -> int | None:
    return macos.thermal_level() if sys.platform == "darwin" else None


def cool_down(on_wait: Callable[[str], None]) -> float:
    """Wait while the machine is hot; return for how long, in s. Other load is not waited for: it meets all alike."""
    began_s = time.monotonic()
    while (level := thermal_level()) and time.monotonic() - began_s < HEAT_PATIENCE_S:
        on_wait(f"thermal pressure level {level}")
        time.sleep(RETRY_S)
    return time.monotonic() - began_s


class Severity(StrEnum):
    WARN = "warn"
    INVALID = "invalid"


@dataclass(frozen=True)
class Signal:
    name: str
    severity: Severity
    reason: str

    @property
    def invalidates(self) -> bool:
        return self.severity is Severity.INVALID


@dataclass(frozen=True)
class Surroundings:
    """What the parent saw around one trial: but for the GPU's, it is the same for all trials of a block."""

    waited_s: float  # for the machine to cool down
    before: MachineState
    after: MachineState
    gpu: list[Sample] | None  # one a second; None: the trial was not on an NVIDIA GPU
    gpu_neighbours: list[int]  # processes that were on the card before
    card: str = ""  # UUID of the NVIDIA card that was asked for; empty: not reported
    programs: list[str] = field(default_factory=list)  # other ones that kept a CPU busy meanwhile, the busiest first


def of_machine(state: MachineState, cores: int) -> list[Signal]:
    busy = f"{text.percent(state.busy_share)} of the CPU in use"
    signals = _graded("load", state.busy_share, BUSY_BEFORE_WARN, BUSY_BEFORE_INVALID, busy)
    if state.on_battery:
        signals.append(_warning("power", "runs on battery"))
    if state.low_power:
        signals.append(_warning("power", "low-power mode is on"))
    if state.governors and state.governors != ["performance"]:
        signals.append(_warning("governor", f"frequency governor {' and '.join(state.governors)}"))
    if state.quota_cores is not None and state.quota_cores < cores:
        allowed = f"{round(state.quota_cores, 2):g} of {cores} logical CPUs"
        signals.append(_warning("quota", f"a control group allows {allowed}"))
    return signals


def of_slices(slices: Samples) -> list[Signal]:
    disturbed = [slice_ for slice_ in slices if slice_.disturbed and not slice_.card_share]
    if not disturbed:
        return []
    ns = sum(slice_.ns for slice_ in disturbed)
    others = sum(slice_.others_ns or 0 for slice_ in disturbed) / ns
    stolen = sum(slice_.steal_ns or 0 for slice_ in disturbed) / ns
    turns = f"in {len(disturbed)} of {text.count(len(slices), 'turn')}"
    name, reason = "others", f"other programs used {others:.2g} logical CPUs {turns}"
    if stolen > others:
        name, reason = "steal", f"the hypervisor kept {stolen:.2g} logical CPUs {turns}"
    return _graded(name, len(disturbed) / len(slices), OTHERS_WARN, OTHERS_INVALID, reason)


def top_clock(samples: Sequence[Sample]) -> int | None:
    """Return the highest SM clock, which is that under load: a card idles between the phases of a trial."""
    return max((sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz is not None), default=None)


def of_surroundings(surroundings: Surroundings, top_clock_mhz: int | None) -> list[Signal]:
    """``top_clock_mhz``: the highest SM clock that the run has seen on the card."""
    before, after = surroundings.before, surroundings.after
    level = max(before.thermal_level or 0, after.thermal_level or 0)
    signals = _graded("heat", level, THERMAL_WARN, THERMAL_INVALID, f"thermal pressure level {level}")
    if (throttled := _increase(before.throttle_count, after.throttle_count)) > 0:
        signals.append(_warning("heat", f"the CPU throttled {text.count(throttled, 'time')}"))
    if (stopped := _increase(before.quota_throttled, after.quota_throttled)) > 0:
        signals.append(_warning("quota", f"the control group's quota stopped it {text.count(stopped, 'time')}"))
    if surroundings.gpu == []:
        signals.append(_warning("gpu", "the NVIDIA driver gave no readings of the GPU during the trial"))
    samples = surroundings.gpu or []
    if hot := sorted({reason for sample in samples for reason in sample.reasons} & THERMAL_REASONS):
        signals.append(_warning("gpu heat", f"the GPU slowed down: {', '.join(hot)}"))
    if surroundings.gpu_neighbours:
        signals.append(_warning("gpu", f"other programs were on the GPU: {len(surroundings.gpu_neighbours)}"))
    clock = top_clock(samples)
    if clock is not None and top_clock_mhz is not None and clock < CLOCK_SHARE_INVALID * top_clock_mhz:
        reason = f"SM clock {clock} MHz, {top_clock_mhz} in other trials"
        signals.append(Signal("gpu clock", Severity.INVALID, reason))
    return signals


def _increase(before: int | None, after: int | None) -> int:
    return 0 if before is None or after is None else after - before


def _warning(name: str, reason: str) -> Signal:
    return Signal(name, Severity.WARN, reason)


def _graded(name: str, value: float, warn: float, invalid: float, reason: str) -> list[Signal]:
    if value < warn:
        return []
    return [Signal(name, Severity.INVALID if value >= invalid else Severity.WARN, reason)]


class WarningKind(StrEnum):
    """What can be wrong with a case or a row, by how much it matters; then what a signal of noise is named by."""

    meaning: str
    remedy: str
    is_command: bool  # the remedy can be typed as it stands

    def __new__(cls, name: str, meaning: str = "", remedy: str = "", is_command: bool = False) -> Self:
        kind = str.__new__(cls, name)  # each has all of it; to find one by its name, the name is enough
        kind._value_ = name
        kind.meaning, kind.remedy, kind.is_command = meaning, remedy, is_command
        return kind

    UNDECIDED = ("undecided", "undecided, because other programs used the CPU", "close other programs and run again")
    CONTROL = (
        "control",
        "undecided, because the same configuration measured twice differs from itself",
        "run again on a quiet machine",
    )
    IDLE = (
        "idle",
        "training did not change the loss",
        "check the model, its loss and its data; set learnable=False if the data teach nothing",
    )
    DEVIATES = (
        "deviates",
        "losses differ between configurations",
        "compare what the model learns on each backend, before its speed",
    )
    STILL = (
        "still",
        "it does not train some weights that another backend trains",
        "look for a layer that is skipped, or cuts the gradient off, on this backend alone",
    )
    GROWING = (
        "growing",
        "its steps get longer while it trains, so what has made more steps looks slower",
        "look for something that grows with each step, such as a list in a callback",
    )
    LATE = (
        "late",
        "a step's time leaves out work that the end of an epoch waits for",
        "look for threads of a callback or of the input pipeline that still run after a step has ended",
    )
    RARE = (
        "rare",
        "some steps are far longer than the median, which leaves them out",
        "plan with the mean, and look for what happens now and then: a file that is written, a validation",
    )
    UNJUDGED = (
        "unjudged",
        "its results could not be compared with those of the other backends",
        "make the model and its input pipeline deterministic; a train_step of its own must update the loss metric",
    )
    OTHER_DATA = (
        "other_data",
        "its script gave it other data than the other backends, so their results were not compared",
        "let the script draw its data from a fixed seed, such as numpy.random.default_rng(0)",
    )
    RECOMPILED = (
        "recompiled",
        "it compiled again while it was measured, so it is not ranked",
        "look for shapes or Python values that change from step to step",
    )
    EAGER = (
        "eager",
        "it ran eagerly instead of compiled, so it is not ranked",
        "set TORCH_LOGS=recompiles,graph_breaks in a script of your own: it prints where and why",
    )
    LOST = (
        "lost",
        "not everything could be measured or looked at with this version of Keras",
        "update kerasbench, or install another Keras",
    )
    FALLBACK = (
        "fallback",
        "the CPU ran operations that the GPU does not support",
        "avoid these operations in the model",
    )
    EMULATED = (
        "emulated",
        "this processor has no instructions for the numbers that its layers compute in, so it emulates them",
        "take float32 on this processor, or measure on a GPU",
    )
    PAGES = (
        "pages",
        "it may be faster with one setting, because part of each step goes into getting memory back from Linux",
        "try --malloc default,keep",
    )
    SUBNORMALS = (
        "subnormals",
        "your own script on a CPU gets slower than this while it trains",
        "begin it with torch.set_flush_denormal(True), as kerasbench does",
    )
    SESSIONS = (
        "sittings",  # as --json has called it since its first schema
        "two sessions differ by more than their intervals allow",
        "measure in a third session, with --resume",
    )
    VERSIONS = ("versions", "versions differ between configurations", "install the same version for all backends")
    FEW = ("few", "undecided, because fewer than 3 rounds have no intervals", "run 3 rounds or more")
    SLICES = ("slices", "fewer than 3 rounds, so the intervals are wide", "run 3 rounds or more")
    DISTURBED = ("disturbed", "other programs used the CPU in at least one round", "close other programs and run again")
    SLOW = (
        "slow",
        "not everything was measured, because steps are slow",
        "take a smaller batch",
    )
    APART = (
        "apart",
        "not measured side by side, because memory was short",
        "free memory, or measure fewer configurations",
    )
    SCATTERED = (
        "scattered",
        f"rounds differ by {text.percent(SCATTER_WARN)} or more",
        "run more rounds on a quieter machine",
    )
    WAITED = (
        "waited",
        "it paused in some turns",
        "plan with means: a long fit has such pauses, and a median leaves them out",
    )
    POWER = ("power", "the machine saves power", "plug it in and switch the low-power mode off")
    GOVERNOR = (
        "governor",
        "the CPU's frequency is limited",
        "sudo cpupower frequency-set --governor performance",
        True,
    )
    QUOTA = (
        "quota",
        "a control group limits the logical CPUs",
        "give the container all logical CPUs, or say with the results that it had fewer",
    )
    LOAD = ("load", "the machine was busy before the run", "close other programs")
    HEAT = ("heat", "the CPU was too hot", "let the machine cool down")
    OTHERS = ("others", "other programs used the CPU", "close other programs")
    STEAL = ("steal", "the hypervisor gave CPU time to other machines", "use a machine that is not shared")
    GPU = ("gpu", "the GPU was shared or could not be observed", "end other programs on the GPU")
    GPU_HEAT = ("gpu heat", "the GPU slowed down from heat or a power limit", "let the GPU cool down")
    GPU_CLOCK = ("gpu clock", "the GPU ran at a lower clock than in other trials", "let the GPU cool down")
